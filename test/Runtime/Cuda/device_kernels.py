r"""The generated kernels on a GPU: are they right, and how fast are they?

    python test/Runtime/Cuda/device_kernels.py make FOLDER         # where mercury-opt is
    python test/Runtime/Cuda/device_kernels.py run FOLDER --build BUILD   # where a GPU is

`make` compiles one program that launches every kernel, for the host and to PTX, and needs no
GPU; `run` calls its launchers through the runtime of BUILD and needs PyTorch. Results are
compared with float64, and what is bound by memory with PyTorch's copy. Under a sanitizer only
the former says anything:

    compute-sanitizer python test/Runtime/Cuda/device_kernels.py run FOLDER --build BUILD \
        --no-speed
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import math
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Callable, Iterator
from typing import Any

INPUTS = ("f16", "bf16", "f32", "f64")
COPIES = [("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("bf16", "f16"), ("f64", "f32")]
COPIES += [(dtype, dtype) for dtype in INPUTS]
CHECKS = ("elementwise", "sums", "merges", "sinks", "matmuls", "attention", "overwritten")

OVERWRITTEN = [
    ("f16", "f16"),
    ("bf16", "bf16"),
    ("bf16", "f32"),
    ("f32", "bf16"),
    ("f32", "f32"),
]


def accumulator(dtype: str) -> str:
    return "f64" if dtype == "f64" else "f32"


# --- What launches every kernel -------------------------------------------------------


def program() -> str:
    """One function with a launch of each kernel for each type."""
    tiles: dict[str, str] = {}

    def tile(rank: int, dtype: str) -> str:
        strides = ", ".join(["?"] * rank)
        name = f"%x{rank}_{dtype}"
        tiles[name] = f"memref<{'?x' * rank}{dtype}, strided<[{strides}], offset: ?>>"
        return name

    lines = []

    def launch(kernel: str, ins: list[str], outs: list[str], rest: str = "") -> None:
        def spell(names: list[str]) -> str:
            return f"({', '.join(names)} : {', '.join(tiles[name] for name in names)})"

        positions = "%p, %p, %p, %p" if "attention" in kernel else ""
        lines.append(
            f'commir.launch "{kernel}" ins{spell(ins)} outs{spell(outs)} at({positions}) {rest}'
        )

    def plain(op: str, *names: str, more: str = "") -> None:
        types = " to ".join(tiles[name] for name in names)
        lines.append(f"commir.{op} {' to '.join(names)}{more} : {types}")

    for dtype in INPUTS:
        acc = accumulator(dtype)
        x4, a4, a3, a1 = tile(4, dtype), tile(4, acc), tile(3, acc), tile(1, acc)
        scratch = f"scratch({a1} : {tiles[a1]}) {{scale = 1.0 : f64}}"
        launch("matmul", [tile(2, dtype)] * 2, [tile(2, acc)])
        launch("attention_fwd", [x4] * 3, [a4, a3], scratch)
        launch("attention_bwd", [x4] * 5 + [a3], [a4] * 3, scratch)
        launch("softmax_sink", [tile(1, dtype)], [a4, a3])
        launch("softmax_sink_bwd", [x4, x4, a3, a1], [a1])
        plain("accumulate", x4, x4)
        if dtype != acc:
            plain("accumulate", x4, a4)
        plain("fill", x4, more=" with 0.0")
    for acc in ("f32", "f64"):
        a4, a3 = tile(4, acc), tile(3, acc)
        launch("softmax_merge", [a4, a3], [a4, a3])
        launch("softmax_merge_all", [tile(5, acc), a4], [a4, a3])
        launch("sum_all", [tile(5, acc)], [tile(4, acc)])
    # Results that are overwritten may be as narrow as the inputs.
    one, both = "{overwrite = array<i1: true>}", "{overwrite = array<i1: true, true>}"
    for dtype, out in OVERWRITTEN:
        x4, x5, y4, a4, a3 = (
            tile(rank, kind)
            for rank, kind in ((4, dtype), (5, dtype), (4, out), (4, "f32"), (3, "f32"))
        )
        scratch = f"scratch({tile(1, 'f32')} : {tiles[tile(1, 'f32')]}) "
        launch("matmul", [tile(2, dtype)] * 2, [tile(2, out)], one)
        launch(
            "attention_fwd", [x4] * 3, [y4, a3], f"{scratch} {{scale = 1.0 : f64, {both[1:]}"
        )
        launch("softmax_merge_all", [x5, a4], [y4, a3], both)
        launch("sum_all", [x5], [y4], one)
    for source, target in COPIES:
        plain("copy", tile(4, source), tile(4, target))
    arguments = ", ".join(f"{name}: {kind}" for name, kind in tiles.items())
    body = "\n  ".join(lines)
    return f"""commir.mesh @mesh(gpu = 1)
func.func @all(%context: !llvm.ptr, %buffers: !llvm.ptr, %p: index, {arguments}) -> i32
    attributes {{commir.mesh = @mesh}} {{
  {body}
  %s = commir.status
  return %s : i32
}}
"""


def tool(name: str) -> str:
    packages = pathlib.Path(sysconfig.get_path("purelib"))
    folders = [str(packages / package / "bin") for package in ("llvm", "mlir")]
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"]]))
    return found or sys.exit(f"{name} is not there; tools/setup installs it")


def make(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = program().encode()
    for command in (
        [tool("mercury-opt"), "--commir-spmd-to-cuda"],
        [tool("mlir-translate"), "--mlir-to-llvmir"],
        [tool("llc"), "-filetype=obj", "-relocation-model=pic"],
    ):
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{command[0]}: {done.stderr.decode()[-3000:]}")
        data = done.stdout
    (folder / "kernels.o").write_bytes(data)
    command = ["cc", "-shared", str(folder / "kernels.o"), "-o", str(folder / "kernels.so")]
    subprocess.run(command, check=True)


# --- Launching ------------------------------------------------------------------------


def flatten(value: Any) -> Iterator[Any]:
    """An argument as a launcher takes it: a tensor is the fields of its descriptor."""
    if isinstance(value, int):
        yield ctypes.c_int64(value)
    elif hasattr(value, "data_ptr"):
        yield from [ctypes.c_void_p(value.data_ptr())] * 2
        yield ctypes.c_int64(0)
        yield from map(ctypes.c_int64, value.shape)
        yield from map(ctypes.c_int64, value.stride())
    else:
        yield value


class Device:
    """The runtime with one rank, and the launchers."""

    def __init__(self, build: pathlib.Path, folder: pathlib.Path) -> None:
        import host  # noqa: PLC0415 (only where a GPU is)
        import torch  # noqa: PLC0415

        self.torch = torch
        self.library = ctypes.CDLL(
            str(build.resolve() / "libmercury_rt.so"), mode=ctypes.RTLD_GLOBAL
        )
        self.library.mercury_rt_last_error.restype = ctypes.c_char_p
        self.kernels = ctypes.CDLL(str(folder.resolve() / "kernels.so"))
        self.context = ctypes.c_void_p()
        job = host.Job(
            abi_version=host.ABI_VERSION,
            number_of_levels=0,
            rank=0,
            device=torch.cuda.current_device(),
            rendezvous=f"/dev/shm/mercury-{uuid.uuid4().hex}".encode(),
            deadline_ms=60000,
        )
        self.check(
            self.library.mercury_rt_cuda_open(ctypes.byref(job), ctypes.byref(self.context))
        )

    def check(self, status: int) -> None:
        if status:
            raise RuntimeError(self.library.mercury_rt_last_error().decode())

    def run(self, body: Callable[[ctypes.c_void_p], int]) -> None:
        """Run what `body` launches, after all before and before all after."""
        entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(
            lambda context, _: body(ctypes.c_void_p(context))
        )
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        self.check(self.library.mercury_rt_cuda_run(self.context, entry, None, stream))

    def launcher(self, kernel: str, *arguments: Any) -> Callable[[ctypes.c_void_p], int]:
        function = getattr(self.kernels, f"mercury_launch_{kernel}")
        types = kernel.removesuffix("_overwrite").split("_")
        real = ctypes.c_double if types[-2] == "f64" else ctypes.c_float
        given = [real(a) if isinstance(a, float) else a for a in arguments]
        flat = list(itertools.chain.from_iterable(map(flatten, given)))
        return lambda context: function(context, *flat)

    def launch(self, kernel: str, *arguments: Any) -> None:
        self.run(self.launcher(kernel, *arguments))

    def seconds(self, body: Callable[[ctypes.c_void_p], int], times: int = 20) -> float:
        """The time of one launch of many."""
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.run(body)
        best = math.inf
        for _ in range(3):
            events[0].record()
            self.run(lambda context: max(body(context) for _ in range(times)))
            events[1].record()
            self.torch.cuda.synchronize()
            best = min(best, events[0].elapsed_time(events[1]) / 1e3 / times)
        return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("do", choices=("make", "run"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, help="where libmercury_rt.so is")
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=CHECKS)
    parser.add_argument("--no-speed", action="store_true", help="compare results, time nothing")
    given = parser.parse_args()
    if given.do == "make":
        make(given.folder)
        return 0
    import kernel_checks  # noqa: PLC0415 (only where a GPU is)
    import kernel_speed  # noqa: PLC0415

    device = Device(given.build, given.folder)
    checks = kernel_checks.Checks(device)
    for check in given.only:
        before = len(checks.failures)
        getattr(checks, check)()
        failed = len(checks.failures) - before
        print(f"{check}: {checks.count} comparisons so far, {failed} wrong", flush=True)
        print(*checks.failures[before : before + 12], sep="\n", flush=True)
    if not given.no_speed:
        kernel_speed.measure(device)
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
