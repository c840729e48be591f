"""Which steps can compute beside each other: two, which write memory of their own."""

from __future__ import annotations

from collections.abc import Sequence

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
        in_turn = [loop for loop in loops if loop.parts > 1 and not loop.levels]
        if len(in_turn) == 1 and _can_overlap(nest, in_turn[0], placed):
            found.append(Call(name="overlap", args=[in_turn[0].name]))
    return found


def _can_overlap(nest: Nest, ring: Loop, placed: Placed) -> bool:
    shift = ring.shift
    if shift is None or ring.parts != 2 or shift.chunks > 1 or shift.link:
        return False
    if placed.moved(ring).keys() - placed.inputs:
        return False  # results leave one after the other
    if any(
        isinstance(op, Kernel) and op.mask is not None and op.mask.documents for op in nest.ops
    ):
        return False  # a launch for each document
    waiting = {name for name, _ in placed.deferred}
    return all(
        _is_own(store, ring.axes, waiting) for store in nest.ops if isinstance(store, Store)
    )


def _is_own(store: Store, axes: Sequence[str], waiting: set[str]) -> bool:
    """Say whether no two steps merge into one result while they compute."""
    if store.merge is None or not {axis.name for axis in store.merge.over} & set(axes):
        return True
    return any(buffer.name in waiting for buffer in store.buffers)
