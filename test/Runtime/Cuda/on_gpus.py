"""The backend on real GPUs: replays, messages, a late rank, and the host's time.

torchrun --nproc-per-node 2 test/Runtime/Cuda/on_gpus.py --build BUILD --merge merge.ptx
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from by_hand import relative, say
from host import BF16, Context, Runtime, Sizes, cudnn_attention, pointers


def replay_many(runtime: Runtime, times: int = 1000) -> None:
    """Replays with inputs that change each time, and a rank that is late."""
    ranks, rank, part, heads = dist.get_world_size(), dist.get_rank(), 256, 4
    shape = (1, part, heads, 128)
    q, k, v = (torch.empty(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out, lse = torch.empty_like(q), torch.empty((1, heads, part), device="cuda")
    sizes = Sizes(
        element=BF16, element_bytes=2, batch=1, rows=part, heads=heads, dim=128, lanes=2
    )
    sizes.merge_image = ctypes.cast(runtime.image, ctypes.c_void_p)
    sizes.merge_image_bytes = len(runtime.image)
    generators = [torch.Generator(device="cuda").manual_seed(r) for r in range(ranks)]
    worst = torch.zeros((), device="cuda")
    k.normal_(), v.normal_(), q.normal_()
    with Context(runtime, 2 * (ranks - 1) * k.nbytes) as context:
        replay = context.capture(
            runtime.schedules.schedule_attention, pointers(sizes, q, k, v, out, lse)
        )
        late = torch.randint(
            ranks + 2, (times,), generator=torch.Generator().manual_seed(5)
        ).tolist()
        for round_number in range(times):
            whole = [
                torch.cat(
                    [
                        torch.randn(shape, generator=g, device="cuda", dtype=torch.bfloat16)
                        for g in generators
                    ],
                    1,
                )
                for _ in range(2)
            ]
            k.copy_(whole[0][:, rank * part : (rank + 1) * part])
            v.copy_(whole[1][:, rank * part : (rank + 1) * part])
            if late[round_number] == rank:
                torch.cuda._sleep(400_000)
            if round_number % 10 == 9:
                context.run(
                    runtime.schedules.schedule_attention, pointers(sizes, q, k, v, out, lse)
                )
            else:
                replay()
            expected, _ = cudnn_attention(*(t.transpose(1, 2) for t in (q, *whole)))
            difference = out.float() - expected.transpose(1, 2).float()
            error = difference.norm() / expected.float().norm()
            worst = torch.maximum(worst, torch.nan_to_num(error, nan=1e9))
        context.synchronize()
        error = relative(1 + worst, torch.ones((), device="cuda", dtype=torch.float64))
        if not error < 1e-2:
            raise AssertionError(f"a replay is wrong: error {error}")
        say(f"{times} replays with new inputs and a late rank: worst error {error:.1e}")


def messages(runtime: Runtime) -> None:
    """NCCL's messages, run and captured."""
    ranks, rank, size = dist.get_world_size(), dist.get_rank(), 1 << 20
    with Context(runtime, size, communicators=True) as context:
        for uneven in (0, 1):
            src = torch.randint(1, 100, (size,), device="cuda", dtype=torch.uint8)
            dst, slots = torch.zeros_like(src), src.new_zeros((ranks, size))
            all_src = [torch.empty_like(src.cpu()) for _ in range(ranks)]
            dist.all_gather(all_src, src.cpu())
            sizes = Sizes(m=size, k=uneven)
            replay = context.capture(
                runtime.schedules.schedule_messages, pointers(sizes, src, dst, slots)
            )
            for _ in range(3):
                dst.zero_(), slots.zero_()
                replay()
                context.synchronize()
                for r in range(ranks):
                    given = size - r * uneven
                    if not (
                        torch.equal(slots[r, :given].cpu(), all_src[r][:given])
                        and torch.equal(dst, src)
                    ):
                        raise AssertionError(f"messages are wrong on rank {rank}")
    say("messages by NCCL, even and uneven, run and replayed: right")


def host_time(runtime: Runtime) -> None:
    """What a run costs the host outside a graph, kernels aside."""
    size = 1 << 20
    a, b, c = (torch.zeros(size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    ranks = dist.get_world_size()
    sizes = Sizes(element=BF16, element_bytes=2, m=8 * ranks, k=64, n=64, chunks=8, lanes=1)
    # Open, close, own product; address, pull, wait and product of each part.
    calls = 3 + 4 * 8 * (ranks - 1)
    nothing = runtime.schedules.schedule_nothing
    with Context(runtime, size, kernels={b"test.matmul": nothing}) as context:
        buffers = pointers(sizes, a, b, c)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        entry, times = runtime.schedules.schedule_ag_gemm, []
        for _ in range(200):
            context.synchronize()
            begin = time.perf_counter()
            runtime.library.mercury_rt_cuda_run(context.handle, entry, buffers, stream)
            times.append(time.perf_counter() - begin)
        context.synchronize()
        each = sorted(times)[100] / calls * 1e6
        say(f"host time of a call outside a graph: {each:.2f} us ({calls} calls a run)")


def late_rank(runtime: Runtime) -> None:
    """A rank that never comes ends the others within the deadline."""
    size = 1 << 16
    a, b, c = (torch.zeros(size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    sizes = Sizes(
        element=BF16,
        element_bytes=2,
        m=8 * dist.get_world_size(),
        k=64,
        n=64,
        chunks=1,
        lanes=1,
    )
    context = Context(runtime, size, deadline_ms=2000)
    replay = context.capture(runtime.schedules.schedule_ag_gemm, pointers(sizes, a, b, c))
    dist.barrier()
    begin, text = time.perf_counter(), ""
    if dist.get_rank() == 0:
        replay()
        try:
            context.synchronize()
        except RuntimeError as error:
            text = str(error)
    seconds = time.perf_counter() - begin
    dist.barrier()
    context.__exit__()
    if dist.get_rank() == 0 and not ("status 5" in text and seconds < 5):
        raise AssertionError(f"a late rank was not found: {seconds:.1f} s, {text}")
    say(f"a rank that never comes, after {seconds:.1f} s: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="of the runtime")
    parser.add_argument("--merge", type=pathlib.Path, required=True, help="PTX of the merge")
    arguments = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo")
    runtime = Runtime(arguments.build, arguments.merge)
    for step in (replay_many, messages, host_time, late_rank):
        step(runtime)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
