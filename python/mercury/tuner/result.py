"""What a search found."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..dsl import Mesh, Program
from ..dsl.program import Boundary
from ..runtime.plan import Plan
from ..schedule import Schedule
from .agree import Vote, alone
from .assume import Assumptions, LinkSpeed, Observed, Selection, TuneWarning, select
from .costs import PlanCosts
from .quantity import format_bytes, format_seconds

if TYPE_CHECKING:
    from ..cuda.plan import CudaPlan
    from ..cuda.session import Session

__all__ = ["Choice", "Counts", "TuneResult", "select_stored"]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One plan of the result.

    Attributes
    ----------
    recipe
        Its schedule in one line.
    fingerprint
        Of the schedule; see `Space`.
    family
        The same for schedules that differ in the direction of their rings alone.
    sentence
        What it does.
    plain
        Whether it is plain library calls: gather, compute, merge.
    costs
        On the machine.
    peak_bytes
        Memory of the fullest rank: its shards and the plan's arenas.
    slow_latency, slow_link
        The latency when the link that hurts most has half its bandwidth, and that link.
    measured_s
        Of a run on the machine, in seconds; None when it was not measured.
    """

    recipe: str
    fingerprint: str
    family: str
    sentence: str
    plain: bool
    costs: PlanCosts
    peak_bytes: int
    slow_latency: float
    slow_link: str
    measured_s: float | None = None

    @property
    def values(self) -> tuple[float, float, float]:
        """What the Pareto set compares: latency, memory, latency with a slower link."""
        latency = self.costs.latency if self.measured_s is None else self.measured_s
        return latency, float(self.peak_bytes), self.slow_latency

    @property
    def rank(self) -> tuple[float | str, ...]:
        """What sorts plans, the fastest first; of equal ones the shortest schedule."""
        return (*self.values, len(self.recipe), self.recipe)

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "costs"
        } | {"costs": self.costs.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Choice:
        """Read what `to_json` gave."""
        own = {field.name: value[field.name] for field in fields(cls)}
        return cls(**own | {"costs": PlanCosts.from_json(value["costs"])})


def select_stored(answer: Mapping[str, Any], observed: Observed) -> Selection:
    """Say which plan of a stored answer to run; see `mercury.tuner.select`."""
    found = [answer["chosen"], answer["runner_up"], *answer["pareto"], answer["plain"]]
    plans = {each["fingerprint"]: Choice.from_json(each) for each in found if each is not None}
    links = [LinkSpeed(**link) for link in answer["links"]]
    return select(tuple(plans.values()), links, observed)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What became of the schedules.

    Attributes
    ----------
    seen
        Distinct schedules that were looked at.
    costed
        Those with a cost.
    pruned
        Those that a lower bound showed to be beaten in everything.
    illegal
        Steps that the compiler refused.
    too_large
        Those that need more memory than the limit.
    refused
        Those that this version cannot lower, by reason.
    lacking
        Those that need what the machine lacks, by reason.
    failed
        Those whose cost or trial failed, by recipe, with the reason.
    tried
        Those that ran on the embedded ranks and were right.
    """

    seen: int = 0
    costed: int = 0
    pruned: int = 0
    illegal: int = 0
    too_large: int = 0
    refused: Mapping[str, int]
    lacking: Mapping[str, int]
    failed: Mapping[str, str]
    tried: int = 0


@dataclass(frozen=True, kw_only=True)
class TuneResult:
    """The chosen schedule, and the others worth knowing.

    Attributes
    ----------
    program, mesh, boundary
        What was searched for.
    topology, memory
        The machine's name, and the limit in bytes.
    chosen
        The fastest plan that ran right.
    runner_up
        The next one that differs in more than the direction of its rings; None when there is
        no other.
    plain
        The fastest of plain library calls; None when none fits.
    pareto
        Plans that no other beats in latency, memory and sensitivity to a slower link, the
        fastest first.
    untried
        Plans of that set which were simulated only: the search ended before their trial.
        They are never run in place of another.
    measured
        Whether costs were measured, or the plans; else they are predicted.
    cost
        What they come from.
    counts
        Of the schedules looked at.
    ended
        How the search ended: ``"complete"``, ``"time limit"`` or ``"stopped"``.
    seconds
        That it took.
    time_limit
        That it was given, in seconds; None for none.
    from_cache
        Whether it was found in the cache.
    links
        How fast the links of the machine are taken to be.
    cloud
        Latency and memory of the plans that were compared, of many an even choice.
    """

    program: Program
    mesh: Mesh
    boundary: Boundary | None
    topology: str
    memory: int
    chosen: Choice
    runner_up: Choice | None
    plain: Choice | None
    pareto: tuple[Choice, ...]
    measured: bool
    cost: str
    counts: Counts
    ended: str
    seconds: float
    time_limit: float | None = None
    from_cache: bool = False
    links: tuple[LinkSpeed, ...] = ()
    cloud: tuple[tuple[float, int], ...] = ()
    untried: tuple[Choice, ...] = ()

    @property
    def schedule(self) -> Schedule:
        """The chosen schedule."""
        return self.schedule_of(self.chosen)

    def schedule_of(self, choice: Choice) -> Schedule:
        """Make the schedule of one of the plans."""
        return Schedule(self.program, self.mesh, self.boundary).apply(choice.recipe)

    def compile(
        self,
        target: str = "sim",
        observed: Observed | None = None,
        vote: Vote = alone,
        session: Session | None = None,
    ) -> Plan | CudaPlan:
        """Compile the chosen schedule, or the next safe one where the machine is another.

        Parameters
        ----------
        target
            Where it will run.
        observed
            The machine as it was found on this rank; as assumed when not given. When
            another plan is taken, a `TuneWarning` says so in a line.
        vote
            Exchanges a text between ranks, when many compile together: then all take the
            same plan, the one for the worst of them.
        session
            Of the GPUs that it will run on. The memory that is free there is asked for, where
            ``observed`` does not say, and the session's ranks vote. Ask before the shards are
            allocated: a plan's memory counts them.

        Raises
        ------
        TuneError
            When no plan fits into what memory is free.
        """
        seen = observed or Observed()
        if session is not None:
            if seen.free_bytes is None:
                seen = replace(seen, free_bytes=session.free_bytes())
            vote = partial(session.gather, "assumptions")
        taken = self.select(seen.agreed(vote))
        if taken.note:
            warnings.warn(taken.note, TuneWarning, stacklevel=2)
        return self.schedule_of(taken.choice).compile(target)

    @property
    def plans(self) -> tuple[Choice, ...]:
        """All plans, the chosen one first, plain library calls last."""
        found = [self.chosen, self.runner_up, *self.pareto, self.plain]
        return tuple({each.fingerprint: each for each in found if each is not None}.values())

    @property
    def listed(self) -> tuple[Choice, ...]:
        """All plans, then those that were simulated only."""
        return (*self.plans, *self.untried)

    def assumptions(self, choice: Choice) -> Assumptions:
        """Say what one of the plans assumes of the machine."""
        return Assumptions.of(choice, self.links)

    def select(self, observed: Observed) -> Selection:
        """Say which plan to run on the machine as it was found; see `mercury.tuner.select`."""
        return select(self.plans, self.links, observed)

    @property
    def script(self) -> str:
        """The chosen schedule as a script of the transform dialect."""
        return str(self.schedule)

    # -- text -----------------------------------------------------------------

    def rows(self) -> list[tuple[str, ...]]:
        """Give the table of plans, its heading first."""
        word = "latency" if self.measured else "predicted"
        timed = any(each.measured_s is not None for each in self.plans)
        word = "predicted" if timed else word
        head = ("plan", word, "off by", "exposed", "memory", "slow link", "schedule")
        rows: list[tuple[str, ...]] = [(head[0], "measured", *head[1:]) if timed else head]
        named = {self.chosen.fingerprint: "chosen"}
        if self.runner_up is not None:
            named.setdefault(self.runner_up.fingerprint, "runner-up")
        if self.plain is not None:
            own = named.get(self.plain.fingerprint)
            named[self.plain.fingerprint] = f"{own}, plain" if own else "plain"
        named |= {each.fingerprint: "simulated only" for each in self.untried}
        for choice in self.listed:
            costs = choice.costs
            seen = choice.measured_s
            rows.append(
                (
                    named.get(choice.fingerprint, "pareto"),
                    *(["-" if seen is None else format_seconds(seen)] if timed else []),
                    format_seconds(costs.latency),
                    f"{costs.error:.0%}",
                    format_seconds(costs.exposed),
                    format_bytes(choice.peak_bytes),
                    f"{choice.slow_latency / costs.latency:.2f}x {choice.slow_link}"
                    if costs.latency
                    else "",
                    choice.recipe,
                )
            )
        return rows

    def summary(self) -> list[str]:
        """Give what the table does not say, line by line."""
        counts = self.counts
        how = "measured" if self.measured else "*predicted*, not measured"
        lines = [
            f"{self.program.name} on {self.mesh}, {self.topology}, "
            f"{format_bytes(self.memory)} a rank: {how} ({self.cost})",
            f"chosen: {self.chosen.sentence or 'every rank works alone'}",
        ]
        if self.plain is None:
            met = "fits" if self.ended == "complete" else "that fits was met until then"
            lines.append(f"plain library calls: no such plan {met}")
        elif self.plain.fingerprint == self.chosen.fingerprint:
            lines.append("plain library calls are the fastest here")
        lines += self._agreement()
        own = any(buffer.cut is not None for buffer in self.program.buffers)
        if self.mesh.size > 1 and not self.boundary and not own:
            lines.append(
                "buffers lie where each plan wants them, and to bring them there costs "
                "nothing: no boundary was given"
            )
        if self.links:
            lines.append(f"assumes: {self.assumptions(self.chosen)}")
        lacking, refused = sum(counts.lacking.values()), sum(counts.refused.values())
        lines.append(
            f"{counts.seen} schedules: {counts.costed} compared, "
            f"{counts.pruned} surely slower, {counts.too_large} too large, "
            f"{refused} not lowered yet, {lacking} need what the machine lacks, "
            f"{len(counts.failed)} failed, {counts.tried} tried on embedded ranks"
        )
        ended = {
            "complete": "all of them",
            "time limit": "until the time limit",
            "stopped": "until it was stopped",
        }
        where = "found in the cache" if self.from_cache else f"searched {ended[self.ended]}"
        lines.append(f"{where}, {self.seconds:.1f} s")
        if self.untried:
            many = len(self.untried) > 1
            lines.append(
                f"{len(self.untried)} plan{'s' if many else ''} of the Pareto set "
                f"{'were' if many else 'was'} simulated only: the search ended before their "
                "trial; give more time to have them tried"
            )
        return lines

    def _agreement(self) -> list[str]:
        """Say how far what was predicted is from what was measured."""
        from ..bench.predict import agreement  # noqa: PLC0415 (for measured plans only)

        timed = {e.recipe: e.measured_s for e in self.plans if e.measured_s is not None}
        if len(timed) < 2:
            return []
        foretold = {e.recipe: e.costs.latency for e in self.plans}
        found = agreement(foretold, timed)
        return [
            f"predicted against measured: {found.plans} plans, {found.order}, "
            f"first choice {found.regret:.1%} slower than the best, off by {found.off_by:.0%}"
        ]

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
        table = [
            "  ".join(
                cell.ljust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        ]
        first, *rest = self.summary()
        return "\n".join([first, *table, *rest])

    # -- values ---------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Give the result as plain values; the program itself is not among them."""

        def plan(choice: Choice | None) -> dict[str, Any] | None:
            if choice is None:
                return None
            return choice.to_json() | {"assumptions": self.assumptions(choice).to_json()}

        return {
            "recipe": self.chosen.recipe,
            "mesh": dict(self.mesh.levels),
            "topology": self.topology,
            "memory": self.memory,
            "measured": self.measured,
            "cost": self.cost,
            "chosen": plan(self.chosen),
            "runner_up": plan(self.runner_up),
            "plain": plan(self.plain),
            "pareto": [plan(choice) for choice in self.pareto],
            "untried": [plan(choice) for choice in self.untried],
            "counts": json.loads(json.dumps(asdict(self.counts))),
            "ended": self.ended,
            "seconds": self.seconds,
            "time_limit": self.time_limit,
            "links": [asdict(link) for link in self.links],
            "cloud": [list(point) for point in self.cloud],
        }

    @classmethod
    def from_json(
        cls, value: Mapping[str, Any], program: Program, mesh: Mesh, boundary: Boundary | None
    ) -> TuneResult:
        """Read what `to_json` gave, for the same program, mesh and boundary."""

        def choice(found: Any) -> Choice | None:
            return None if found is None else Choice.from_json(found)

        return cls(
            program=program,
            mesh=mesh,
            boundary=boundary,
            topology=value["topology"],
            memory=value["memory"],
            chosen=Choice.from_json(value["chosen"]),
            runner_up=choice(value["runner_up"]),
            plain=choice(value["plain"]),
            pareto=tuple(Choice.from_json(each) for each in value["pareto"]),
            untried=tuple(Choice.from_json(each) for each in value["untried"]),
            measured=value["measured"],
            cost=value["cost"],
            counts=Counts(**value["counts"]),
            ended=value["ended"],
            seconds=value["seconds"],
            time_limit=value["time_limit"],
            links=tuple(LinkSpeed(**link) for link in value["links"]),
            cloud=tuple((latency, peak) for latency, peak in value["cloud"]),
        )

    def cached(self) -> TuneResult:
        """Give the result as found in the cache."""
        return replace(self, from_cache=True)
