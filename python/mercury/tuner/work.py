"""How much a rank computes at least: arithmetic, what a mask leaves of it, and merges."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..dsl import Mask
from ..dsl.nodes import Dim, Kernel, Store, Tile
from ..topology import KernelCurve, Machine, Work
from .memory import shard_intervals, shard_lengths
from .placed import Loop, Placed
from .widths import DTYPE_BYTES

if TYPE_CHECKING:
    from .space import Candidate

__all__ = ["is_masked", "least_compute_seconds", "visible_share"]

Intervals = tuple[tuple[int, int], ...]
# What a library hands over as a partial result has no narrower elements.
_LEAST_BYTES = 2


def least_compute_seconds(candidate: Candidate, machine: Machine) -> float:
    """Give a time that the fullest rank's kernels and merges need at least."""
    program, placed = candidate.schedule.program, candidate.placed
    total = 0.0
    for nest, loops in zip(program.nests, placed.nests, strict=True):
        tiles = _Tiles(placed, loops)
        masked = any(is_masked(op) for op in nest.ops if isinstance(op, Kernel))
        for op in nest.ops:
            if isinstance(op, Kernel):
                total += _kernel(op, placed, loops, tiles, machine)
            elif isinstance(op, Store) and op.merge is not None and not masked:
                total += _merges(op, loops, tiles, machine)
    return total


def is_masked(kernel: Kernel) -> bool:
    """Whether a mask hides pairs of a kernel."""
    return kernel.mask is not None and str(kernel.mask) != "full"


class _Tiles:
    """The tiles of a nest's steps on the fullest rank: how many, and their mean extents."""

    def __init__(self, placed: Placed, loops: tuple[Loop, ...]) -> None:
        levels: dict[str, tuple[str, ...]] = {}
        parts: dict[str, int] = {}
        for loop in loops:
            spread = placed.levels_of_axes(loop)
            for axis in loop.axes:
                levels[axis] = (*levels.get(axis, ()), *spread[axis])
                own = loop.parts if len(loop.axes) == 1 and not loop.levels else 1
                parts[axis] = parts.get(axis, 1) * own
        self.steps = prod(loop.parts for loop in loops if not loop.levels)
        self.extents: dict[str, float] = {}
        # Pieces of a tile are launched by themselves; steps that overlap share waves.
        self.even = not placed.overlaps and all(
            loop.shift is None or loop.shift.chunks == 1 for loop in loops
        )
        for axis, over in levels.items():
            extent = placed.extents[axis]
            # Ranks have equal shares of each of a tile's parts, whatever sizes these have.
            layout = placed.layouts[axis]
            shares = "block" if parts[axis] > 1 and layout.startswith("bounds") else layout
            lengths = shard_lengths(placed.levels, over, extent, 1, shares)
            most = int(lengths.max(initial=0))
            # All parts of all shards are alike when their number divides the axis.
            shards = prod(placed.size(level) for level in over)
            self.even &= extent % (shards * parts[axis]) == 0
            self.even &= layout == "block"
            self.extents[axis] = most / parts[axis]

    def dim(self, dim: Dim) -> float:
        """Give the mean size of a dimension."""
        if dim.axis is None:
            return float(dim.value)
        return self.extents.get(dim.axis.name, float(dim.axis.extent)) / dim.value

    def elements(self, tile: Tile) -> float:
        """Give the mean number of a tile's elements."""
        return prod(self.dim(dim) for dim in tile.dims)


def _kernel(
    kernel: Kernel, placed: Placed, loops: tuple[Loop, ...], tiles: _Tiles, machine: Machine
) -> float:
    curve = machine.kernel(kernel.name)
    if kernel.name in ("attention_fwd", "attention_bwd"):
        q, k, v = kernel.inputs[:3]
        b, sq, h, d = map(tiles.dim, q.dims)
        sk, dv = tiles.dim(k.dims[1]), tiles.dim(v.dims[-1])
        backward = kernel.name == "attention_bwd"
        width = 3 * d + 2 * dv if backward else d + dv
        flops = 2 * b * h * sq * sk * width
        work = Work(flops=flops, rows=sk if backward else sq, batch=b * h)
        if is_masked(kernel):
            queries, keys = q.dims[1].axis, k.dims[1].axis
            assert kernel.mask is not None
            if queries is not None and keys is not None:
                flops *= visible_share(placed, loops, kernel.mask, queries.name, keys.name)
            return _fastest(curve, flops * tiles.steps)
    elif kernel.name == "matmul":
        a, b_ = kernel.inputs[:2]
        m, inner, n = tiles.dim(a.dims[0]), tiles.dim(a.dims[-1]), tiles.dim(b_.dims[-1])
        work = Work(flops=2 * m * n * inner, rows=m, columns=n)
    else:
        # Of a kernel that is not known: every operand once through memory.
        moved = sum(tiles.elements(tile) * DTYPE_BYTES[tile.dtype] for tile in kernel.inputs)
        return tiles.steps * moved / machine.fastest_move
    if not tiles.even:
        return _fastest(curve, work.flops * tiles.steps)
    one = curve.seconds(work)
    return tiles.steps * (one + machine.launch) if one else 0.0


def _fastest(curve: KernelCurve, flops: float) -> float:
    """Give the time of some work that launches of any size share."""
    return flops / max(rate for _, rate in curve.points)


def _merges(store: Store, loops: tuple[Loop, ...], tiles: _Tiles, machine: Machine) -> float:
    """Merging partial results: each but the first is read. A sum is made as it goes."""
    assert store.merge is not None
    over = {axis.name for axis in store.merge.over}
    reducing = prod(loop.parts for loop in loops if not loop.levels and set(loop.axes) & over)
    if reducing == 1 or store.merge.kind == "sum":
        return 0.0
    elements = sum(tiles.elements(each) for each in store.tiles)
    merges = tiles.steps - tiles.steps / reducing
    return merges * elements * _LEAST_BYTES / machine.fastest_move


def visible_share(
    placed: Placed, loops: tuple[Loop, ...], mask: Mask, queries: str, keys: str
) -> float:
    """Give the pairs that a mask leaves the busiest rank, of all of a rank's pairs."""

    def spread(axis: str) -> tuple[tuple[str | int, ...], int]:
        """Give the factors of the axis, and its extent."""
        factors: list[str | int] = []
        for loop in loops:
            if axis in loop.axes and loop.parts > 1:
                factors += loop.levels or (loop.parts,)
        while factors and isinstance(factors[-1], int):
            factors.pop()
        return tuple(factors), placed.extents[axis]

    return _visible_share(
        placed.levels,
        (*spread(queries), placed.layouts[queries]),
        (*spread(keys), placed.layouts[keys]),
        mask,
    )


@lru_cache(maxsize=1 << 12)
def _visible_share(
    levels: tuple[tuple[str, int], ...],
    queries: tuple[tuple[str | int, ...], int, str],
    keys: tuple[tuple[str | int, ...], int, str],
    mask: Mask,
) -> float:
    of_queries, of_keys = shard_intervals(levels, *queries), shard_intervals(levels, *keys)
    ranks = dict.fromkeys(zip(of_queries, of_keys, strict=True))
    most = max((visible_pairs(mask, *own) for own in ranks), default=0.0)
    whole = max((_length(q) * _length(k) for q, k in ranks), default=0)
    return most / whole if whole else 0.0


def _length(intervals: Intervals) -> int:
    return sum(high - low for low, high in intervals)


def visible_pairs(mask: Mask, queries: Intervals, keys: Intervals) -> float:
    """Count the pairs of some queries and keys that a mask leaves.

    Examples
    --------
    >>> from mercury import causal
    >>> [visible_pairs(causal(), ((0, 4),), ((low, 4),)) for low in (0, 2, 4)]
    [10.0, 3.0, 0.0]
    """
    documents = [(0, 1 << 62)]
    if mask.documents:
        documents = list(pairwise(mask.documents))
    total = 0.0
    for low, high in documents:
        for a, b in queries:
            for c, d in keys:
                q, k = (max(a, low), min(b, high)), (max(c, low), min(d, high))
                if q[0] < q[1] and k[0] < k[1]:
                    total += _window_pairs(mask, q, k)
    return total


def _window_pairs(mask: Mask, q: tuple[int, int], k: tuple[int, int]) -> float:
    size = k[1] - k[0]
    # Keys up to the right end of the window, without those before its left end.
    upper = (
        float(size) * (q[1] - q[0])
        if mask.right is None
        else _clamped_sum(q, mask.right + 1 - k[0], size)
    )
    lower = 0.0 if mask.left is None else _clamped_sum(q, -mask.left - k[0], size)
    return upper - lower


def _clamped_sum(q: tuple[int, int], add: int, most: int) -> float:
    """Give the sum over i in q of i + add, at least 0 and at most ``most``."""
    first = int(np.clip(-add, q[0], q[1]))  # from here on above 0
    full = int(np.clip(most - add, first, q[1]))  # from here on at most
    count = full - first
    rising = count * (first + add) + count * (count - 1) / 2
    return float(rising + most * (q[1] - full))
