"""Kernels: how long local work takes, by its shape."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil, log

__all__ = ["MASKED_KEYS", "KernelCurve", "Work"]

# The harmonic mean of the keys of a row in the shapes that `topology probe` gives a mask, which
# costs as many keys whatever there are. Files without a number have the mean of their costs.
MASKED_KEYS = 2520.0


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
    edge, hidden
        Of one key more in each row that the border of a mask cuts, and of all that it hides.
    """

    flops: float
    rows: float
    columns: float = 1
    batch: float = 1
    edge: float = 0.0
    hidden: float = 0.0


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
    masked, masked_keys
        Of the rate, what a mask leaves where it leaves so many keys of a row. Blocks do whole
        tiles along its border, which is less of the work of a row that has more.
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
    masked_keys: float = MASKED_KEYS
    error: float = 0.25
    library: str = ""

    @property
    def edge(self) -> float:
        """For how many keys a row works, beside those that a mask leaves it.

        Examples
        --------
        >>> KernelCurve(points=((1e9, 1e12),), masked=0.8, masked_keys=1024).edge
        256.0
        """
        return (1 / self.masked - 1) * self.masked_keys

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
        return self.overhead + (work.flops + min(self.edge * work.edge, work.hidden)) / rate
