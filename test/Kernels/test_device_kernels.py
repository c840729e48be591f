"""The kernels for GPUs that are bound by memory, run thread by thread on the CPU.

Between the threads of these kernels nothing passes but that one of each row writes the
log-sum-exp when all have read it. So they run one after another, each block's from the
last on: that one is the first of its row.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import pathlib
import platform
import re
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled import (
    LLC,
    NUMPY,
    PIPELINE,
    TEMPLATES,
    WIDTH,
    Array,
    accumulator,
    conversion,
    flatten,
    tool,
)
from tiles import decode, encode, scatter, within

OPENING = "gpu.module @device {\n"
PLACES = ("thread_id", "block_id", "grid_dim", "block_dim")
PLACE = "long place[4];\n" + "\n".join(
    f"long {name}(void) {{ return place[{i}]; }}" for i, name in enumerate(PLACES)
)
THREADS = 256


def spell(kernel: str, dtype: str, acc: str, out: str, overwrites: bool) -> str:
    """Return a kernel for the host: its thread is what the functions of PLACES say."""
    lanes = 128 // min(WIDTH[dtype], WIDTH[out])
    types = {"in": dtype, "acc": acc, "out": out}
    aliases = "".join(f"!{name} = {kind}\n" for name, kind in types.items())
    aliases += "".join(f"!{name}s = vector<{lanes}x!{name}>\n" for name in types)
    own, body = (TEMPLATES / "Gpu" / f"{kernel}.mlir").read_text().split(OPENING)
    walks = (TEMPLATES / "Gpu" / "walks.mlir").read_text().split(OPENING)[1]
    functions = body.rstrip()[:-1] + walks.rstrip()[:-1]
    functions = re.sub(r"nvvm\.bar\.warp\.sync .*", "", functions)
    functions = re.sub(
        r"gpu\.func (@[^{]*?)\s*kernel attributes {.*} {", r"func.func \1 {", functions
    )
    functions = re.sub(r"gpu\.(\w+_\w+) x", r"func.call @\1() : () -> index", functions)
    functions = functions.replace("gpu.return", "return")
    numbers = {"lanes": lanes, "in_bytes": WIDTH[dtype] // 8}
    numbers |= {"acc_bytes": WIDTH[acc] // 8, "out_bytes": WIDTH[out] // 8}
    for name, number in numbers.items():
        functions += f"func.func private @{name}() -> index "
        functions += f"{{ %c = arith.constant {number} : index return %c : index }}\n"
    functions += "func.func private @overwrites() -> i1 "
    functions += f"{{ %x = arith.constant {str(overwrites).lower()} return %x : i1 }}\n"
    casts = {"widen": ("in", "acc"), "narrow": ("acc", "out"), "widen_out": ("out", "acc")}
    for name, (source, target) in casts.items():
        for suffix, plural in (("", ""), ("_lanes", "s")):
            spelled = [f"!{source}{plural}", f"!{target}{plural}"]
            text = conversion(name + suffix, types[source], types[target], ", ".join(spelled))
            body = text.split("{")[1]
            if plural:
                for old, new in zip((types[source], types[target]), spelled, strict=True):
                    body = re.sub(rf"\b(?<!!){old}\b", new, body)
            functions += text.split("{")[0] + "{" + body
    functions += "".join(f"func.func private @{name}() -> index\n" for name in PLACES)
    return aliases + own + functions


@functools.cache
def build(kernel: str, dtype: str, out: str, overwrites: bool = False) -> Callable[..., None]:
    """Compile one instance; `blocks=1` has one block do all, without it as many as said."""
    acc = accumulator(dtype) if kernel != "accumulate" else out
    target = f"-mtriple={platform.machine()}-linux-gnu"
    data = spell(kernel, dtype, acc, out, overwrites).encode()
    for step in (
        [tool("mlir-opt", "mlir"), "--pass-pipeline=" + PIPELINE.replace("\n", "")],
        [tool("mlir-translate", "mlir"), "--mlir-to-llvmir"],
        [tool("opt", "llvm"), "-O3", target, "-mcpu=native"],
        [tool("llc", "llvm"), "-O3", target, "-mcpu=native", *LLC],
    ):
        done = subprocess.run(step, input=data, capture_output=True, check=False)
        assert done.returncode == 0, f"{step[0]}: {done.stderr.decode()}"
        data = done.stdout
    with tempfile.TemporaryDirectory() as folder:
        obj, lib, host = f"{folder}/kernel.o", f"{folder}/kernel.so", f"{folder}/place.c"
        pathlib.Path(obj).write_bytes(data)
        pathlib.Path(host).write_text(PLACE)
        subprocess.run(
            ["cc", "-O1", "-shared", "-fPIC", obj, host, "-o", lib, "-lm"], check=True
        )
        library = ctypes.CDLL(lib)
    function: Any = getattr(library, kernel)
    function.restype, library.blocks.restype = None, ctypes.c_int64
    place = (ctypes.c_long * 4).in_dll(library, "place")
    lanes = ctypes.c_int64(128 // min(WIDTH[dtype], WIDTH[out]))

    def call(*arguments: Array, blocks: int | None = None) -> None:
        given = list(itertools.chain.from_iterable(map(flatten, arguments)))
        count = library.blocks(*given, lanes) if blocks is None else blocks
        place[2:] = [count, THREADS]
        for place[1] in range(count):
            for place[0] in reversed(range(THREADS)):
                function(*given)

    return call


# Of one chunk of 16 bytes, of chunks that are no power of 2, of more than a warp takes at once.
DIMS = (8, 24, 64, 264)


def laid(x: Array, wide: bool, rng: np.random.Generator) -> Array:
    """Return `x` in aligned rows, with a gap behind each but for the last dim, or anyhow."""
    if not wide:
        return scatter(x, rng)
    whole = np.zeros((*x.shape[:-2], x.shape[-2] + 1, x.shape[-1]), x.dtype)
    whole[..., :-1, :] = x
    return whole[..., :-1, :]


def draw(rng: np.random.Generator, parts: int, dim: int) -> tuple[Array, Array]:
    """Partial results of 2 x 5 rows of 3 heads, some of them empty, the first in all."""
    lse = rng.standard_normal((parts, 2, 3, 5)) * 4
    lse[rng.random(lse.shape) < 0.3] = -np.inf
    lse[:, 0, 0, 0] = -np.inf
    finite = np.isfinite(lse.swapaxes(2, 3)[..., None])
    return rng.standard_normal((parts, 2, 5, 3, dim)) * finite, lse


def merged(o: Array, lse: Array) -> tuple[Array, Array]:
    total = np.logaddexp.reduce(lse, axis=0)
    shares = np.exp(lse - np.where(np.isneginf(total), 0, total)).swapaxes(2, 3)[..., None]
    return (o * shares).sum(axis=0), total


def near(got: Array, want: Array, dtype: str) -> bool:
    eps = {"f64": 2.0**-52, "f32": 2.0**-23, "bf16": 2.0**-8, "f16": 2.0**-11}[dtype]
    return within(decode(got, dtype), want, 32 * eps * (1 + np.abs(want)))


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("parts", [0, 1, 2, 3, 5])
@pytest.mark.parametrize(
    ("dtype", "out", "overwrites"),
    [
        ("bf16", "bf16", True),
        ("bf16", "f32", True),
        ("f32", "f32", False),
        ("f64", "f64", False),
    ],
)
def test_softmax_merge_all(
    dtype: str, out: str, overwrites: bool, parts: int, wide: bool
) -> None:
    rng = np.random.default_rng(parts)
    acc = NUMPY[accumulator(dtype)]
    for dim, blocks in itertools.product((*DIMS, 0), (None, 1)):
        o, lse = draw(rng, parts + 1, dim)
        o, lse = encode(o, dtype), lse.astype(acc)
        into = encode(decode(o[0], dtype), out), lse[0].copy()
        if overwrites:
            o[0], lse[0] = 0, -np.inf
            into = encode(np.full(o.shape[1:], np.nan), out), np.full_like(lse[0], np.nan)
        want = merged(decode(o, dtype), lse.astype(float))
        into = laid(into[0], wide, rng), laid(into[1], wide, rng)
        build("softmax_merge_all", dtype, out, overwrites)(
            laid(o[1:], wide, rng), laid(lse[1:], wide, rng), *into, blocks=blocks
        )
        assert near(into[1], want[1], accumulator(dtype))
        assert near(into[0], want[0], out)
        if dim and parts > 1:
            assert not near(into[0], merged(*draw(rng, parts, dim))[0], out)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_softmax_merge(dtype: str, wide: bool) -> None:
    rng = np.random.default_rng(0)
    for dim, blocks in itertools.product((*DIMS, 0), (None, 1)):
        o, lse = (x.astype(NUMPY[dtype]) for x in draw(rng, 2, dim))
        want = merged(o.astype(float), lse.astype(float))
        results = []
        for mine, other in ((0, 1), (1, 0)):
            into = laid(o[mine], wide, rng), laid(lse[mine], wide, rng)
            given = laid(o[other], wide, rng), laid(lse[other], wide, rng)
            build("softmax_merge", dtype, dtype)(*given, *into, blocks=blocks)
            assert near(into[1], want[1], dtype)
            assert near(into[0], want[0], dtype)
            assert not dim or not near(o[mine], want[0], dtype)
            results.append(into)
        for one, two in zip(*results, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("dtype", "out"), [("bf16", "f32"), ("f32", "f32"), ("f64", "f64")])
def test_softmax_sink(dtype: str, out: str, wide: bool) -> None:
    rng = np.random.default_rng(0)
    sink = encode(np.array([0.5, -3.0, -np.inf]), dtype)
    for dim, blocks in itertools.product((*DIMS, 0), (None, 1)):
        o, lse = (x[0].astype(NUMPY[out]) for x in draw(rng, 1, dim))
        logits = np.broadcast_to(decode(sink, dtype)[None, :, None], lse.shape)
        both = np.stack([o, 0 * o]).astype(float), np.stack([lse, logits]).astype(float)
        want = merged(*both)
        into = laid(o, wide, rng), laid(lse, wide, rng)
        build("softmax_sink", dtype, out)(scatter(sink, rng), *into, blocks=blocks)
        assert near(into[1], want[1], out)
        assert near(into[0], want[0], out)
        # A sink of -inf changes no bit.
        np.testing.assert_array_equal(into[0][:, :, 2], o[:, :, 2])
        np.testing.assert_array_equal(into[1][:, 2], lse[:, 2])


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("dtype", "out", "overwrites"), [("bf16", "bf16", True), ("f32", "f32", False)]
)
@pytest.mark.parametrize("parts", [0, 1, 2, 5])
def test_sum_all(dtype: str, out: str, overwrites: bool, parts: int, wide: bool) -> None:
    rng = np.random.default_rng(parts)
    for dim, blocks in itertools.product((8, 136, 0), (None, 1)):
        x = encode(rng.standard_normal((parts, 2, 3, 17, dim)), dtype)
        before = rng.standard_normal(x.shape[1:]).astype(np.float32)
        want = decode(x, dtype).sum(axis=0) + (0 if overwrites else before)
        y = laid(encode(before * (np.nan if overwrites else 1), out), wide, rng)
        build("sum_all", dtype, out, overwrites)(laid(x, wide, rng), y, blocks=blocks)
        assert near(y, want, out)
        assert not dim or not parts or not near(encode(0 * want, out), want, out)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("dtype", "out"), [("bf16", "f32"), ("f32", "f32")])
def test_accumulate(dtype: str, out: str, wide: bool) -> None:
    rng = np.random.default_rng(0)
    for dim, blocks in itertools.product((8, 136, 0), (None, 1)):
        x = encode(rng.standard_normal((2, 3, 17, dim)), dtype)
        before = rng.standard_normal(x.shape).astype(NUMPY[out])
        y = laid(before, wide, rng)
        build("accumulate", dtype, out)(laid(x, wide, rng), y, blocks=blocks)
        np.testing.assert_array_equal(y, before + decode(x, dtype).astype(NUMPY[out]))
