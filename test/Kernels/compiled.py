"""Templates of kernels compiled to functions of this process.

A template is instantiated, lowered with the pipeline that README.md of lib/Kernels
states, compiled to a shared object and called through plain memref descriptors.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import itertools
import pathlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "lib" / "Kernels"
PIPELINE = """\
builtin.module(
  inline, symbol-dce,
  func.func(arith-expand{include-bf16=true}),
  expand-strided-metadata, lower-affine,
  convert-scf-to-cf, convert-vector-to-llvm, finalize-memref-to-llvm,
  convert-math-to-llvm, convert-arith-to-llvm, convert-func-to-llvm, convert-cf-to-llvm,
  reconcile-unrealized-casts)"""

DTYPES = ["f16", "bf16", "f32", "f64"]
NUMPY: dict[str, Any] = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
UNBOUNDED = 2**40
LLC = ["-relocation-model=pic", "-filetype=obj"]


def folders_of(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or []) if spec else []


def tool(name: str, package: str) -> str:
    """Find an LLVM tool: in the wheels that the build requires, else on PATH."""
    path = ":".join(f"{folder}/bin" for folder in folders_of(package))
    found = shutil.which(name, path=path) or shutil.which(name)
    if not found:
        pytest.skip(f"{name} not found")
    return found


def bf16_library() -> list[str]:
    """Link MLIR's conversions of bf16, as its JIT does: an old libgcc has none."""
    for folder in folders_of("mlir"):
        library = pathlib.Path(folder) / "lib" / "libmlir_float16_utils.so"
        if library.exists():
            return [str(library), f"-Wl,-rpath,{library.parent}"]
    return []


def accumulator(dtype: str) -> str:
    return "f64" if dtype == "f64" else "f32"


WIDTH = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}


def conversion(name: str, source: str, target: str, types: str) -> str:
    """Spell one of the functions of the prelude."""
    head = f"func.func private @{name}(%x: {types.replace(',', ') ->')}"
    if source == target:
        return f"{head} {{ return %x : {source} }}\n"
    op = "extf" if WIDTH[source] < WIDTH[target] else "truncf"
    return f"{head} {{ %y = arith.{op} %x : {source} to {target} return %y : {target} }}\n"


def instantiate(kernel: str, dtype: str, acc: str, out: str, overwrites: bool) -> str:
    """Return the module text of a template for inputs, accumulators and outputs."""
    aliases = f"!in = {dtype}\n!acc = {acc}\n!out = {out}\n"
    casts = conversion("widen", dtype, acc, "!in, !acc")
    casts += conversion("narrow", acc, out, "!acc, !out")
    casts += conversion("widen_out", out, acc, "!out, !acc")
    casts += "func.func private @overwrites() -> i1 "
    casts += f"{{ %x = arith.constant {str(overwrites).lower()} return %x : i1 }}\n"
    return aliases + (TEMPLATES / f"{kernel}.mlir").read_text() + casts


NARROW = ["f16", "bf16"]


def flatten(value: object) -> Iterator[object]:
    """Spell an argument as LLVM's calling convention of a memref or a scalar has it."""
    if not isinstance(value, np.ndarray):
        yield value
        return
    root = value
    while isinstance(root.base, np.ndarray):
        root = root.base
    address = root.ctypes.data
    yield from (ctypes.c_void_p(address), ctypes.c_void_p(address))
    yield ctypes.c_int64((value.ctypes.data - address) // value.itemsize)
    yield from map(ctypes.c_int64, value.shape)
    yield from (ctypes.c_int64(s // value.itemsize) for s in value.strides)


def build(kernel: str, dtype: str) -> Callable[..., None]:
    """Compile a kernel for inputs of type `dtype`, with accumulators as results."""
    return compile_instance(kernel, dtype, accumulator(dtype), accumulator(dtype))


def build_narrow(kernel: str, dtype: str) -> Callable[..., None]:
    """Compile a kernel whose inputs and result are of type `dtype`."""
    return compile_instance(kernel, dtype, accumulator(dtype), dtype)


def build_overwriting(kernel: str, dtype: str, out: str) -> Callable[..., None]:
    """Compile a kernel that overwrites its results, the first of type `out`."""
    return compile_instance(kernel, dtype, accumulator(dtype), out, overwrites=True)


def build_copy(source: str, wide: str, target: str) -> Callable[..., None]:
    """Compile a copy from one type to another through a third."""
    return compile_instance("copy", source, wide, target)


@functools.cache
def compile_instance(
    kernel: str, dtype: str, acc: str, out: str, overwrites: bool = False
) -> Callable[..., None]:
    """Compile one instance. Arrays, index and i64 as int, floats as float."""
    target = f"-mtriple={platform.machine()}-linux-gnu"
    lower = [tool("mlir-opt", "mlir"), "--pass-pipeline=" + PIPELINE.replace("\n", "")]
    steps = [
        lower,
        [tool("mlir-translate", "mlir"), "--mlir-to-llvmir"],
        [tool("opt", "llvm"), "-O3", target, "-mcpu=native"],
        [tool("llc", "llvm"), "-O3", target, "-mcpu=native", *LLC],
    ]
    data = instantiate(kernel, dtype, acc, out, overwrites).encode()
    for step in steps:
        done = subprocess.run(step, input=data, capture_output=True, check=False)
        assert done.returncode == 0, f"{step[0]}: {done.stderr.decode()}"
        data = done.stdout
    with tempfile.TemporaryDirectory() as folder:
        obj, lib = f"{folder}/kernel.o", f"{folder}/kernel.so"
        pathlib.Path(obj).write_bytes(data)
        subprocess.run(["cc", "-shared", obj, "-o", lib, "-lm", *bf16_library()], check=True)
        function = getattr(ctypes.CDLL(lib), kernel)
    function.restype = None
    real = ctypes.c_double if acc == "f64" else ctypes.c_float

    def call(*arguments: object) -> None:
        scalars: dict[type, Any] = {int: ctypes.c_int64, float: real}
        typed = [scalars[type(a)](a) if type(a) in scalars else a for a in arguments]
        function(*itertools.chain.from_iterable(map(flatten, typed)))

    return call
