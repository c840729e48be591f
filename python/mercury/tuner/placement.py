"""Where buffers live inside a program, where its loops leave a choice, and how rings move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ..schedule.recipe import Call, Value
from .arrangement import Arrangement, Ring, parts_of
from .facts import Facts, Group
from .widths import DTYPE_BYTES

__all__ = [
    "MOVES",
    "WHOLE",
    "Operands",
    "Style",
    "operands",
    "place_calls",
    "placements",
    "walked",
    "whole",
]

# What a group does on a level: nothing to choose, moved by a ring, whole, or cut along an
# axis (its name).
FIXED, MOVES, WHOLE = "", "<moves>", "<whole>"
Places = tuple[tuple[str, ...], ...]  # for each group, for each level


@dataclass(frozen=True, kw_only=True)
class Style:
    """How rings move what they move; see `Schedule.shift`."""

    reads: str = "rotate"
    results: str = "travel"
    chunks: int = 1
    link: str | None = None


def placements(
    facts: Facts, arrangement: Arrangement, sizes: Mapping[str, int]
) -> Iterator[Places]:
    """Enumerate where each group lives, level by level.

    Where the loops leave a choice, an input is whole or cut along one of its axes, and a
    result that ranks merge is whole everywhere or shared out along one of its axes. What a
    ring could move is moved or whole, and each level of a ring moves something.
    """
    levels = list(arrangement.owners)
    rings = {level: arrangement.ring_on(level) for level in levels}
    per_group = []
    for group in facts.groups:
        options = [
            _options(group, arrangement.owners[level], rings[level], sizes[level])
            for level in levels
        ]
        per_group.append([c for c in product(*options) if _fits(group, c, levels, sizes)])
    for places in product(*per_group):
        moved = [any(own[number] == MOVES for own in places) for number in range(len(levels))]
        if all(some or rings[level] is None for some, level in zip(moved, levels, strict=True)):
            yield places


def whole(facts: Facts, arrangement: Arrangement) -> Places:
    """Give the places of groups that live whole wherever the loops do not say."""
    return tuple(
        tuple(_options(group, owner, None, 1)[0] for owner in arrangement.owners.values())
        for group in facts.groups
    )


def _options(group: Group, owner: str, ring: str | None, size: int) -> list[str]:
    if owner in group.axes or (group.output and owner not in group.reduced):
        return [FIXED]
    along = [axis for axis, extent in group.axes.items() if extent >= size and axis != ring]
    if ring is None or ring not in group.axes:
        return [WHOLE, *along]
    return [MOVES, WHOLE, *(along if group.output else [])]


def _fits(
    group: Group, choice: Sequence[str], levels: Sequence[str], sizes: Mapping[str, int]
) -> bool:
    return all(
        _shards(axis, choice, levels, sizes) <= max(extent, 1)
        for axis, extent in group.axes.items()
    )


def _shards(
    axis: str, places: Sequence[str], levels: Iterable[str], sizes: Mapping[str, int]
) -> int:
    return prod(
        sizes[level] for level, place in zip(levels, places, strict=True) if place == axis
    )


def walked(
    facts: Facts, arrangement: Arrangement, places: Places, sizes: Mapping[str, int]
) -> frozenset[str]:
    """Give the axes of which several inputs come from elsewhere, for loops over several axes.

    Panels of them can be broadcast. What comes for one loop alone, a ring brings as well. Nor
    are there panels of an axis that is spread, or where a ring has parts that are none.
    """
    rings = {
        axis: [e for e in own if isinstance(e, Ring)]
        for axis, own in arrangement.entries.items()
    }
    found: dict[str, set[tuple[tuple[str, ...], str]]] = {}
    unfit = set(arrangement.owners.values())
    for group, own in zip(facts.groups, places, strict=True):
        if group.output:
            continue
        for (level, owner), place in zip(arrangement.owners.items(), own, strict=True):
            axis = arrangement.ring_on(level) if place == MOVES else place
            if axis in group.axes:
                found.setdefault(axis, set()).add((group.buffers, owner))
        for axis in group.axes:
            shards = _shards(axis, own, arrangement.owners, sizes)
            if any(parts_of(ring, sizes) % shards for ring in rings.get(axis, [])[:1]):
                unfit.add(axis)
    return frozenset(
        axis
        for axis, reads in found.items()
        if axis not in unfit and all(len(set(each)) > 1 for each in zip(*reads, strict=True))
    )


def place_calls(
    facts: Facts,
    arrangement: Arrangement,
    places: Places,
    *,
    panels: frozenset[str] = frozenset(),
) -> list[Call]:
    """Give the steps that say where buffers live; what follows from the loops needs none.

    Inputs are broadcast along the axes ``panels``.
    """
    calls = []
    levels = list(arrangement.owners)
    for group, own in zip(facts.groups, places, strict=True):
        for buffer in group.buffers:
            for axis in group.axes:
                over: list[Value] = [
                    level for level, place in zip(levels, own, strict=True) if place == axis
                ]
                if over:
                    one = over[0] if len(over) == 1 else over
                    broadcast = axis in panels and not group.output
                    kwargs: dict[str, Value] = {"reads": "broadcast"} if broadcast else {}
                    calls.append(Call(name="shard", args=[buffer, axis, one], kwargs=kwargs))
            for level, place in zip(levels, own, strict=True):
                # Without a ring a buffer is whole by itself; a reduced one is told so, as
                # the methods that people write say it.
                ringed = arrangement.ring_on(level) in group.axes
                if place == WHOLE and (ringed or group.output):
                    calls.append(Call(name="replicate", args=[buffer, level]))
    return calls


@dataclass(frozen=True, kw_only=True)
class Operands:
    """The operands of one ring."""

    direction: int
    offset: int
    style: Style

    @property
    def reads_ahead(self) -> bool:
        """Whether it can read the next slice of its buffers while it works on one."""
        return self.style.reads == "pull" and self.style.chunks == 1

    def keywords(self) -> dict[str, Value]:
        """Give those that are not the default, as `Schedule.shift` takes them."""
        found: dict[str, Value] = {}
        if self.direction != 1:
            found["direction"] = self.direction
        if self.offset:
            found["offset"] = self.offset
        if self.style.reads != "rotate":
            found["reads"] = self.style.reads
        if self.style.results != "travel":
            found["results"] = self.style.results
        if self.style.chunks != 1:
            found["chunks"] = self.style.chunks
        if self.style.link is not None:
            found["link"] = self.style.link
        return found


def operands(
    facts: Facts,
    arrangement: Arrangement,
    places: Places,
    sizes: Mapping[str, int],
    links: Mapping[str, str],
    styles: Sequence[Style],
) -> list[tuple[Operands, ...]]:
    """Enumerate the operands of all rings, in the order of the arrangement.

    A ring that only reads starts with the rank's own part, one that only carries results
    ends with it, one that does both may do either. Directions are tried where a mask makes
    them differ. Rings on one link have one style.
    """
    levels = list(arrangement.owners)
    rings: list[tuple[str, Ring]] = []
    for axis, number in arrangement.order:
        entry = arrangement.entries[axis][number]
        if isinstance(entry, Ring):
            rings.append((axis, entry))
    used = list(dict.fromkeys(links[ring.levels[0]] for _, ring in rings))
    found: dict[tuple[Operands, ...], None] = {}
    for choice in product(styles, repeat=len(used)):
        style_of = dict(zip(used, choice, strict=True))
        options = []
        for axis, ring in rings:
            moved = [
                group
                for group, own in zip(facts.groups, places, strict=True)
                if axis in group.axes
                and any(own[levels.index(level)] == MOVES for level in ring.levels)
            ]
            style = style_of[links[ring.levels[0]]]
            options.append(
                _ring_operands(
                    facts,
                    axis,
                    ring,
                    [group.output for group in moved],
                    sizes,
                    _effective(style, moved),
                )
            )
        found |= dict.fromkeys(product(*options))
    return list(found)


def _effective(style: Style, moved: Sequence[Group]) -> Style:
    """Leave out what nothing uses, and what would round anything but partial results."""
    outputs = [group.output for group in moved]
    width = max((group.width for group in moved if not group.output), default=0)
    rounds = True in outputs and width <= DTYPE_BYTES.get(style.link or "", 0)
    return Style(
        reads=style.reads if False in outputs else "rotate",
        results=style.results if True in outputs else "travel",
        chunks=style.chunks,
        link=style.link if rounds else None,
    )


def _ring_operands(
    facts: Facts,
    axis: str,
    ring: Ring,
    moved: Sequence[bool],
    sizes: Mapping[str, int],
    style: Style,
) -> list[Operands]:
    parts = parts_of(ring, sizes)
    found = []
    for direction in (1, -1) if axis in facts.masked else (1,):
        last = direction * (parts // sizes[ring.levels[0]])
        # In chunks, or where its owner reads it, the own part comes last.
        last_only = True in moved and (style.chunks > 1 or style.results == "fetch")
        first = False in moved and not last_only
        offsets = [*([0] if first else []), *([last] if True in moved else [])]
        found += [Operands(direction=direction, offset=o, style=style) for o in offsets]
    return found
