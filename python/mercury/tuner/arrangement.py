"""Where loops run: which axis each level spreads, which rings there are, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import lcm, prod

from ..dsl import Mesh
from .facts import Facts

__all__ = [
    "Arrangement",
    "Block",
    "Entry",
    "Ring",
    "Spread",
    "arrangements",
    "growing_sizes",
    "owners_of",
]


@dataclass(frozen=True)
class Spread:
    """Iterations of an axis over the ranks of a level."""

    level: str


@dataclass(frozen=True)
class Ring:
    """A loop that the ranks of some levels stagger; several levels add (Cannon)."""

    levels: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A loop of so many parts, one after another, of these sizes where they are given."""

    parts: int
    sizes: tuple[int, ...] = ()


Entry = Spread | Ring | Block


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """How the loops of a program are cut.

    Attributes
    ----------
    owners
        For each level, the axis that it spreads.
    entries
        For each axis that is cut, its loops, outermost first.
    order
        The loops that take time, outermost first, as (axis, number of the entry).
    in_slices
        Whether the outermost walks slices: it repeats a ring for one after another, or what
        other ranks own of each is exchanged.
    """

    owners: dict[str, str]
    entries: dict[str, tuple[Entry, ...]]
    order: tuple[tuple[str, int], ...]
    in_slices: bool = False

    def ring_on(self, level: str) -> str | None:
        """Give the axis that is staggered on a level."""
        for axis, entries in self.entries.items():
            if any(isinstance(each, Ring) and level in each.levels for each in entries):
                return axis
        return None


def arrangements(
    facts: Facts, mesh: Mesh, blocks: Sequence[int], slices: Sequence[int] = ()
) -> Iterator[Arrangement]:
    """Enumerate the arrangements of a program on the levels of a mesh.

    Each level spreads one axis that is long enough. On each level at most one other axis is
    staggered, where that makes a buffer move. Levels and rings of one axis stand in the
    mesh's order, slow ones outermost, in every interleaving of the two.

    Parameters
    ----------
    facts
        Of the program.
    mesh
        Levels of one rank are left out.
    blocks
        Numbers of parts that one axis may be cut into beside that, anywhere.
    slices
        Numbers of parts that the axis which all buffers begin with may be cut into, around a
        ring over one level: each part of a buffer lies together, and is read meanwhile.
    """
    sizes = {level: size for level, size in mesh.levels if size > 1}
    for owners in owners_of(facts, sizes):
        for rings in _rings(facts, owners, sizes):
            for entries in _interleavings(facts, owners, rings, sizes):
                for blocked in _blocked(facts, entries, blocks):
                    for order in _orders(blocked):
                        yield Arrangement(owners=owners, entries=blocked, order=order)
                if len(rings) == 1 and len(rings[0][1].levels) == 1:
                    yield from _sliced(facts, owners, entries, slices)


def owners_of(facts: Facts, sizes: Mapping[str, int]) -> Iterator[dict[str, str]]:
    """Enumerate which axis each level spreads: any that is long enough."""
    found = False
    for choice in product(facts.extents, repeat=len(sizes)):
        owners = dict(zip(sizes, choice, strict=True))
        if all(
            prod(size for level, size in sizes.items() if owners[level] == axis)
            <= max(extent, 1)
            for axis, extent in facts.extents.items()
        ):
            found = True
            yield owners
    if not found:
        # Too many ranks for any axis: some shards are empty.
        longest = max(facts.extents, key=lambda axis: facts.extents[axis])
        yield dict.fromkeys(sizes, longest)


def _rings(
    facts: Facts, owners: Mapping[str, str], sizes: Mapping[str, int]
) -> Iterator[list[tuple[str, Ring]]]:
    """Give the rings, each with its axis: per level none or one, then those that add."""
    choices = [
        [
            None,
            *(
                axis
                for axis, extent in facts.extents.items()
                if axis != owner
                and sizes[level] <= extent
                and any(group.moves(owner, axis) for group in facts.groups)
            ),
        ]
        for level, owner in owners.items()
    ]
    for choice in product(*choices):
        single = [(axis, level) for level, axis in zip(owners, choice, strict=True) if axis]
        yield [(axis, Ring((level,))) for axis, level in single]
        for one, other in combinations(single, 2):
            if one[0] == other[0] and owners[one[1]] != owners[other[1]]:
                rest = [
                    (a, Ring((level,)))
                    for a, level in single
                    if level not in (one[1], other[1])
                ]
                yield sorted(
                    [*rest, (one[0], Ring((one[1], other[1])))],
                    key=lambda ring: list(sizes).index(ring[1].levels[0]),
                )


def parts_of(entry: Entry, sizes: Mapping[str, int]) -> int:
    """Give the number of parts of a loop."""
    if isinstance(entry, Block):
        return entry.parts
    if isinstance(entry, Ring):
        return lcm(*[sizes[level] for level in entry.levels])
    return sizes[entry.level]


def _interleavings(
    facts: Facts,
    owners: Mapping[str, str],
    rings: Sequence[tuple[str, Ring]],
    sizes: Mapping[str, int],
) -> Iterator[dict[str, tuple[Entry, ...]]]:
    choices: list[list[tuple[Entry, ...]]] = []
    axes: list[str] = []
    for axis, extent in facts.extents.items():
        spreads: list[Entry] = [Spread(level) for level, own in owners.items() if own == axis]
        own_rings: list[Entry] = [ring for name, ring in rings if name == axis]
        if not spreads and not own_rings:
            continue
        if prod(parts_of(entry, sizes) for entry in (*spreads, *own_rings)) > extent and (
            own_rings
        ):
            return
        axes.append(axis)
        choices.append(list(_merges(spreads, own_rings)))
    for choice in product(*choices):
        yield dict(zip(axes, choice, strict=True))


def _merges(one: Sequence[Entry], other: Sequence[Entry]) -> Iterator[tuple[Entry, ...]]:
    """Interleave two lists, each in its order."""
    if not one or not other:
        yield (*one, *other)
        return
    for rest in _merges(one[1:], other):
        yield (one[0], *rest)
    for rest in _merges(one, other[1:]):
        yield (other[0], *rest)


def _blocked(
    facts: Facts, entries: Mapping[str, tuple[Entry, ...]], blocks: Sequence[int]
) -> Iterator[dict[str, tuple[Entry, ...]]]:
    yield dict(entries)
    for axis, extent in facts.extents.items():
        own = entries.get(axis, ())
        for parts in blocks:
            if parts > extent:
                continue
            for at in range(len(own) + 1):
                yield {**entries, axis: (*own[:at], Block(parts), *own[at:])}


def _sliced(
    facts: Facts,
    owners: dict[str, str],
    entries: Mapping[str, tuple[Entry, ...]],
    slices: Sequence[int],
) -> Iterator[Arrangement]:
    leading = {
        next((axis for axis, extent in group.axes.items() if extent > 1), "")
        for group in facts.groups
    }
    axis = leading.pop()
    if leading or not axis or axis in entries:
        return
    for parts in slices:
        if facts.extents[axis] % parts != 0:
            continue
        growing = growing_sizes(facts.extents[axis], parts)
        for block in (Block(parts), *([Block(parts, growing)] if growing else [])):
            cut = {**entries, axis: (block,)}
            for order in _orders(entries):
                yield Arrangement(
                    owners=owners, entries=cut, order=((axis, 0), *order), in_slices=True
                )


def growing_sizes(extent: int, parts: int) -> tuple[int, ...]:
    """Give sizes that grow, each about twice the one before; none where they cannot.

    Examples
    --------
    >>> growing_sizes(16, 4)
    (1, 2, 4, 9)
    >>> growing_sizes(4, 4)
    ()
    """
    whole = 2**parts - 1
    sizes = [max(1, extent * 2**number // whole) for number in range(parts - 1)]
    last = extent - sum(sizes)
    return (*sizes, last) if last > sizes[-1] else ()


def _orders(
    entries: Mapping[str, tuple[Entry, ...]],
) -> Iterator[tuple[tuple[str, int], ...]]:
    """Give the orders of the loops that take time; those of one axis keep theirs."""
    queues = [
        [(axis, n) for n, entry in enumerate(own) if not isinstance(entry, Spread)]
        for axis, own in entries.items()
    ]

    def extend(left: list[list[tuple[str, int]]]) -> Iterator[tuple[tuple[str, int], ...]]:
        if not any(left):
            yield ()
        for number, queue in enumerate(left):
            if queue:
                rest = [*left[:number], queue[1:], *left[number + 1 :]]
                for after in extend(rest):
                    yield (queue[0], *after)

    yield from extend(queues)
