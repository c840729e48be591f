"""``mercury bench kernels``: how fast one GPU computes and copies, by shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..topology import Work as Shape
from . import cudnn
from .errors import AbsentError
from .links import time_in_graph
from .problems.tensors import normal
from .processes import Processes, Work, say
from .statistics import middle

__all__ = ["KernelPoint", "kernel_table", "measure_kernels"]

_DEPTH = 128
_SETTLE_MS = 100.0
PRODUCTS = (
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (2048, 4096, 7168),
    (4096, 4096, 7168),
    (8192, 4096, 4096),
    (4096, 8192, 14336),
    (8192, 8192, 8192),
    (16384, 8192, 4096),
    (8192, 8192, 14336),
)
ATTENTION = (
    (1, 32, 2048, 2048),
    (1, 32, 2048, 4096),
    (1, 32, 4096, 4096),
    (16, 32, 2048, 2048),
    (16, 32, 4096, 4096),
    (1, 32, 8192, 8192),
    (1, 32, 8192, 16384),
    (1, 32, 16384, 16384),
    (1, 32, 32768, 32768),
)
COPIES_MIB = (16, 256, 2048)


@dataclass(frozen=True, kw_only=True)
class KernelPoint:
    """The time of one launch.

    Attributes
    ----------
    kernel
        As topologies name it; ``"copy"`` for a copy in the GPU's own memory and ``"launch"``
        for a kernel that does nothing.
    shape
        For people.
    work
        Arithmetic and the shape of the result; its flops are bytes read and written of a copy.
    ms, low, high
        Median time, and its interval of 95 %.
    """

    kernel: str
    shape: str
    work: Shape
    ms: float
    low: float
    high: float

    @property
    def rate(self) -> float:
        """Flops, or bytes, per second."""
        return self.work.flops / self.ms * 1000


def measure_kernels(
    on: Processes, *, rounds: int = 9, burst_ms: float = 8.0, largest: int = 1 << 62
) -> list[KernelPoint]:
    """Measure products, attention, copies and an empty launch.

    Parameters
    ----------
    on
        The processes; all measure at once, and the slowest counts.
    rounds, burst_ms
        How often, and how much work between two looks at the clock.
    largest
        Leave out what does more arithmetic.
    """
    points = []
    for kernel, shape, size, make in _cases(on):
        if size.flops > largest:
            continue
        try:
            work = make()
            work()
            once = on.milliseconds(work, 2)
            # Clocks fall under load, and plans run one after another: so does this.
            on.milliseconds(work, max(1, min(1000, round(_SETTLE_MS / max(once, 1e-3)))))
            repeat = max(1, min(64, round(burst_ms / max(once, 1e-3))))
            seen = middle(time_in_graph(on, work, repeat=repeat, rounds=rounds))
        except AbsentError as error:
            say(on, f"{kernel} {shape} left out: {error.message}")
            continue
        points.append(
            KernelPoint(
                kernel=kernel,
                shape=shape,
                work=size,
                ms=seen.median,
                low=seen.low,
                high=seen.high,
            )
        )
    return points


def _cases(on: Processes) -> Iterator[tuple[str, str, Shape, Any]]:
    torch = on.torch
    yield "launch", "", Shape(flops=1, rows=1), lambda: _nothing(on)
    for mib in COPIES_MIB:
        size = mib << 20
        yield (
            "copy",
            f"{mib} MiB",
            Shape(flops=2 * size, rows=size),
            lambda size=size: _copy(on, size),
        )
    # The smallest first: what every launch costs.
    for m, k, n in ((128, 128, 128), *PRODUCTS):
        work = Shape(flops=2.0 * m * k * n, rows=m, columns=n)
        yield (
            "matmul",
            f"{m} x {k} x {n}",
            work,
            lambda m=m, k=k, n=n: _product(on, torch, m, k, n),
        )
    for kernel, factor, shapes in (
        ("attention_fwd", 4.0, ((1, 1, 128, 128), *ATTENTION)),
        ("attention_bwd", 10.0, ((1, 1, 128, 128), *ATTENTION[2:])),
    ):
        for b, h, sq, sk in shapes:
            for causal in (False, True) if sq == sk and sq > 128 else (False,):
                flops = factor * b * h * sq * sk * _DEPTH * (0.5 if causal else 1.0)
                edge = factor * b * h * sq * _DEPTH if causal else 0.0
                hidden = flops if causal else 0.0
                work = Shape(flops=flops, rows=sq, batch=b * h, edge=edge, hidden=hidden)
                text = f"{b}, {h}, {sq} x {sk}" + (" causal" if causal else "")
                yield (
                    kernel,
                    text,
                    work,
                    lambda kernel=kernel, shape=(b, h, sq, sk), causal=causal: _attention(
                        on, kernel, shape, causal
                    ),
                )


def _nothing(on: Processes) -> Work:
    tensor = on.torch.zeros(1, device=on.device)
    return lambda: tensor.add_(1)


def _copy(on: Processes, size: int) -> Work:
    one, other = (
        on.torch.empty(size, dtype=on.torch.uint8, device=on.device) for _ in range(2)
    )
    return lambda: other.copy_(one)


def _product(on: Processes, torch: Any, m: int, k: int, n: int) -> Work:
    a, b = normal(on, m, k, seed=1), normal(on, k, n, seed=2, scale=k**-0.5)
    c = a.new_empty((m, n))
    return lambda: torch.mm(a, b, out=c)


def _attention(
    on: Processes, kernel: str, shape: tuple[int, int, int, int], causal: bool
) -> Work:
    b, h, sq, sk = shape
    q = normal(on, b, sq, h, _DEPTH, seed=1)
    k, v = (normal(on, b, sk, h, _DEPTH, seed=seed) for seed in (2, 3))
    if kernel == "attention_fwd":
        return lambda: cudnn.attention(on.torch, q, k, v, causal=causal)
    o, lse = cudnn.attention(on.torch, q, k, v, causal=causal)
    grad = normal(on, b, sq, h, _DEPTH, seed=4)
    return lambda: cudnn.attention_backward(on.torch, grad, q, k, v, o, lse, causal=causal)


def kernel_table(points: Sequence[KernelPoint]) -> str:
    """Give a Markdown table: a row a shape."""
    lines = ["| kernel | shape | ms | rate |", "| --- | --- | --- | --- |"]
    for point in points:
        rate = (
            f"{point.rate / 1e9:,.0f} GB/s"
            if point.kernel == "copy" or point.kernel.startswith("move ")
            else "-"
            if point.kernel == "launch"
            else f"{point.rate / 1e12:.0f} TFLOP/s"
        )
        low, high = (f"{value:.4f}" for value in (point.low, point.high))
        lines.append(
            f"| {point.kernel} | {point.shape} | {point.ms:.4f} [{low}, {high}] | {rate} |"
        )
    return "\n".join(lines)
