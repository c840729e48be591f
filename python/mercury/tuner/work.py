"""How much a rank computes: launches, arithmetic, and what a mask leaves of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from math import ceil, prod

import numpy as np

from ..dsl import Mask
from ..dsl.nodes import Dim, Kernel, Store, Tile
from ..topology import Machine, Work
from .memory import DTYPE_BYTES, shard_intervals, shard_lengths
from .placed import Loop, Placed
from .space import Candidate

__all__ = ["compute_seconds", "visible_share"]

Intervals = tuple[tuple[int, int], ...]


def compute_seconds(candidate: Candidate, machine: Machine) -> tuple[float, float]:
    """Give the time of a rank's kernels, and by how much of it they may be off."""
    program, placed = candidate.schedule.program, candidate.placed
    total = off = 0.0
    for nest, loops in zip(program.nests, placed.nests, strict=True):
        steps = prod(loop.parts for loop in loops if not loop.levels)
        extents = _tile_extents(placed, loops)
        for kernel in nest.ops:
            if isinstance(kernel, Kernel):
                seconds = _kernel(kernel, placed, loops, extents, steps, machine)
                total += seconds
                off += seconds * machine.kernel(kernel.name).error
            elif isinstance(kernel, Store) and kernel.merge is not None:
                total += _merges(kernel, loops, extents, steps, machine)
    return total, off / total if total else 0.0


def _tile_extents(placed: Placed, loops: tuple[Loop, ...]) -> dict[str, float]:
    """Give the positions of each axis in the tile of one step, on the fullest rank."""
    levels: dict[str, tuple[str, ...]] = {}
    steps: dict[str, int] = {}
    for loop in loops:
        spread = placed.levels_of_axes(loop)
        for axis in loop.axes:
            levels[axis] = (*levels.get(axis, ()), *spread[axis])
            own = loop.parts if len(loop.axes) == 1 and not loop.levels else 1
            steps[axis] = steps.get(axis, 1) * own
    return {
        axis: float(
            shard_lengths(
                placed.levels, own, placed.extents[axis], 1, placed.layouts[axis]
            ).max(initial=0)
        )
        / steps[axis]
        for axis, own in levels.items()
    }


def _size(tile: Tile, extents: Mapping[str, float]) -> float:
    return prod(_dim(dim, extents) for dim in tile.dims)


def _kernel(
    kernel: Kernel,
    placed: Placed,
    loops: tuple[Loop, ...],
    extents: Mapping[str, float],
    steps: int,
    machine: Machine,
) -> float:
    curve = machine.kernel(kernel.name)
    share = 1.0
    if kernel.name == "attention_fwd":
        q, k, v = kernel.inputs[:3]
        b, sq, h, d = (_dim(dim, extents) for dim in q.dims)
        sk, dv = _dim(k.dims[1], extents), _dim(v.dims[-1], extents)
        work = Work(flops=2 * b * h * sq * sk * (d + dv), rows=sq, batch=b * h)
        if kernel.mask is not None and str(kernel.mask) != "full":
            queries, keys = q.dims[1].axis, k.dims[1].axis
            if queries is not None and keys is not None:
                share = visible_share(placed, loops, kernel.mask, queries.name, keys.name)
    elif kernel.name == "matmul":
        a, b_ = kernel.inputs[:2]
        m, k_ = _dim(a.dims[0], extents), _dim(a.dims[-1], extents)
        n = _dim(b_.dims[-1], extents)
        work = Work(flops=2 * m * n * k_, rows=m, columns=n)
    else:
        # Of a kernel that is not known: every operand once through memory.
        moved = sum(_size(tile, extents) * DTYPE_BYTES[tile.dtype] for tile in kernel.inputs)
        return steps * (curve.overhead + moved / machine.copy_rate + machine.launch)
    # A tile that the mask hides is skipped; what is left is spread over the others.
    launches = max(1, ceil(steps * min(1.0, share)))
    flops = work.flops * steps * share / launches
    one = curve.seconds(
        Work(
            flops=flops,
            rows=work.rows,
            columns=work.columns,
            batch=work.batch,
            masked=share < 1,
        )
    )
    return launches * (one + machine.launch)


def _dim(dim: Dim, extents: Mapping[str, float]) -> float:
    if dim.axis is None:
        return float(dim.value)
    return max(1.0, extents.get(dim.axis.name, dim.axis.extent) / dim.value)


def _merges(
    store: Store,
    loops: tuple[Loop, ...],
    extents: Mapping[str, float],
    steps: int,
    machine: Machine,
) -> float:
    """Merging partial results: each but the first is read, and the sum read and written."""
    assert store.merge is not None
    over = {axis.name for axis in store.merge.over}
    reducing = prod(loop.parts for loop in loops if not loop.levels and set(loop.axes) & over)
    if reducing == 1:
        return 0.0
    tile = sum(_size(each, extents) * DTYPE_BYTES[each.dtype] for each in store.tiles)
    merges = steps - steps / reducing
    return merges * (3 * tile / machine.copy_rate + machine.launch)


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
