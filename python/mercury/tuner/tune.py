"""Finding the best schedule of a program on a machine; see `tune`."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ..dsl import Mesh, Program
from ..dsl.program import Boundary
from ..errors import MercuryError
from ..topology import Topology, load
from .agree import Vote, agree_on_entry, agree_on_text, alone
from .assume import LinkSpeed
from .bound import LowerBound
from .cache import Cache, Entry
from .costs import CostModel
from .guard import Guarded
from .key import Key
from .measured import Measure, measure_finalists
from .progress import Report, on_terminal
from .quantity import TuneError, format_bytes, parse_bytes, parse_seconds
from .result import Choice, TuneResult
from .search import Search
from .simulated import Simulated
from .space import Space, SpaceOptions
from .store import CacheError, CacheWarning

__all__ = ["tune"]

_CLOUD = 400  # points


def tune(
    program: Program,
    mesh: Mesh | None = None,
    *,
    topology: str | Path | Topology,
    boundary: Boundary | None = None,
    memory: str | int | None = None,
    target: str = "sim",
    time_limit: str | float | None = None,
    candidate_limit: str | float = 30.0,
    cost: CostModel | None = None,
    prune: bool = True,
    options: SpaceOptions | None = None,
    top: int = 3,
    cache: Cache | bool = True,
    measure: Measure | None = None,
    vote: Vote = alone,
    progress: Callable[[], AbstractContextManager[Report]] = on_terminal,
) -> TuneResult:
    """Find the fastest schedule of a program that fits a machine.

    Every distinct schedule is made and lowered. Those that need what the machine lacks, or
    more memory than the limit, are left out. The others are compared by simulation, and the
    fastest, the plain one and the Pareto set are run on embedded ranks, on a small program
    of the same kind, and compared with float64. A schedule that fails does not end the
    search. Plain library calls (gather, compute, merge) always take part, and may win.

    What is predicted, and how
    --------------------------
    Costs are *predicted* by simulating what all ranks of the lowered plan do; see
    `mercury.simulate` for what that leaves out. What a lower bound shows to be slower than
    others, and no better in memory or with a slower link, is not simulated: that never
    changes the result. Only the curves of ``h200`` inside one host were measured, other
    presets are figures of datasheets. Read the order of the plans, not the digits; ``off by``
    is what the curves themselves may be off by.

    Parameters
    ----------
    program
        What to schedule.
    mesh
        Where it runs; all ranks of the topology when not given.
    topology
        The machine: a preset as ``"h100-8x2"``, a file, or a `Topology`.
    boundary
        Where buffers live outside the program; each schedule's own where not given.
    memory
        Limit of a rank, as ``"40GiB"`` or in bytes; the machine's when not given.
    target
        Where the plan will run: ``"sim"``, or ``"cuda"``. On GPUs the plans that the result
        names are measured, each on all ranks, and the fastest is chosen; see ``measure``.
    time_limit
        Of the search, as ``"60s"``; the best until then is the result, and asking again
        with more time goes on from there. Ctrl-C does the same; twice, at once.
    candidate_limit
        That a cost model of yours may take for one candidate, as ``"30s"``; one that hangs is
        listed as failed, and the search goes on.
    cost
        The cost model; the simulator when not given.
    prune
        Whether a lower bound spares simulations; the result is the same.
    options
        What the space holds. When not given, its defaults, on GPUs with steps that overlap.
    top
        How many of the fastest plans are tried before one is chosen.
    cache
        Where results are kept; True for the user's cache, False for none.
    measure
        Times schedules on the machine (see `Measure`); `mercury.bench.tuning.on_gpus` under
        torchrun, when none is given and the target is ``"cuda"``.
    vote
        Exchanges a text between ranks (see `Vote`), when many processes ask together:
        then all take the cache or none, and all choose what the first chose.
    progress
        Makes what is told how far the search is.

    Returns
    -------
    TuneResult
        The choice, its runner-up and the Pareto set; ``print`` shows them. Plans of the set
        that a time limit left untried are listed apart.

    Raises
    ------
    TuneError
        When no schedule is left; it says why.
    TopologyError
        When the topology is not right, or too small for the mesh.

    Examples
    --------
    >>> import mercury as mc
    >>> best = mc.tune(
    ...     mc.programs.matmul(m=64, n=64, depth=64), topology="h200-2x1", cache=False
    ... )
    >>> best.schedule.recipe()
    'parallelize(i, gpu)'
    """
    started = time.monotonic()
    machine = topology if isinstance(topology, Topology) else load(topology)
    ranks = machine.mesh if mesh is None else mesh
    if target not in ("sim", "cuda"):
        raise TuneError(f"there is no target {target!r}; targets are 'sim' and 'cuda'")
    if top < 1:
        raise TuneError(f"at least one plan must be tried, got top={top}")
    links = machine.links_of(ranks)
    limit = machine.machine.memory if memory is None else parse_bytes(memory)
    seconds = None if time_limit is None else parse_seconds(time_limit)
    deadline = None if seconds is None else started + seconds
    patience = parse_seconds(candidate_limit)
    own_cost = Simulated() if cost is None else Guarded(cost, patience, deadline)
    own_options = options or SpaceOptions(overlap=target == "cuda")
    key = Key.of(
        program,
        ranks,
        boundary,
        topology=machine,
        memory=limit,
        target=target,
        options=own_options,
        cost=own_cost.name,
    )
    store = _Store(cache, key)
    with _meters(target, ranks, measure, vote) as (meter, ballot):
        found = agree_on_entry(store.find(program, ranks, boundary, seconds), ballot)
        if found is not None:
            return TuneResult.from_json(found.answer, program, ranks, boundary).cached()

        space = Space(
            program,
            ranks,
            boundary,
            links={level: link.name for level, link in links.items()},
            options=own_options,
        )
        with progress() as report:
            search = Search(
                space,
                machine,
                limit,
                own_cost,
                bound=LowerBound() if cost is None and prune else None,
                deadline=deadline,
                top=top,
                report=report,
                cache=store.cache,
                key=key.hash,
            )
            search.run()
        named = [each for each in search.finalists() if search.is_right(each)]
        if meter is not None:
            named = measure_finalists(search, meter, ballot)
        mine = _result(search, named, started, seconds, measured=meter is not None)
        # A rank that stopped earlier must not choose otherwise.
        text = "" if mine is None else json.dumps(mine.to_json(), sort_keys=True)
        chosen = agree_on_text(text, ballot)
        if not chosen:
            raise _nothing(search)
        answer = json.loads(chosen)
        store.keep(answer)
        return TuneResult.from_json(answer, program, ranks, boundary)


@contextmanager
def _meters(
    target: str, ranks: Mesh, measure: Measure | None, vote: Vote
) -> Iterator[tuple[Measure | None, Vote]]:
    """Give what was given, or what measures on the GPUs that the target asks for."""
    if target == "cuda" and measure is None:
        from ..bench.tuning import on_gpus  # noqa: PLC0415 (loads PyTorch)

        with on_gpus(ranks) as found:
            yield found
    else:
        yield measure, vote


def _result(
    search: Search,
    named: list[Choice],
    started: float,
    limit: float | None,
    *,
    measured: bool,
) -> TuneResult | None:
    if not named:
        return None
    finalists = sorted(named, key=lambda each: each.rank)
    first = finalists[0]
    space = search.space
    return TuneResult(
        program=space.program,
        mesh=space.mesh,
        boundary=space.boundary,
        topology=search.topology.name,
        memory=search.memory,
        chosen=first,
        runner_up=next((each for each in finalists if each.family != first.family), None),
        plain=next((each for each in finalists if each.plain), None),
        pareto=tuple(search.front(finalists)),
        untried=tuple(search.untried()),
        measured=measured or search.cost.measured,
        cost=search.cost.name,
        counts=search.counts(),
        ended=search.ended,
        seconds=time.monotonic() - started,
        time_limit=limit,
        links=tuple(LinkSpeed.of(link) for link in search.topology.links),
        cloud=_cloud(search.choices),
    )


def _cloud(choices: Iterable[Choice]) -> tuple[tuple[float, int], ...]:
    """Give what a picture of all plans shows: of points that lie together, one."""
    points = {
        (float(f"{each.costs.latency:.3g}"), int(float(f"{each.peak_bytes:.3g}")))
        for each in choices
    }
    return tuple(sorted(points)[:: max(1, -(-len(points) // _CLOUD))])


def _nothing(search: Search) -> TuneError:
    counts = search.counts()
    why = [f"{counts.seen} schedules were looked at, and the search ended: {search.ended}"]
    if counts.too_large and search.smallest is not None:
        why.append(f"{counts.too_large} need more memory than {search.memory:,} bytes")
    for reason, count in [*counts.lacking.items(), *counts.refused.items()]:
        why.append(f"{count}: {reason}")
    why += [f"{recipe}: {reason}" for recipe, reason in list(counts.failed.items())[:5]]
    first = "no schedule is left; give more time, another mesh or another boundary"
    if counts.too_large and search.smallest is not None and not search.choices:
        limit, needed = format_bytes(search.memory), format_bytes(search.smallest)
        which = "the smallest" if search.ended == "complete" else "the smallest so far"
        first = (
            f"no plan fits into {limit}; {which} needs {search.smallest:,} bytes ({needed}); "
            "give more memory, more ranks or another boundary"
        )
    return TuneError(
        first,
        notes=[("", text) for text in why],
    )


class _Store:
    """The cache, or none when it cannot be used: a search does not need it."""

    def __init__(self, cache: Cache | bool, key: Key) -> None:
        self.cache: Cache | None = Cache() if cache is True else (cache or None)
        self._key = key

    def find(
        self, program: Program, mesh: Mesh, boundary: Boundary | None, seconds: float | None
    ) -> Entry | None:
        """Give an answer that is good for the time asked for, and still means the same."""
        if self.cache is None:
            return None
        try:
            entry = self.cache.get(self._key.hash)
        except CacheError as error:
            self._give_up(error)
            return None
        if entry is None:
            return None
        try:
            result = TuneResult.from_json(entry.answer, program, mesh, boundary)
            result.schedule_of(result.chosen)
        except (MercuryError, KeyError, TypeError) as error:
            warnings.warn(
                f"the cache's answer is not used, it does not fit this version: {error}",
                CacheWarning,
                stacklevel=3,
            )
            return None
        given = result.time_limit if result.ended == "time limit" else None
        enough = seconds is not None and given is not None and given >= seconds
        return entry if result.ended == "complete" or enough else None

    def keep(self, answer: dict[str, object]) -> None:
        if self.cache is None:
            return
        entry = Entry(
            key=self._key.hash,
            label=self._key.label,
            question=self._key.question,
            answer=answer,
            created=time.time(),
        )
        try:
            self.cache.put(entry, ended=answer["ended"] == "complete")
        except CacheError as error:
            self._give_up(error)

    def _give_up(self, error: CacheError) -> None:
        self.cache = None
        warnings.warn(f"searching without a cache: {error.message}", CacheWarning, stacklevel=4)
