"""Merging once at the end, or as partial results come: where there is a choice.

A deferred merge needs several partial results of one owner: those of a loop that takes time
and reduces, or those that a ring brings to their owner. It is left out where it can gain
nothing:

- results that travel are merged on their way, and of what is reduced over ranks alone a rank
  has one partial result, which a collective merges;
- a product adds to its result as it goes, without a pass over it; only what other ranks
  bring is added by a kernel of its own;
- a partial result that comes in chunks, or rounded, is merged as it comes;
- where several merges can wait, all do, in one type: each gains by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..dsl import Program
from ..dsl.nodes import Store
from ..schedule.recipe import Call
from .placed import Loop, Placed

__all__ = ["deferrals"]

# Kernels that add to what is there in the same pass.
_ADDS = frozenset({"matmul"})


def deferrals(program: Program, placed: Placed, types: Sequence[str]) -> Iterator[list[Call]]:
    """Give the steps that defer the merges of a schedule that can gain by it, in each type.

    Parameters
    ----------
    program, placed
        What is computed, and its schedule, which merges eagerly.
    types
        In which partial results wait, beside float32; they round them.
    """
    waiting = [
        op.buffers[0].name
        for nest, loops in zip(program.nests, placed.nests, strict=True)
        for op in nest.ops
        if isinstance(op, Store) and _gains(op, placed, loops)
    ]
    for partial in ("", *types) if waiting else ():
        kwargs = {"partial": partial} if partial else {}
        yield [Call(name="defer", args=[name], kwargs={**kwargs}) for name in waiting]


def _gains(store: Store, placed: Placed, loops: Sequence[Loop]) -> bool:
    """Whether a rank merges several partial results by passes over them, all at hand."""
    if store.merge is None:
        return False
    over = {axis.name for axis in store.merge.over}
    buffers = {buffer.name for buffer in store.buffers}
    several = brought = False
    for loop in loops:
        if loop.shift is not None and buffers & placed.moved(loop).keys():
            if loop.shift.results == "travel" or loop.shift.chunks > 1 or loop.shift.link:
                return False
            brought = True
        several |= bool(set(loop.axes) & over) and not loop.levels and loop.parts > 1
    return brought or (several and getattr(store.tiles[0].origin, "name", "") not in _ADDS)
