"""What a rank holds of the buffers outside of a plan: its shards."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..dsl.nodes import Buffer
from .placed import Cut
from .widths import DTYPE_BYTES

if TYPE_CHECKING:
    from .space import Candidate

__all__ = ["boundary_bytes", "shard_intervals", "shard_lengths"]

Lengths = NDArray[np.int64]


def boundary_bytes(candidate: Candidate) -> int:
    """Give the bytes of the shards that the fullest rank holds outside the program.

    Returns
    -------
    int
        Inputs and outputs, without the arenas.
    """
    placed = candidate.placed
    ranks = prod(size for _, size in placed.levels)
    total = np.zeros(ranks, np.int64)
    for buffer in candidate.schedule.program.buffers:
        total += _buffer_bytes(candidate, buffer, placed.boundary[buffer.name])
    return int(total.max(initial=0))


def _buffer_bytes(candidate: Candidate, buffer: Buffer, cuts: tuple[Cut, ...]) -> Any:
    of_axis = {cut.axis: cut for cut in cuts}
    found: Any = DTYPE_BYTES[buffer.dtype]
    for dim in buffer.dims:
        if dim.axis is None:
            found = found * dim.value
        elif dim.axis.name not in of_axis:
            found = found * dim.extent
        else:
            cut = of_axis[dim.axis.name]
            layout = cut.layout or dim.axis.layout
            found = found * shard_lengths(
                candidate.placed.levels, cut.factors, dim.axis.extent, dim.value, layout
            )
    return found


@lru_cache(maxsize=1 << 14)
def shard_lengths(
    levels: tuple[tuple[str, int], ...],
    factors: tuple[str | int, ...],
    extent: int,
    divisor: int,
    layout: str,
) -> Lengths:
    """Give how many positions of a cut axis each rank holds.

    Parameters
    ----------
    levels
        Of the mesh, with sizes.
    factors
        The cut: levels, and numbers that stay inside a rank.
    extent, layout
        Of the axis.
    divisor
        Positions of the axis for one of the buffer's (grouped heads).

    Examples
    --------
    >>> shard_lengths((("gpu", 4),), ("gpu",), 10, 1, "block").tolist()
    [3, 2, 3, 2]
    """
    return np.array(
        [
            _union({(a // divisor, -(-b // divisor)) for a, b in held})
            for held in shard_intervals(levels, factors, extent, layout)
        ],
        np.int64,
    )


@lru_cache(maxsize=1 << 14)
def shard_intervals(
    levels: tuple[tuple[str, int], ...],
    factors: tuple[str | int, ...],
    extent: int,
    layout: str,
) -> list[tuple[tuple[int, int], ...]]:
    """Give the intervals of positions of a cut axis that each rank holds.

    See `shard_lengths`.
    """
    from .._mlir import ir  # noqa: PLC0415 (no work at import)
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415

    sizes = dict(levels)
    counts = [sizes[f] if isinstance(f, str) else f for f in factors]
    shards = prod(counts)
    with ir.Context():
        cut = ir.Attribute.parse(f"#commir.layout<{layout}>")
        intervals = [_mercury.layout_shard(cut, extent, shards, n) for n in range(shards)]
    shape = list(sizes.values())
    found = []
    for rank in range(prod(shape)):
        at = dict(zip(sizes, np.unravel_index(rank, shape), strict=True))
        own = [[int(at[f])] if isinstance(f, str) else range(f) for f in factors]
        held: list[tuple[int, int]] = []
        for index in np.ndindex(*[len(choice) for choice in own]):
            flat = 0
            for choice, i, size in zip(own, index, counts, strict=True):
                flat = flat * size + choice[i]
            held += [(a, b) for a, b in intervals[flat] if a < b]
        found.append(tuple(sorted(held)))
    return found


def _union(intervals: set[tuple[int, int]]) -> int:
    """Give the number of positions that some intervals cover."""
    total, end = 0, 0
    for low, high in sorted(intervals):
        total += max(0, high - max(low, end))
        end = max(end, high)
    return total
