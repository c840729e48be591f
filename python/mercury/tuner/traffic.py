"""What a scheduled program moves: the rules of communication as numbers.

Bytes are those that a rank receives, as if all shards were of the largest size, or of the
smallest.
A layout that changes over several levels is counted level by level, as collectives; a plan may
send it in one exchange instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ..dsl.nodes import Buffer, Nest, Store
from .memory import shard_lengths
from .placed import Cut, Loop
from .space import Candidate
from .widths import DTYPE_BYTES

__all__ = ["Transfer", "transfers"]


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Messages of one buffer over one level.

    Attributes
    ----------
    rule
        The rule that makes them.
    buffer, level, transport
        What moves, and over what.
    size
        Of a message, in bytes.
    count
        Messages that a rank receives.
    hidden
        Whether the work of a loop can go on meanwhile.
    """

    rule: str
    buffer: str
    level: str
    transport: str
    size: float
    count: float
    hidden: bool

    @property
    def bytes(self) -> float:
        """All of them."""
        return self.size * self.count


def transfers(candidate: Candidate, *, smallest: bool = False) -> list[Transfer]:
    """Give all transfers of a candidate.

    Parameters
    ----------
    candidate
        Any.
    smallest
        Count as if all shards were of the smallest size, instead of the largest.
    """
    found: list[Transfer] = []
    program, placed = candidate.schedule.program, candidate.placed
    for buffer in program.buffers:
        found += _Buffer(candidate, buffer, smallest).resharding()
    for nest, loops in zip(program.nests, placed.nests, strict=True):
        for buffer in _loaded(nest):
            found += _Buffer(candidate, buffer, smallest).reading(loops)
        for store in nest.ops:
            if isinstance(store, Store) and store.merge is not None:
                over = frozenset(axis.name for axis in store.merge.over)
                for buffer in store.buffers:
                    found += _Buffer(candidate, buffer, smallest).merging(loops, over)
    return [each for each in found if each.count > 0 and each.size > 0]


def _loaded(nest: Nest) -> list[Buffer]:
    found: dict[Buffer, None] = {}
    for op in nest.ops:
        origin = getattr(op, "origin", None)
        if isinstance(origin, Buffer):
            found[origin] = None
    return list(found)


class _Buffer:
    """One buffer of a candidate."""

    def __init__(self, candidate: Candidate, buffer: Buffer, smallest: bool) -> None:
        self.buffer, self.placed = buffer, candidate.placed
        self._smallest = smallest
        self.sizes = {level: size for level, size in self.placed.levels if size > 1}
        self.axes = frozenset(d.axis.name for d in buffer.dims if d.axis is not None)

    def bytes(self, cuts: Mapping[str, tuple[str | int, ...]], width: int = 0) -> float:
        """Give the bytes of the largest shard of some cuts, or of the smallest."""
        found: float = width or DTYPE_BYTES[self.buffer.dtype]
        for dim in self.buffer.dims:
            if dim.axis is None:
                found *= dim.value
                continue
            factors = tuple(f for f in cuts.get(dim.axis.name, ()) if f in self.sizes)
            lengths = shard_lengths(
                self.placed.levels, factors, dim.axis.extent, dim.value, dim.axis.layout
            )
            found *= float(lengths.min() if self._smallest else lengths.max(initial=0))
        return found

    # -- R7 -------------------------------------------------------------------

    def resharding(self) -> Iterator[Transfer]:
        """Between the boundary and the inside, level by level, the slow ones first."""
        outside = _places(self.placed.boundary[self.buffer.name], self.sizes)
        inside = _places(self.placed.inside[self.buffer.name], self.sizes)
        before, after = (inside, outside) if self.buffer.output else (outside, inside)
        now = dict(before)
        in_slices = [loop for nest in self.placed.nests if (loop := self.placed.slices(nest))]
        slices = prod(loop.parts for loop in in_slices)
        way = "pull" if in_slices else "collective"
        for level, size in self.sizes.items():
            if before.get(level) == after.get(level):
                continue
            held = self.bytes(_factors(now))
            if after.get(level) is None:
                del now[level]
                count = slices * (size - 1)
                yield self._transfer("R7", level, way, held / slices, count, bool(in_slices))
            elif before.get(level) is None:
                now[level] = after[level]  # a slice of what is there
            else:
                now[level] = after[level]
                part, count = held / size / slices, slices * (size - 1)
                yield self._transfer("R7", level, way, part, count, bool(in_slices))

    # -- R2, R3, R9 -----------------------------------------------------------

    def reading(self, loops: tuple[Loop, ...]) -> Iterator[Transfer]:
        """What loops read of other ranks' shards."""
        cuts = self.placed.inside[self.buffer.name]
        held = self.bytes(_factors(_places(cuts, self.sizes)))
        for cut in cuts:
            levels = [level for level in cut.levels if level in self.sizes]
            foreign = [n for n in levels if not _is_parallel(loops, cut.axis, n)]
            if not foreign:
                continue
            if _ring_on(loops, cut.axis, foreign[0]) is None:
                # All of the cut is gathered, its last level first; or it comes in panels.
                runs, pieces = self._panels(loops, cut)
                gathered = held / (pieces or 1)
                for level in reversed(levels):
                    size, count = self.sizes[level], runs * (pieces or 1)
                    hidden = pieces > 0
                    yield self._transfer(
                        "R2", level, "collective", gathered, (size - 1) * count, hidden
                    )
                    gathered *= size
                continue
            for level in foreign:
                ring = _ring_on(loops, cut.axis, level)
                if ring is not None:
                    yield from self._rotating(loops, ring, level, held)

    def _panels(self, loops: tuple[Loop, ...], cut: Cut) -> tuple[int, int]:
        """How often the panels of a cut come, and how many of them a shard is; 0 if none."""
        walker = self.placed.walker(loops, cut.axis)
        if cut.axis not in self.placed.broadcast[self.buffer.name] or walker is None:
            return 1, 0
        panels = walker.parts if walker.parts > 1 else self.placed.panels(cut.axis)
        shards = prod(self.sizes.get(level, 1) for level in cut.levels)
        return self._runs(loops, walker, self.axes), panels // shards

    def _rotating(
        self, loops: tuple[Loop, ...], ring: Loop, level: str, held: float
    ) -> Iterator[Transfer]:
        shift = ring.shift
        assert shift is not None
        runs, hops = self._runs(loops, ring, self.axes), self.sizes[level] - 1
        if self._smallest and shift.link:
            width = DTYPE_BYTES[self.buffer.dtype]
            held *= min(width, DTYPE_BYTES.get(shift.link, width)) / width
        transport = "pull" if shift.reads == "pull" else "p2p"
        if transport == "pull":
            # Parts come straight from their owners: those of another group of this level
            # all over it, and none of them again over a faster one.
            for other in loops:
                if other is not ring and other.axes == ring.axes and self._moves(other):
                    outer = loops.index(other) < loops.index(ring)
                    runs = runs // other.parts if outer else runs * other.parts
        if shift.offset % ring.parts:
            # The first part is not the rank's own: it must come before the first step.
            hops -= 1
            yield self._transfer("R3", level, transport, held, runs, False)
        chunks = shift.chunks
        yield self._transfer("R3", level, transport, held / chunks, hops * chunks * runs, True)

    def _runs(self, loops: tuple[Loop, ...], ring: Loop, slices: frozenset[str]) -> int:
        """How often a ring turns: once for each step of the loops around it.

        A loop around it over an axis in ``slices`` moves a slice a time, which is the same
        sum, unless it is a ring over the same axis that moves the buffer, too.
        """
        return prod(
            loop.parts
            for loop in loops[: loops.index(ring)]
            if not loop.levels
            and (not set(loop.axes) & slices or (loop.axes == ring.axes and self._moves(loop)))
        )

    def _moves(self, loop: Loop) -> bool:
        """Whether the buffer is cut over levels that stagger a loop over its axis."""
        return loop.shift is not None and any(
            cut.axis in loop.axes and set(cut.levels) & set(loop.shift.levels)
            for cut in self.placed.inside[self.buffer.name]
        )

    def _slices(self, loops: tuple[Loop, ...], ring: Loop) -> frozenset[str]:
        """Axes of which a result moves but the slice that loops around its ring are at."""
        around = loops[: loops.index(ring)]
        return frozenset(
            axis
            for axis in self.axes
            if axis in ring.axes
            or all(
                loop.parts == 1 or (loop.shift is None and loop in around)
                for loop in loops
                if axis in loop.axes
            )
        )

    # -- R4, R5, R6 -----------------------------------------------------------

    def merging(self, loops: tuple[Loop, ...], over: frozenset[str]) -> Iterator[Transfer]:
        """What ranks that made partial results send each other; partial results are wide."""
        places = _places(self.placed.inside[self.buffer.name], self.sizes)
        made = {
            level: axis for level, axis in places.items() if _is_parallel(loops, axis, level)
        }
        width = max(4, DTYPE_BYTES[self.buffer.dtype])
        waiting = dict(self.placed.deferred).get(self.buffer.name, "")
        if self._smallest and waiting:
            width = DTYPE_BYTES.get(waiting, width)
        reduced = [
            level
            for loop in loops
            for level in loop.levels
            if level in self.sizes and set(loop.axes) & over
        ]
        # What travels has been merged before the collectives start.
        for level in reduced:
            ring = _ring_on(loops, places[level], level) if level in places else None
            if ring is None:
                continue
            made[level] = places[level]
            assert ring.shift is not None
            part = self.bytes(_factors(made), DTYPE_BYTES.get(ring.shift.link, width))
            runs = self._runs(loops, ring, self._slices(loops, ring))
            transport = "pull" if ring.shift.results == "fetch" else "p2p"
            hops = (self.sizes[level] - 1) * runs
            yield self._transfer("R6", level, transport, part, hops, True)
            if ring.shift.results != "travel":
                continue
            last = ring.shift.direction * (ring.parts // self.sizes[level])
            if (ring.shift.offset - last) % ring.parts:
                # The last part is not the rank's own: it goes to its owner after the end.
                yield self._transfer("R6", level, transport, part, runs, False)
        # The fast levels share the sum out first, then the slow ones their shares of it.
        left = [level for level in self.sizes if level in reduced and level not in made]
        gathered = [level for level in left[1:] if level not in places]
        for level in gathered:
            axis = self._axis_to_share(loops, {**made, **places}, level)
            if axis:
                places[level] = axis
        gathered = [level for level in gathered if level in places]
        for level in sorted(reversed(left), key=lambda each: each not in places):
            rule = "R5" if level in places else "R4"
            if level in places:
                made[level] = places[level]
            part = self.bytes(_factors(made), width)
            yield self._transfer(rule, level, "collective", part, self.sizes[level] - 1, False)
        for level in gathered:
            part = self.bytes(_factors(made))
            yield self._transfer("R7", level, "collective", part, self.sizes[level] - 1, False)
            del made[level]

    def _axis_to_share(
        self, loops: tuple[Loop, ...], places: Mapping[str, str], level: str
    ) -> str | None:
        """Give the axis of which the ranks of a level get the smallest shares."""
        found, least = None, self.bytes(_factors(places))
        for dim in self.buffer.dims:
            if dim.axis is None or any(
                loop.shift is not None and dim.axis.name in loop.axes for loop in loops
            ):
                continue
            share = self.bytes(_factors({**places, level: dim.axis.name}))
            if share < least:
                found, least = dim.axis.name, share
        return found

    def _transfer(
        self, rule: str, level: str, transport: str, size: float, count: float, hidden: bool
    ) -> Transfer:
        return Transfer(
            rule=rule,
            buffer=self.buffer.name,
            level=level,
            transport=transport,
            size=size,
            count=count,
            hidden=hidden,
        )


def _places(cuts: tuple[Cut, ...], sizes: Mapping[str, int]) -> dict[str, str]:
    """Give the axis that each level cuts, the slow levels first."""
    axis_of = {level: cut.axis for cut in cuts for level in cut.levels}
    return {level: axis_of[level] for level in sizes if level in axis_of}


def _factors(places: Mapping[str, str]) -> dict[str, tuple[str | int, ...]]:
    found: dict[str, tuple[str | int, ...]] = {}
    for level, axis in places.items():
        found[axis] = (*found.get(axis, ()), level)
    return found


def _is_parallel(loops: tuple[Loop, ...], axis: str, level: str) -> bool:
    return any(axis in loop.axes and level in loop.levels for loop in loops)


def _ring_on(loops: tuple[Loop, ...], axis: str, level: str) -> Loop | None:
    for loop in loops:
        if axis in loop.axes and loop.shift is not None and level in loop.shift.levels:
            return loop
    return None
