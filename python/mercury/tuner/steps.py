"""From an arrangement to the transforms that make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..schedule.recipe import Call, Value
from .arrangement import Arrangement, Block, Entry, Ring, Spread, parts_of
from .placed import Loop
from .placement import Operands

__all__ = ["LoopNames", "loop_calls", "ring_calls"]


@dataclass(frozen=True, kw_only=True)
class LoopNames:
    """The loops of one nest.

    Attributes
    ----------
    rings
        The loop of each ring, by (axis, number of its entry).
    parallel
        For each level, the loop that runs over it and how many levels that one has.
    """

    rings: dict[tuple[str, int], str]
    parallel: dict[str, tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """Entries of an axis that are one loop: levels side by side are spread together."""

    axis: str
    numbers: tuple[int, ...]
    entries: tuple[Entry, ...]


def loop_calls(
    nests: Sequence[Sequence[Loop]], arrangement: Arrangement, sizes: Mapping[str, int]
) -> tuple[list[Call], list[LoopNames]]:
    """Give the steps that cut, spread and order loops, and the loops that come of them.

    An axis is cut alike in every nest that has it; a nest without the axis that staggers a
    ring runs it unstaggered, which is not cut there.
    """
    calls: list[Call] = []
    found: list[LoopNames] = []
    for nest in nests:
        base = {loop.axes[0]: loop.name for loop in nest}
        names: dict[tuple[str, int], str] = {}
        spread: list[Call] = []
        natural: list[str] = []
        for axis, loop in base.items():
            left = loop
            units = _units(axis, arrangement, set(base))
            for number, unit in enumerate(units):
                name = left
                # A block at the end walks its parts; what is left is whole.
                if number + 1 < len(units) or isinstance(unit.entries[0], Block):
                    calls.append(Call(name="tile", args=[left, _parts(unit, sizes)]))
                    name, left = f"{left}_outer", f"{left}_inner"
                natural.append(name)
                names |= {(axis, at): name for at in unit.numbers}
                levels: list[Value] = [
                    entry.level for entry in unit.entries if isinstance(entry, Spread)
                ]
                if levels:
                    over = levels[0] if len(levels) == 1 else levels
                    spread.append(Call(name="parallelize", args=[name, over]))
        calls += spread
        wanted = _order(base, arrangement, names)
        if wanted != natural:
            calls.append(Call(name="reorder", args=[*wanted]))
        found.append(_loop_names(arrangement, names))
    return calls, found


def _units(axis: str, arrangement: Arrangement, axes: set[str]) -> list[_Unit]:
    units: list[_Unit] = []
    for number, entry in enumerate(arrangement.entries.get(axis, ())):
        if isinstance(entry, Ring) and any(
            arrangement.owners[level] not in axes for level in entry.levels
        ):
            continue
        last = units[-1] if units else None
        if last and isinstance(entry, Spread) and isinstance(last.entries[0], Spread):
            units[-1] = _Unit(
                axis=axis, numbers=(*last.numbers, number), entries=(*last.entries, entry)
            )
        else:
            units.append(_Unit(axis=axis, numbers=(number,), entries=(entry,)))
    return units


def _parts(unit: _Unit, sizes: Mapping[str, int]) -> Value:
    """Give the number of parts of a loop, or their sizes."""
    first = unit.entries[0]
    if isinstance(first, Block) and first.sizes:
        return list(first.sizes)
    return prod(parts_of(entry, sizes) for entry in unit.entries)


def _order(
    base: Mapping[str, str],
    arrangement: Arrangement,
    names: Mapping[tuple[str, int], str],
) -> list[str]:
    """Give the loops that are cut so that those which take time stand in their order."""
    wanted: list[str] = []
    done = dict.fromkeys(base, 0)

    def walk(axis: str, end: int) -> None:
        for number in range(done[axis], end):
            name = names.get((axis, number))
            if name is not None and name not in wanted:
                wanted.append(name)
        done[axis] = end

    for axis, number in arrangement.order:
        if axis in base:
            walk(axis, number + 1)
    for axis in base:
        walk(axis, len(arrangement.entries.get(axis, ())))
    # Axes in the nest's order, where nothing says otherwise.
    natural = [name for axis in base for (own, _), name in names.items() if own == axis]
    natural = list(dict.fromkeys(natural))
    timed = [names[key] for key in arrangement.order if key in names]
    return natural if [name for name in natural if name in timed] == timed else wanted


def _loop_names(arrangement: Arrangement, names: Mapping[tuple[str, int], str]) -> LoopNames:
    parallel: dict[str, list[str]] = {}
    for axis, entries in arrangement.entries.items():
        for number, entry in enumerate(entries):
            if isinstance(entry, Spread) and (axis, number) in names:
                parallel.setdefault(names[axis, number], []).append(entry.level)
    return LoopNames(
        rings={
            key: names[key]
            for key in arrangement.order
            if key in names and isinstance(arrangement.entries[key[0]][key[1]], Ring)
        },
        parallel={
            level: (loop, len(levels)) for loop, levels in parallel.items() for level in levels
        },
    )


def ring_calls(
    arrangement: Arrangement, nests: Sequence[LoopNames], how: Sequence[Operands]
) -> list[Call]:
    """Give the steps that stagger the rings, with their operands."""
    keys = [
        (axis, number)
        for axis, number in arrangement.order
        if isinstance(arrangement.entries[axis][number], Ring)
    ]
    calls = []
    for names in nests:
        for key, own in zip(keys, how, strict=True):
            if key not in names.rings:
                continue
            entry = arrangement.entries[key[0]][key[1]]
            assert isinstance(entry, Ring)
            loops: list[Value] = [names.parallel[level][0] for level in entry.levels]
            kwargs: dict[str, Value] = {"by": loops[0] if len(loops) == 1 else loops}
            if any(names.parallel[level][1] > 1 for level in entry.levels):
                over: list[Value] = list(entry.levels)
                kwargs["over"] = over[0] if len(over) == 1 else over
            calls.append(
                Call(
                    name="shift",
                    args=[names.rings[key]],
                    kwargs=kwargs | own.keywords(),
                )
            )
    return calls
