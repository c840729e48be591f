"""Kernels: how long local work takes, by its shape."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil, log

__all__ = ["KernelCurve", "Work"]


@dataclass(frozen=True, kw_only=True)
class Work:
    """One launch of a kernel.

    Attributes
    ----------
    flops
        Arithmetic that is really done; what a mask hides is not.
    rows, columns
        Of the result, which blocks cover; ``batch`` such results.
    batch
        Independent results: batch and heads.
    masked
        Whether a mask hides a part.
    """

    flops: float
    rows: float
    columns: float = 1
    batch: float = 1
    masked: bool = False


@dataclass(frozen=True, kw_only=True)
class KernelCurve:
    """Speed of a kernel, by the amount and the shape of its work.

    The rate comes from measured points and is then reduced by the last, partly filled wave
    of blocks: a result of ``rows x columns`` is cut into blocks, and ``units`` of them run
    at a time.

    Attributes
    ----------
    points
        Flops of a launch and flops per second, increasing; with full waves.
    block
        Rows and columns of a block; a column of 0 does not cut.
    units
        Blocks that run at a time.
    overhead
        Of a launch before and after its waves, in seconds.
    masked
        Of the rate, what is left when a mask cuts blocks.
    error
        A measurement may be off by so much of the time.
    library
        Whose kernel it is, as ``"cudnn"``: plans for the machine call it. Empty where plans
        take the kernel that Mercury generates.

    Examples
    --------
    >>> curve = KernelCurve(points=((1e9, 1e12),), block=(128, 128), units=4)
    >>> full, one_more = Work(flops=1e9, rows=256, columns=256), Work(flops=1e9, rows=257)
    >>> curve.efficiency(full), curve.efficiency(one_more)
    (1.0, 0.75)
    >>> curve.seconds(full)
    0.001
    """

    points: tuple[tuple[float, float], ...]
    block: tuple[int, int] = (1, 0)
    units: int = 1
    overhead: float = 0.0
    masked: float = 1.0
    error: float = 0.25
    library: str = ""

    def rate(self, flops: float) -> float:
        """Give the flops per second of full waves, between points by the log of the work."""
        work = [at for at, _ in self.points]
        if flops <= work[0]:
            return self.points[0][1]
        if flops >= work[-1]:
            return self.points[-1][1]
        upper = bisect_left(work, flops)
        (left, slow), (right, fast) = self.points[upper - 1 : upper + 1]
        return slow + (fast - slow) * log(flops / left) / log(right / left)

    def efficiency(self, work: Work) -> float:
        """Give the part of the waves that is filled, at most 1."""
        rows, columns = self.block
        blocks = work.batch * ceil(work.rows / rows) * ceil(work.columns / (columns or 1e30))
        if blocks <= 0:
            return 1.0
        return blocks / (self.units * ceil(blocks / self.units))

    def seconds(self, work: Work) -> float:
        """Give the time of a launch on a free device."""
        if work.flops <= 0:
            return 0.0
        rate = self.rate(work.flops) * self.efficiency(work)
        return self.overhead + work.flops / (rate * (self.masked if work.masked else 1.0))
