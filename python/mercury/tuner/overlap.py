"""Which steps can compute beside each other: two, which write memory of their own."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..dsl import Program
from ..dsl.nodes import Kernel, Nest, Store
from ..schedule.recipe import Call
from .placed import Loop, Placed

__all__ = ["overlaps"]


def overlaps(program: Program, placed: Placed) -> list[Call]:
    """Give the steps that let the two steps of each ring overlap; none where they cannot.

    Parameters
    ----------
    program, placed
        What is computed, and its schedule.
    """
    found = []
    for nest, loops in zip(program.nests, placed.nests, strict=True):
        ring = _only_ring(loops)
        if ring is not None and _can_overlap(program, nest, loops, ring, placed):
            found.append(Call(name="overlap", args=[ring.name]))
    return found


def _only_ring(loops: Sequence[Loop]) -> Loop | None:
    """Give the loop that takes time, where there is one alone, of two steps."""
    timed = [loop for loop in loops if loop.parts > 1 and not loop.levels]
    two = len(timed) == 1 and timed[0].shift is not None and timed[0].parts == 2
    return timed[0] if two else None


def _can_overlap(
    program: Program, nest: Nest, loops: Sequence[Loop], ring: Loop, placed: Placed
) -> bool:
    shift = ring.shift
    assert shift is not None
    if shift.chunks > 1 or shift.link:
        return False
    if placed.moved(ring).keys() - placed.inputs:
        return False  # results leave one after the other
    stores = [op for op in nest.ops if isinstance(op, Store)]
    spread = {axis for loop in loops if loop.levels for axis in loop.axes}
    if any(_reduced(store) & spread for store in stores):
        return False  # a collective behind the steps is in the lane of one
    if not _takes_one_launch(program, nest, loops, placed):
        return False
    waiting = {name for name, _ in placed.deferred}
    return all(
        not _reduced(store) & set(ring.axes)
        or any(buffer.name in waiting for buffer in store.buffers)
        for store in stores
    )


def _reduced(store: Store) -> set[str]:
    """Give the axes over which a result is merged."""
    return set() if store.merge is None else {axis.name for axis in store.merge.over}


def _takes_one_launch(
    program: Program, nest: Nest, loops: Sequence[Loop], placed: Placed
) -> bool:
    """Whether a step is one launch: of no documents, and of pieces that a mask joins.

    Pieces are those of axes that are dealt to ranks. Queries and keys must be dealt alike, and
    the buffers be in the parts that the loops make.
    """
    masks = [op.mask for op in nest.ops if isinstance(op, Kernel) and op.mask is not None]
    parts = {
        axis: prod(loop.parts for loop in loops if axis in loop.axes)
        for axis, layout in placed.layouts.items()
        if layout.startswith(("zigzag", "striped"))
    }
    dealt = {axis: number for axis, number in parts.items() if number > 1}
    if any(mask.documents for mask in masks):
        return False
    alike = len(parts) == 2 and len(set(parts.values())) == 1
    if dealt and not (alike and any(str(mask) != "full" for mask in masks)):
        return False
    return all(
        _parts(placed, buffer.name, dim.axis.name) == dealt[dim.axis.name]
        for buffer in program.buffers
        for dim in buffer.dims
        if dim.axis is not None and dim.axis.name in dealt
    )


def _parts(placed: Placed, buffer: str, axis: str) -> int:
    """Give into how many shards a buffer is cut along an axis."""
    cuts = [cut for cut in placed.inside[buffer] if cut.axis == axis]
    return prod(placed.size(level) for cut in cuts for level in cut.levels)
