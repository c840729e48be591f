"""The canonical form of a schedule: equal exactly when two schedules mean the same plan.

Names of loops and levels, the order of steps, levels of one rank, loops of one part and
joins leave no trace. Levels that came from one, are always used together and over which
nothing moves are that one again; a collective over them goes level by level, which is
another plan. Levels of equal size on equal links may take each other's places; then the
smallest form of all is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

from .placed import Cut, Loop, Placed

__all__ = ["canonical", "family", "fingerprint"]

Form = tuple[Any, ...]


def fingerprint(placed: Placed, links: Mapping[str, str] | None = None) -> str:
    """Give the hash of the canonical form; see `canonical`."""
    return hashlib.sha256(repr(canonical(placed, links)).encode()).hexdigest()[:16]


def family(placed: Placed, links: Mapping[str, str] | None = None) -> str:
    """Give what a schedule has in common with those that turn their rings the other way."""
    nests = tuple(tuple(_forwards(loop) for loop in nest) for nest in placed.nests)
    return fingerprint(replace(placed, nests=nests), links)


def _forwards(loop: Loop) -> Loop:
    """Mirror a ring that turns backwards: ranks and parts are counted from the other end."""
    shift = loop.shift
    if shift is None or shift.direction == 1:
        return loop
    return replace(loop, shift=replace(shift, direction=1, offset=-shift.offset % loop.parts))


def canonical(placed: Placed, links: Mapping[str, str] | None = None) -> Form:
    """Give the canonical form of a schedule.

    Parameters
    ----------
    placed
        The schedule.
    links
        For each level, what it runs over; levels of the same are alike. Each level its own
        when not given.

    Returns
    -------
    tuple
        Nested tuples of numbers and names of axes and buffers.
    """
    links = links or {}
    plain = _Plain.of(placed, {level: links.get(level, level) for level, _ in placed.levels})
    while (pair := plain.find_pair()) is not None:
        plain = plain.merged(*pair)
    return min(plain.form(names) for names in plain.namings())


@dataclass(frozen=True)
class _Plain:
    """A schedule without names of loops, and without what has no effect."""

    levels: tuple[tuple[str, int, str], ...]  # name, size, link
    axes: tuple[tuple[tuple[str, tuple[str | int, ...]], ...], ...]  # of each nest
    loops: tuple[tuple[tuple[Any, ...], ...], ...]  # sequential ones of each nest
    buffers: tuple[tuple[str, tuple[Cut, ...], tuple[Cut, ...]], ...]
    broadcast: tuple[tuple[str, str], ...]  # buffer, axis
    inputs: frozenset[str]
    patches: tuple[str, ...]
    deferred: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, placed: Placed, links: Mapping[str, str]) -> _Plain:
        sizes = dict(placed.levels)
        axes, loops = [], []
        for nest in placed.nests:
            factors, sequential = _nest(placed, nest, sizes)
            axes.append(factors)
            loops.append(sequential)
        return cls(
            levels=tuple((n, s, links[n]) for n, s in placed.levels if s != 1),
            axes=tuple(axes),
            loops=tuple(loops),
            buffers=tuple(
                (name, _cuts(placed.boundary[name], sizes), _cuts(placed.inside[name], sizes))
                for name in placed.inside
            ),
            broadcast=tuple(
                (name, cut.axis)
                for name, axes in placed.broadcast.items()
                for cut in _cuts(placed.inside[name], sizes)
                if cut.axis in axes
            ),
            inputs=placed.inputs,
            patches=placed.patches,
            deferred=placed.deferred,
        )

    # -- levels that are always used together ---------------------------------

    def _factor_lists(self) -> Iterator[tuple[str | int, ...]]:
        for nest in self.axes:
            for _, factors in nest:
                yield factors
        for _, boundary, inside in self.buffers:
            for cut in (*boundary, *inside):
                yield cut.factors

    def find_pair(self) -> tuple[str, str] | None:
        """Find neighbours of one link that stand side by side wherever they stand."""
        busy = {name for name, *_ in self.levels if not self._quiet(name)}
        for (outer, _, link), (inner, _, other) in zip(
            self.levels, self.levels[1:], strict=False
        ):
            if link == other and not {outer, inner} & busy and self._together(outer, inner):
                return outer, inner
        return None

    def _quiet(self, level: str) -> bool:
        """Whether nothing moves over a level: its ranks work on what is theirs."""
        if any(level in loop[2] for nest in self.loops for loop in nest):
            return False
        spread = {axis for nest in self.axes for axis, factors in nest if level in factors}
        for name, boundary, inside in self.buffers:
            outside = [cut.axis for cut in boundary if level in cut.factors]
            within = [cut for cut in inside if level in cut.factors]
            # Whole results of a level that shares their work out have been merged.
            merged = not within and bool(spread) and name not in self.inputs
            if outside != [cut.axis for cut in within] or merged:
                return False
            # An axis that is gathered over one of its levels is gathered over all.
            if any(not self._is_walked(cut) for cut in within):
                return False
        return True

    def _is_walked(self, cut: Cut) -> bool:
        """Whether loops are spread or staggered over each level of a cut."""
        walked = {
            factor
            for nest in self.axes
            for axis, factors in nest
            if axis == cut.axis
            for factor in factors
        }
        for nest in self.loops:
            for axes, _, levels, *_ in nest:
                walked |= set(levels) if cut.axis in axes else set()
        return walked.issuperset(cut.levels)

    def _together(self, outer: str, inner: str) -> bool:
        for factors in self._factor_lists():
            at = factors.index(outer) if outer in factors else None
            if at is None:
                if inner in factors:
                    return False
            elif factors[at + 1 : at + 2] != (inner,):
                return False
        return True

    def merged(self, outer: str, inner: str) -> _Plain:
        """Give the same with two levels as one, which takes the outer's name."""

        def fold(factors: tuple[str | int, ...]) -> tuple[str | int, ...]:
            return tuple(factor for factor in factors if factor != inner)

        def fold_cuts(cuts: tuple[Cut, ...]) -> tuple[Cut, ...]:
            return tuple(
                Cut(axis=cut.axis, factors=fold(cut.factors), layout=cut.layout) for cut in cuts
            )

        size = {name: size for name, size, _ in self.levels}
        return _Plain(
            levels=tuple(
                (name, size[name] * (size[inner] if name == outer else 1), link)
                for name, _, link in self.levels
                if name != inner
            ),
            axes=tuple(
                tuple((axis, fold(factors)) for axis, factors in nest) for nest in self.axes
            ),
            loops=self.loops,
            buffers=tuple((name, fold_cuts(a), fold_cuts(b)) for name, a, b in self.buffers),
            broadcast=self.broadcast,
            inputs=self.inputs,
            patches=self.patches,
            deferred=self.deferred,
        )

    # -- names of levels ------------------------------------------------------

    def namings(self) -> Iterator[dict[str, int]]:
        """Number the levels in every way that keeps sizes and links in their order."""
        alike: dict[tuple[int, str], list[int]] = {}
        for number, (_, size, link) in enumerate(self.levels):
            alike.setdefault((size, link), []).append(number)
        groups = list(alike.values())
        for orders in product(*[permutations(group) for group in groups]):
            yield {
                self.levels[place][0]: number
                for group, order in zip(groups, orders, strict=True)
                for place, number in zip(group, order, strict=True)
            }

    def form(self, numbers: Mapping[str, int]) -> Form:
        """Give the schedule with levels by number."""

        # ("L", 0) is a level, ("n", 4) a number of parts, so that forms compare.
        def rename(factors: tuple[str | int, ...]) -> Form:
            return tuple(
                ("L", numbers[factor]) if isinstance(factor, str) else ("n", factor)
                for factor in factors
            )

        def cuts(several: tuple[Cut, ...]) -> Form:
            return tuple(sorted((cut.axis, rename(cut.factors), cut.layout) for cut in several))

        return (
            tuple((size, link) for _, size, link in self.levels),
            tuple(
                tuple((axis, rename(factors)) for axis, factors in nest) for nest in self.axes
            ),
            tuple(
                tuple(
                    (axes, parts, tuple(sorted(numbers[level] for level in levels)), *operands)
                    for axes, parts, levels, *operands in nest
                )
                for nest in self.loops
            ),
            tuple((name, cuts(a), cuts(b)) for name, a, b in self.buffers),
            self.broadcast,
            self.patches,
            self.deferred,
        )


def _cuts(cuts: tuple[Cut, ...], sizes: Mapping[str, int]) -> tuple[Cut, ...]:
    kept = []
    for cut in cuts:
        factors = [f for f in cut.factors if (sizes[f] if isinstance(f, str) else f) != 1]
        while factors and isinstance(factors[-1], int):
            factors.pop()
        if factors:
            kept.append(Cut(axis=cut.axis, factors=tuple(factors), layout=cut.layout))
    return tuple(kept)


def _nest(
    placed: Placed, nest: tuple[Loop, ...], sizes: Mapping[str, int]
) -> tuple[tuple[tuple[str, tuple[str | int, ...]], ...], tuple[tuple[Any, ...], ...]]:
    """Give the factors of each axis, and the sequential loops in their order.

    A parallel loop takes no time: only its place among the loops of its axis matters. A
    sequential loop stands among an axis' factors as its number, negative.
    """
    factors: dict[str, list[str | int]] = {axis: [] for loop in nest for axis in loop.axes}
    loops: list[tuple[Any, ...]] = []
    for loop in nest:
        if loop.levels:
            for axis, own in placed.levels_of_axes(loop).items():
                factors[axis] += own
        parts = loop.parts
        if parts == 1 and loop is placed.walker(nest, loop.axes[0]):
            parts = placed.panels(loop.axes[0])
        if parts == 1 or (loop.levels and not loop.shift):
            continue
        special: list[str] = ["overlaps"] if loop.name in placed.overlaps else []
        if len(loop.axes) == 1 and placed.layouts[loop.axes[0]].startswith("bounds"):
            special.append(placed.layouts[loop.axes[0]])
        loops.append((loop.axes, parts, *_shift(placed, loop, sizes), *special))
        for axis in loop.axes:
            factors[axis].append(-len(loops))
    return (
        tuple(sorted((axis, tuple(found)) for axis, found in factors.items() if found)),
        tuple(loops),
    )


def _shift(placed: Placed, loop: Loop, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Give levels and operands of a shift; those that nothing uses are left out."""
    shift = loop.shift
    if shift is None:
        return ((), 1, 0, "", "", "", 1, "")
    levels = tuple(level for level in shift.levels if sizes[level] != 1)
    moved = placed.moved(loop)
    return (
        levels,
        shift.direction,
        shift.offset % loop.parts,
        shift.reads if placed.inputs & moved.keys() else "",
        shift.results if moved.keys() - placed.inputs else "",
        shift.via,
        shift.chunks if moved else 1,
        shift.link if moved else "",
    )
