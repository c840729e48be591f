"""The programs of Schedules.h on GPUs: are they right, and how far from their floor.

    cmake -S lib/Runtime -B BUILD -DMERCURY_RT_TESTS=ON && cmake --build BUILD
    torchrun --nproc-per-node 2 test/Runtime/Cuda/by_hand.py --build BUILD --merge merge.ptx

The floor is the same work of one GPU in one library call, with all data already there. Floor
and programs take turns in one process group, all as CUDA graphs. The time of a round is the
maximum over the ranks; the ratio is the median over the rounds, with its 95% interval.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from host import BF16, Context, Runtime, Sizes, cudnn_attention, pointers

ATTENTION = [
    (1, 32, 4096),
    (1, 32, 16384),
    (1, 32, 65536),
    (16, 32, 4096),
    (1, 32, 262144),
]
PRODUCTS = [(8192, 8192, 28672), (16384, 8192, 8192), (4096, 4096, 14336)]

Work = Callable[[], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choices:
    """What a schedule may choose: cuts of a transfer, lanes of kernels."""

    chunks: int = 1
    lanes: int = 1


# --- Measuring ------------------------------------------------------------------------------


def graph_of(work: Work) -> Work:
    """The floor as a CUDA graph of PyTorch's."""
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def milliseconds(work: Work, times: int) -> float:
    """The time of one run, the maximum over the ranks."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    dist.barrier()
    begin.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    worst = torch.tensor(begin.elapsed_time(end) / times)
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return float(worst)


class Bench:
    """Measures programs and their floor in turns."""

    def __init__(self, runtime: Runtime, burst_ms: float, rounds: int) -> None:
        self.runtime, self.burst_ms, self.rounds = runtime, burst_ms, rounds

    def compare(
        self, name: str, floor: Work, programs: dict[Choices, Work], error: float
    ) -> None:
        work = [floor, *programs.values()]
        single = min(milliseconds(item, 1) for item in work for _ in range(2))
        times = max(1, min(50, int(self.burst_ms / single)))
        rounds = 5 if single > 200 else self.rounds
        samples = [[milliseconds(item, times) for item in work] for _ in range(rounds)]
        middle, spread = rounds // 2, max(1, int(0.98 * rounds**0.5))
        floors = sorted(row[0] for row in samples)
        say(f"{name}: floor {floors[middle]:.3f} ms, error {error:.1e}, {times} runs a round")
        for column, choices in enumerate(programs, 1):
            own = sorted(row[column] for row in samples)
            ratios = sorted(row[column] / row[0] for row in samples)
            low, high = (
                ratios[max(0, middle - spread)],
                ratios[min(rounds - 1, middle + spread)],
            )
            say(
                f"    chunks {choices.chunks}, lanes {choices.lanes}: {own[middle]:.3f} ms, "
                f"ratio {ratios[middle]:.3f} [{low:.3f}, {high:.3f}]"
            )

    def capture(
        self,
        contexts: contextlib.ExitStack,
        entry: Any,
        sizes: Sizes,
        tensors: Sequence[torch.Tensor],
        arenas: tuple[int, int],
        choices: Sequence[Choices],
        check: Callable[[], float],
    ) -> tuple[dict[Choices, Work], float]:
        """Capture a program with each choice, and check what it computes.

        Its arenas are the local and the symmetric one, in bytes.
        """
        programs, worst = {}, 0.0
        context = contexts.enter_context(Context(self.runtime, *arenas))
        for choice in choices:
            sizes.chunks, sizes.lanes = choice.chunks, choice.lanes
            programs[choice] = context.capture(entry, pointers(sizes, *tensors))
            for result in tensors[3:] or tensors[2:]:
                result.fill_(torch.nan)
            programs[choice]()
            context.synchronize()
            worst = max(worst, check())
        return programs, worst


def say(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)


def randn(*shape: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    values = torch.randn(*shape, generator=generator, device="cuda", dtype=torch.bfloat16)
    return (values * scale).contiguous()


def relative(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """The error, NaN included, as the maximum over the ranks."""
    error = (actual.double() - expected).norm() / expected.norm()
    worst = torch.nan_to_num(error, nan=1e9).cpu()
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return float(worst)


# --- The programs ---------------------------------------------------------------------------


def attention(bench: Bench, shape: tuple[int, int, int], choices: Sequence[Choices]) -> None:
    batch, heads, rows = shape
    ranks, rank, dim = dist.get_world_size(), dist.get_rank(), 128
    part = rows // ranks
    own = (batch, part, heads, dim)
    q = randn(*own, seed=1000 + rank)
    keys = [randn(*own, seed=2000 + r) for r in range(ranks)]
    values = [randn(*own, seed=3000 + r) for r in range(ranks)]
    k, v = keys[rank], values[rank]
    all_k, all_v = torch.cat(keys, 1), torch.cat(values, 1)
    del keys, values
    lse = torch.full((batch, heads, part), torch.nan, device="cuda")
    out = torch.full_like(q, torch.nan)
    sizes = Sizes(element=BF16, element_bytes=2, batch=batch, rows=part, heads=heads, dim=dim)
    sizes.merge_image = ctypes.cast(bench.runtime.image, ctypes.c_void_p)
    sizes.merge_image_bytes = len(bench.runtime.image)
    whole = [t.transpose(1, 2) for t in (q, all_k, all_v)]
    single, sums = cudnn_attention(*whole)
    allowed = 2 * attention_error(q, all_k, all_v, single.transpose(1, 2), sums[..., 0])
    del single, sums
    with contextlib.ExitStack() as contexts:
        programs, error = bench.capture(
            contexts,
            bench.runtime.schedules.schedule_attention,
            sizes,
            (q, k, v, out, lse),
            (2 * (ranks - 1) * k.nbytes, 0),
            choices,
            lambda: attention_error(q, all_k, all_v, out, lse),
        )
        if not error < allowed:
            raise AssertionError(
                f"attention is wrong: error {error}, of one call {allowed / 2}"
            )
        floor = graph_of(lambda: cudnn_attention(*whole))
        bench.compare(f"attention {batch}, {heads}, {rows}", floor, programs, error)


def attention_error(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor
) -> float:
    """Of 32 random rows, against float64."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    actual, expected = [], []
    for _ in range(32):
        b, r, h = (int(torch.randint(size, (1,), generator=generator)) for size in q.shape[:3])
        scores = k[b, :, h].double() @ q[b, r, h].double() / q.shape[-1] ** 0.5
        total = float(torch.logsumexp(scores, 0))
        if not abs(float(lse[b, h, r]) - total) < 1e-2:
            raise AssertionError(f"log-sum-exp is {float(lse[b, h, r])}, not {total}")
        actual.append(out[b, r, h])
        expected.append(torch.softmax(scores, 0) @ v[b, :, h].double())
    return relative(torch.stack(actual), torch.stack(expected))


def product_error(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """Of 64 x 64 random elements, against float64."""
    generator = torch.Generator(device="cuda").manual_seed(7)
    rows, columns = (
        torch.randint(size, (64,), generator=generator, device="cuda") for size in c.shape
    )
    error = relative(c[rows][:, columns], a[rows].double() @ b[:, columns].double())
    if not error < 5e-3:
        raise AssertionError(f"the product is wrong: error {error}")
    return error


def ag_gemm(bench: Bench, shape: tuple[int, int, int], choices: Sequence[Choices]) -> None:
    m, k, n = shape
    ranks, rank = dist.get_world_size(), dist.get_rank()
    parts = [randn(m // ranks, k, seed=1000 + r) for r in range(ranks)]
    a, all_a = parts[rank], torch.cat(parts)
    b = randn(k, n // ranks, seed=2000 + rank, scale=k**-0.5)
    c, single = (a.new_full((m, n // ranks), torch.nan) for _ in range(2))
    sizes = Sizes(element=BF16, element_bytes=2, m=m, k=k, n=n // ranks)
    with contextlib.ExitStack() as contexts:
        programs, error = bench.capture(
            contexts,
            bench.runtime.schedules.schedule_ag_gemm,
            sizes,
            (a, b, c),
            ((ranks - 1) * a.nbytes, 0),
            choices,
            lambda: product_error(c, all_a, b),
        )
        floor = graph_of(lambda: torch.mm(all_a, b, out=single))
        bench.compare(f"AG-GEMM {m}, {k}, {n}", floor, programs, error)


def gemm_rs(bench: Bench, shape: tuple[int, int, int], choices: Sequence[Choices]) -> None:
    m, k, n = shape
    ranks, rank = dist.get_world_size(), dist.get_rank()
    parts = [randn(m, k // ranks, seed=1000 + r) for r in range(ranks)]
    weights = [randn(k // ranks, n, seed=2000 + r, scale=k**-0.5) for r in range(ranks)]
    a, b = parts[rank], weights[rank]
    own = slice(rank * m // ranks, (rank + 1) * m // ranks)
    all_a, all_b = torch.cat([part[own] for part in parts], 1), torch.cat(weights)
    c, single = a.new_full((m // ranks, n), torch.nan), a.new_empty((m, n))
    sizes = Sizes(element=BF16, element_bytes=2, m=m, k=k // ranks, n=n)
    with contextlib.ExitStack() as contexts:
        programs, error = bench.capture(
            contexts,
            bench.runtime.schedules.schedule_gemm_rs,
            sizes,
            (a, b, c),
            (0, (ranks - 1) * c.nbytes),
            choices,
            lambda: product_error(c, all_a, all_b),
        )
        floor = graph_of(lambda: torch.mm(a, b, out=single))
        bench.compare(f"GEMM-RS {m}, {k}, {n}", floor, programs, error)


# --- One command ----------------------------------------------------------------------------


def choices_of(text: str) -> list[Choices]:
    """Read "1/2,2/1": the chunks and the lanes of each choice."""
    rows = [[int(number) for number in part.split("/")] for part in text.split(",")]
    return [Choices(chunks=chunks, lanes=lanes) for chunks, lanes in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="of the runtime")
    parser.add_argument("--merge", type=pathlib.Path, required=True, help="PTX of the merge")
    parser.add_argument("--burst-ms", type=float, default=10, help="the work between barriers")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--attention", type=choices_of, default="1/1")
    parser.add_argument("--ag-gemm", type=choices_of, default="1/1")
    parser.add_argument("--gemm-rs", type=choices_of, default="2/1")
    parser.add_argument("--largest", type=int, default=1 << 18, help="rows of attention")
    arguments = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo")
    bench = Bench(
        Runtime(arguments.build, arguments.merge), arguments.burst_ms, arguments.rounds
    )
    begin = time.perf_counter()
    for shape in ATTENTION:
        if arguments.attention and shape[2] <= arguments.largest:
            attention(bench, shape, arguments.attention)
        torch.cuda.empty_cache()
    for shape in PRODUCTS:
        ag_gemm(bench, shape, arguments.ag_gemm)
        gemm_rs(bench, shape, arguments.gemm_rs)
        torch.cuda.empty_cache()
    say(f"measured in {time.perf_counter() - begin:.0f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
