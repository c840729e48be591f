"""The schedules of a program on a mesh, each once.

A schedule of the space is made of transforms in stages, each an independent choice: levels
are split; each level spreads an axis; another axis may be staggered on it; loops that take
time are ordered; buffers are placed where the loops leave a choice; rings get their
operands; merges that can wait for the end wait or do not. What the compiler refuses is left
out, and what it says is counted. Schedules with one canonical form are one.

Some schedules are legal and not here, each because another one is as good on any machine:

- levels, and rings, of one axis in another order than the mesh's: a fast level outside a
  slow one sends more over the slow one;
- two axes staggered on one level: only the outer one moves anything;
- a level that spreads no axis: its ranks would all do the same;
- a buffer cut over a level that already spreads one of its axes: the boundary says that,
  and it is resharded on the way;
- joined loops: a level is cut along whole axes, so splitting the level says the same;
- the other direction of a ring without a mask: its mirror image;
- what is read where it lies, and results that are sent: who reads it there can read them;
- a ring in slices of its buffers that cannot read the next one meanwhile, as one that sends,
  one of several, or in chunks, or whose slices do not lie together;
- panels of what one loop alone needs: a ring brings that as well;
- a merge that waits where it can gain nothing; see `mercury.tuner.deferral`;
- exchanges in slices where they can gain nothing; see `mercury.tuner.exchange`.

Options leave out more, by default: loops of blocks inside a rank, other implementations of
kernels, partial results that are rounded while they wait or move, K rotating while V is
gathered, meshes of more than two levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from ..dsl import Mesh, Program
from ..dsl.program import Boundary
from ..errors import ScheduleError
from ..schedule import Schedule
from ..schedule.recipe import Call
from .arrangement import Arrangement, arrangements
from .canonical import family, fingerprint
from .deferral import deferrals
from .exchange import exchanges, is_exchanged
from .facts import Facts
from .overlap import overlaps
from .placed import Placed, read_placed
from .placement import Style, operands, place_calls, placements, walked, whole
from .quantity import TuneError
from .script import apply
from .steps import loop_calls, ring_calls

__all__ = ["Candidate", "Space", "SpaceOptions"]

ROTATE = Style()
DELIVER = Style(results="deliver")
PULL = Style(reads="pull", results="fetch")
PULL_CHUNKS = Style(reads="pull", results="fetch", chunks=2)


@dataclass(frozen=True, kw_only=True)
class SpaceOptions:
    """What the space holds beside the schedules of whole loops.

    Attributes
    ----------
    max_levels
        Levels are split until there are so many.
    styles
        How rings move what they move.
    defer
        Whether merges may wait for the end.
    narrow
        Element types, as ``"bf16"``, that partial results may be rounded to while they wait or
        move; without it they are float32.
    blocks
        Numbers of parts that one axis is cut into, one after another, inside a rank.
    slices
        Numbers of parts that divide the axis which all buffers begin with: a ring that pulls
        is repeated for each, and reads the next one meanwhile. Each number is tried with equal
        parts, and with growing ones, the first of which is there soon. Where buffers live
        elsewhere outside of the loops, slices of any axis that all of them have are exchanged,
        also with a half slice at either end.
    overlap
        Whether steps may compute beside each other, which is something on GPUs alone.
    implementations
        For a pattern of kernels, the implementations to choose from.
    untied
        Whether buffers of the same role and axes are placed one by one.
    """

    max_levels: int = 2
    styles: tuple[Style, ...] = (ROTATE, DELIVER, PULL, PULL_CHUNKS)
    defer: bool = True
    narrow: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()
    slices: tuple[int, ...] = (2, 4, 8)
    overlap: bool = False
    implementations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    untied: bool = False

    def __post_init__(self) -> None:
        if self.max_levels < 1:
            raise TuneError(f"a mesh has at least one level, got max_levels={self.max_levels}")
        for name, parts in (("blocks", self.blocks), ("slices", self.slices)):
            if any(number < 2 for number in parts):
                raise TuneError(f"{name} are numbers of 2 parts or more, got {list(parts)}")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One schedule of the space.

    Attributes
    ----------
    schedule
        Ready to compile.
    placed
        Its loops, and where its buffers live.
    fingerprint
        Of its canonical form: the same for the same plan, on every rank.
    eager
        The fingerprint of the same schedule with every merge as partial results come; empty
        when it is that one. It came before.
    """

    schedule: Schedule
    placed: Placed
    fingerprint: str
    eager: str = ""

    @property
    def recipe(self) -> str:
        """The schedule in one line, which `Schedule.apply` reads."""
        return self.schedule.recipe()


class Space:
    """Every distinct schedule of a program on a mesh, in a fixed order.

    Iterating makes them one by one. They are built of transforms, so each is legal by the
    compiler's own rules, and two that mean the same plan are one.

    Parameters
    ----------
    program
        What to schedule.
    mesh
        Where it runs.
    boundary
        Where buffers live outside; kept by every schedule.
    links
        For each level of the mesh, what it runs over: levels on equal links may take each
        other's places. Each level its own when not given.
    options
        What else to vary.

    Attributes
    ----------
    made
        Schedules given so far.
    repeated
        Those that were another one again.
    illegal
        Those that the compiler refused, by its reason.

    Examples
    --------
    >>> import mercury as mc
    >>> small = mc.programs.matmul(m=8, n=8, depth=8)
    >>> [each.recipe for each in Space(small, mc.Mesh(gpu=2))][:3]
    ['parallelize(i, gpu)', 'parallelize(i, gpu); shard(B, k, gpu)', \
'parallelize(i, gpu); shard(B, j, gpu)']
    """

    def __init__(
        self,
        program: Program,
        mesh: Mesh,
        boundary: Boundary | None = None,
        *,
        links: Mapping[str, str] | None = None,
        options: SpaceOptions | None = None,
    ) -> None:
        self.program, self.mesh, self.boundary = program, mesh, boundary
        self.options = options or SpaceOptions()
        self._links = dict(links or {level: level for level in mesh.names})
        self._styles = (
            *self.options.styles,
            *(
                replace(style, link=narrow)
                for narrow in self.options.narrow
                for style in self.options.styles
                if style.results in ("deliver", "fetch") and style.link is None
            ),
        )
        self.made = 0
        self.repeated = 0
        self.illegal: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Candidate]:
        self.made = self.repeated = 0
        self.illegal = Counter()
        seen: set[str] = set()
        for candidate in self.with_repeats():
            if candidate.fingerprint in seen:
                self.repeated += 1
                continue
            seen.add(candidate.fingerprint)
            self.made += 1
            yield candidate

    def with_repeats(self) -> Iterator[Candidate]:
        """Give every schedule, also those that are another one again."""
        facts = Facts.of(self.program, self.options.untied)
        bare = Schedule(self.program, self.mesh, self.boundary)
        for splits in self._splits():
            base = apply(bare, splits)
            links = self._links_after(splits)
            for schedule in self._schedules(facts, base, links):
                try:
                    placed = read_placed(schedule)
                except ScheduleError as error:
                    self.illegal[error.message] += 1
                    continue
                found = fingerprint(placed, links)
                eager = Candidate(schedule=schedule, placed=placed, fingerprint=found)
                for made in (eager, *self._deferred(schedule, placed, links, found)):
                    yield made
                    yield from self._overlapped(made, links)
            for schedule, placed in self._exchanged(facts, base, splits):
                found = fingerprint(placed, links)
                yield Candidate(schedule=schedule, placed=placed, fingerprint=found)

    def fingerprint(self, schedule: Schedule) -> str:
        """Give the fingerprint that a schedule of this program and mesh has in the space."""
        placed = read_placed(schedule)
        return fingerprint(placed, self._links_of(placed))

    def family(self, candidate: Candidate) -> str:
        """Give what a schedule of the space shares with those that differ in direction."""
        return family(candidate.placed, self._links_of(candidate.placed))

    def _links_of(self, placed: Placed) -> dict[str, str]:
        """Give the links of levels that somebody else named: by their ranks."""
        found, left = {}, list(self.mesh.levels)
        ranks = 1
        for level, size in placed.levels:
            found[level] = self._links[left[0][0]]
            ranks *= size
            if ranks == left[0][1] and len(left) > 1:
                left.pop(0)
                ranks = 1
        return found

    # -- levels ---------------------------------------------------------------

    def _splits(self) -> Iterator[list[Call]]:
        """Enumerate the ways to split levels, those with fewer levels first."""
        spare = max(0, self.options.max_levels - len(self.mesh.levels))
        choices = [list(_factorings(size, spare + 1)) for _, size in self.mesh.levels]
        combined = sorted(
            (c for c in product(*choices) if sum(map(len, c)) <= len(c) + spare),
            key=lambda choice: sum(map(len, choice)),
        )
        for choice in combined:
            yield [
                Call(
                    name="split_level",
                    args=[level, {f"{level}{n}": size for n, size in enumerate(sizes)}],
                )
                for level, sizes in zip(self.mesh.names, choice, strict=True)
                if len(sizes) > 1
            ]

    def _links_after(self, splits: Sequence[Call]) -> dict[str, str]:
        links = dict(self._links)
        for call in splits:
            level, into = call.args
            assert isinstance(into, dict)
            links |= dict.fromkeys(into, links[str(level)])
        return links

    # -- one mesh -------------------------------------------------------------

    def _schedules(
        self, facts: Facts, base: Schedule, links: Mapping[str, str]
    ) -> Iterator[Schedule]:
        mesh = base.mesh
        sizes = dict(mesh.levels)
        nests = read_placed(base).nests
        options = self.options
        for arrangement in arrangements(facts, mesh, options.blocks, options.slices):
            calls, loops = loop_calls(nests, arrangement, sizes)
            try:
                arranged = apply(base, calls)
            except ScheduleError as error:
                self.illegal[error.message] += 1
                continue
            for places in placements(facts, arrangement, sizes):
                where = place_calls(facts, arrangement, places)
                axes = walked(facts, arrangement, places, sizes)
                panels = place_calls(facts, arrangement, places, panels=axes)
                for how in operands(facts, arrangement, places, sizes, links, self._styles):
                    if arrangement.in_slices and not all(each.reads_ahead for each in how):
                        continue
                    rings = ring_calls(arrangement, loops, how)
                    yield from self._finished(arranged, [*where, *rings])
                    whole = all(each.style.chunks == 1 for each in how)
                    if panels != where and whole and not arrangement.in_slices:
                        yield from self._finished(arranged, [*panels, *rings])

    def _exchanged(
        self, facts: Facts, base: Schedule, splits: Sequence[Call]
    ) -> Iterator[tuple[Schedule, Placed]]:
        """Give the schedules that exchange slices of what they need and make."""
        before = read_placed(base)
        nests = before.nests
        outside = {cut.axis for cuts in before.boundary.values() for cut in cuts}
        if len(nests) != 1 or not outside:
            return
        for arrangement in exchanges(facts, base.mesh, self.options.slices):
            if any(self._is_one_level(arrangement, call) for call in splits):
                continue
            ((axis, _),) = arrangement.order
            if axis in outside:
                continue
            calls, _ = loop_calls(nests, arrangement, dict(base.mesh.levels))
            where = place_calls(facts, arrangement, whole(facts, arrangement))
            try:
                plain = apply(base, [*calls, *where])
            except ScheduleError as error:
                self.illegal[error.message] += 1
                continue
            placed = read_placed(plain)
            slices = placed.walker(placed.nests[0], axis)
            assert slices is not None
            if is_exchanged(self.program, placed, slices):
                overlap = Call(name="overlap", args=[slices.name])
                for schedule in self._finished(plain, [overlap]):
                    yield schedule, read_placed(schedule)

    @staticmethod
    def _is_one_level(arrangement: Arrangement, split: Call) -> bool:
        """Whether all parts of a level spread one axis, and so are that level again."""
        _, into = split.args
        assert isinstance(into, dict)
        return len({arrangement.owners.get(level) for level in into}) == 1

    def _deferred(
        self, schedule: Schedule, placed: Placed, links: Mapping[str, str], eager: str
    ) -> Iterator[Candidate]:
        """Give the same schedule with its merges at the end."""
        if not self.options.defer:
            return
        for calls in deferrals(self.program, placed, self.options.narrow):
            try:
                made = apply(schedule, calls)
                later = read_placed(made)
            except ScheduleError as error:
                self.illegal[error.message] += 1
                continue
            found = fingerprint(later, links)
            yield Candidate(schedule=made, placed=later, fingerprint=found, eager=eager)

    def _overlapped(self, made: Candidate, links: Mapping[str, str]) -> Iterator[Candidate]:
        """Give the same schedule with steps that compute beside each other."""
        calls = overlaps(self.program, made.placed) if self.options.overlap else []
        if not calls:
            return
        schedule = apply(made.schedule, calls)
        placed = read_placed(schedule)
        found = fingerprint(placed, links)
        yield Candidate(schedule=schedule, placed=placed, fingerprint=found, eager=made.eager)

    def _finished(self, arranged: Schedule, steps: Sequence[Call]) -> Iterator[Schedule]:
        named = self.options.implementations
        for choice in product(*named.values()):
            patches = [
                Call(name="patch", args=[pattern, implementation])
                for pattern, implementation in zip(named, choice, strict=True)
            ]
            try:
                yield apply(arranged, [*steps, *patches])
            except ScheduleError as error:
                self.illegal[error.message] += 1


def _factorings(size: int, most: int) -> Iterator[tuple[int, ...]]:
    """Write a size as a product of numbers above 1, in every order, fewest first."""
    for count in range(1, most + 1):
        yield from _factors(size, count)


def _factors(size: int, count: int) -> Iterator[tuple[int, ...]]:
    if count == 1:
        yield (size,)
        return
    for first in range(2, size // 2 + 1):
        if size % first == 0:
            for rest in _factors(size // first, count - 1):
                yield (first, *rest)
