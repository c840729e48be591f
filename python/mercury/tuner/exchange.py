"""Exchanges in slices: what the next slice needs comes, and what the last one made leaves.

Each rank has all rows of what it works on, so there is no ring and nothing is merged; what a
rank works on lies elsewhere outside of the loops. The slices are of an axis that all buffers
have. They are left out where they can gain nothing, or where the compiler refuses them:

- nothing is owned by other ranks outside, or by too many of them to be read at once;
- a result that ranks reduce together has partial results, which a collective merges;
- ranks that have nothing of a slice: slices are of whole shares of each rank, and of whole
  groups of heads, so that all ranks work on each;
- shards outside that meet parts of several slices of the loops, or of a group of heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ..dsl import Mesh, Program
from ..dsl.nodes import Buffer
from .arrangement import Arrangement, Block, Entry, Spread, growing_sizes, owners_of
from .facts import Facts
from .memory import shard_intervals
from .placed import Cut, Loop, Placed

__all__ = ["exchanges", "halves_at_ends", "is_exchanged"]

_MOST_RANKS = 8  # that read from each other at once


def exchanges(facts: Facts, mesh: Mesh, slices: Sequence[int]) -> Iterator[Arrangement]:
    """Enumerate the loops that walk slices, each spread over the levels of a mesh.

    Parameters
    ----------
    facts
        Of the program.
    mesh
        Levels of one rank are left out.
    slices
        Numbers of parts: equal ones, ones that grow, and equal ones with half of one at
        either end, as nothing is under the first transfer, nor above the last.
    """
    sizes = {level: size for level, size in mesh.levels if size > 1}
    reduced = frozenset().union(*[group.reduced for group in facts.groups])
    for owners in owners_of(facts, sizes) if sizes else ():
        if reduced & set(owners.values()):
            continue
        for axis, extent in facts.extents.items():
            if axis in reduced or not all(axis in group.axes for group in facts.groups):
                continue
            spread: dict[str, tuple[Entry, ...]] = {
                own: tuple(Spread(level) for level in sizes if owners[level] == own)
                for own in dict.fromkeys(owners.values())
            }
            shares = prod(sizes[level] for level, own in owners.items() if own == axis)
            unit = shares * max(extent // max(g.axes[axis], 1) for g in facts.groups)
            for block in _blocks(extent, unit, slices):
                yield Arrangement(
                    owners=owners,
                    entries={**spread, axis: (block, *spread.get(axis, ()))},
                    order=((axis, 0),),
                    in_slices=True,
                )


def _blocks(extent: int, unit: int, slices: Sequence[int]) -> Iterator[Block]:
    """Give the ways to cut an axis into whole units."""
    units, rest = divmod(extent, unit)
    for parts in slices if not rest else ():
        if units % parts == 0:
            yield Block(parts)
        for own in (growing_sizes(units, parts), halves_at_ends(units, parts)):
            if own:
                yield Block(len(own), tuple(unit * size for size in own))


def halves_at_ends(extent: int, parts: int) -> tuple[int, ...]:
    """Give equal sizes with half of one at either end; none where they are not whole.

    Examples
    --------
    >>> halves_at_ends(16, 4)
    (2, 4, 4, 4, 2)
    >>> halves_at_ends(12, 4)
    ()
    """
    if extent % (2 * parts):
        return ()
    half = extent // (2 * parts)
    return (half, *[2 * half] * (parts - 1), half)


def is_exchanged(program: Program, placed: Placed, slices: Loop) -> bool:
    """Whether ranks own what others work on, and a slice of it meets whole shards."""
    (axis,) = slices.axes
    moved = [buffer for buffer in program.buffers if placed.exchanged(buffer.name)]
    return bool(moved) and all(_meets(placed, buffer, axis, slices.parts) for buffer in moved)


def _meets(placed: Placed, buffer: Buffer, axis: str, slices: int) -> bool:
    levels = placed.exchanged(buffer.name)
    if prod(placed.size(level) for level in levels) > _MOST_RANKS:
        return False
    outside = {cut.axis: cut for cut in placed.boundary[buffer.name]}
    for dim in buffer.dims:
        cut = outside.get(dim.axis.name) if dim.axis is not None else None
        if dim.axis is None or cut is None:
            continue
        name = dim.axis.name
        there = [factor for factor in cut.factors if factor in dict(placed.levels)]
        here = [level for level in _loops_over(placed, name) if placed.size(level) > 1]
        if len(there) < len(cut.factors) or cut.layout not in ("", dim.axis.layout):
            return False
        if _shares_groups(placed, cut, dim.axis.extent, dim.value, dim.axis.layout):
            return False
        if name == axis or set(there) & set(here) & set(levels):
            return False
        common = min(len(there), len(here))
        if there[:common] != here[:common]:
            return False
        if common and there != here and dim.axis.layout.startswith("striped"):
            return False
    return True


def _loops_over(placed: Placed, axis: str) -> list[str]:
    """Give the levels that the loops over an axis run on."""
    return [
        level
        for nest in placed.nests
        for loop in nest
        if axis in loop.axes and loop.levels
        for level in placed.levels_of_axes(loop)[axis]
    ]


def _shares_groups(placed: Placed, cut: Cut, extent: int, divisor: int, layout: str) -> bool:
    """Whether two shards have heads of one group."""
    if divisor == 1:
        return False
    held = shard_intervals(placed.levels, cut.factors, extent, layout)
    return any(end % divisor for own in held for interval in own for end in interval)
