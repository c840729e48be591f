"""Whether a copy within a GPU runs beside a kernel of a library.

    python test/Gpu/beside.py

Prints what each kernel leaves of a multiprocessor, and then, for copies of 128 MiB by the
driver and by kernels of a single warp a block (so small that one fits where any would),
how long two calls take alone and beside the copy, and how long the copy takes alone and
beside them. Needs nvcc.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

BYTES = 128 << 20
HEADS, ROWS, DEPTH, BATCH = 16, 4096, 128, 8
MULTIPROCESSOR = {"registers": 65536, "shared memory": 233472}
SOURCE = Path(__file__).with_suffix(".cu")

Work = Callable[[], object]
Copy = Callable[[torch.cuda.Stream], None]


def attention(causal: bool, gradients: bool) -> Work:
    """cuDNN's attention of 8 batches and 16 heads of 4096 rows, forward or backward."""
    q, k, v, d_out = (
        torch.randn(BATCH, HEADS, ROWS, DEPTH, device="cuda", dtype=torch.bfloat16)
        for _ in range(4)
    )
    forward = torch.ops.aten._scaled_dot_product_cudnn_attention
    backward = torch.ops.aten._scaled_dot_product_cudnn_attention_backward
    if not gradients:
        return lambda: forward(q, k, v, None, True, 0.0, causal, False)
    out, lse, cum_q, cum_k, max_q, max_k, seed, offset, _ = forward(
        q, k, v, None, True, 0.0, causal, False
    )
    return lambda: backward(
        *(d_out, q, k, v, out, lse, seed, offset, None, cum_q, cum_k, max_q, max_k, 0.0, causal)
    )


def works() -> dict[str, Work]:
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    return {
        "attention": attention(False, False),
        "causal": attention(True, False),
        "gradients": attention(False, True),
        "product": lambda: x @ x,
    }


def check(code: int, what: str) -> None:
    if code:
        sys.exit(f"{what} gave CUDA error {code}")


def copies(source: torch.Tensor, target: torch.Tensor) -> dict[str, Copy]:
    """The driver's copy, and kernels with a block a multiprocessor."""
    driver = ctypes.CDLL("libcuda.so.1")
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "copies.cubin")
        subprocess.run(["nvcc", "-arch=native", "-cubin", SOURCE, "-o", cubin], check=True)
        module = ctypes.c_void_p()
        check(
            driver.cuModuleLoadData(ctypes.byref(module), cubin.read_bytes()),
            "cuModuleLoadData",
        )
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    addresses = ctypes.c_uint64(source.data_ptr()), ctypes.c_uint64(target.data_ptr())
    values = *addresses, ctypes.c_uint(BYTES)
    pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))

    def by_driver(stream: torch.cuda.Stream) -> None:
        begin, end = addresses
        handle = ctypes.c_void_p(stream.cuda_stream)
        check(
            driver.cuMemcpyDtoDAsync_v2(end, begin, ctypes.c_size_t(BYTES), handle), "the copy"
        )

    def by_kernel(name: str) -> Copy:
        function = ctypes.c_void_p()
        found = driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        check(found, "cuModuleGetFunction")

        def launch(stream: torch.cuda.Stream, _: object = values) -> None:
            handle = ctypes.c_void_p(stream.cuda_stream)
            shape = blocks, 1, 1, 32, 1, 1
            check(driver.cuLaunchKernel(function, *shape, 0, handle, pointers, None), name)

        return launch

    names = ("by_registers", "by_bulk")
    return {"driver": by_driver, **{name: by_kernel(name) for name in names}}


def leaves(work: Work) -> str:
    """What the largest kernel of some work leaves of a multiprocessor."""
    work()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profile.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    largest = max(kernels, key=lambda event: event["dur"])["args"]
    threads = largest["block"][0] * largest["block"][1] * largest["block"][2]
    used = {
        "registers": threads * largest["registers per thread"],
        "shared memory": largest["shared memory"],
    }
    return ", ".join(f"{MULTIPROCESSOR[what] - used[what]} of {what}" for what in used)


def milliseconds(
    work: Work | None, copy: Copy | None, streams: list[torch.cuda.Stream]
) -> list[float]:
    """From the begin of the work: when two calls of it end, when the copy begins and ends."""
    first, second = streams
    begin, end, copied_from, copied = (torch.cuda.Event(enable_timing=True) for _ in range(4))
    with torch.cuda.stream(first):
        torch.cuda._sleep(400_000)
        begin.record()
        for _ in range(2 if work else 0):
            assert work
            work()
        end.record()
    with torch.cuda.stream(second):
        second.wait_event(begin)
        torch.cuda._sleep(200_000 if work else 1)
        copied_from.record()
        if copy:
            copy(second)
        copied.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(event) for event in (end, copied_from, copied)]


def main() -> int:
    """Print a line for each work and copy; fail where a copy is wrong."""
    source = torch.randint(0, 255, (BYTES,), dtype=torch.uint8, device="cuda")
    target = torch.zeros_like(source)
    streams = [torch.cuda.Stream(), torch.cuda.Stream(priority=-5)]
    wrong = 0

    def median(work: Work | None, copy: Copy | None) -> list[float]:
        times = [milliseconds(work, copy, streams) for _ in range(6)][1:]
        return [statistics.median(column) for column in zip(*times, strict=True)]

    for name, work in works().items():
        print(f"{name} leaves {leaves(work)}", flush=True)
        alone = median(work, None)[0]
        for how, copy in copies(source, target).items():
            _, begin, end = median(None, copy)
            target.zero_()
            beside, copied_from, copied = median(work, copy)
            right = torch.equal(source, target)
            wrong += not right
            print(
                f"  {how:12} {'right' if right else 'WRONG'}: "
                f"work {alone:.3f} ms alone, {beside:.3f} beside; "
                f"copy {end - begin:.3f} alone, {copied - copied_from:.3f} beside"
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
