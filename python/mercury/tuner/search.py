"""One search: every schedule is costed, the best are tried, and nothing ends it but its end."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import CompileError, MercuryError
from ..runtime.trial import trial
from ..schedule import Schedule
from ..topology import Link, Topology
from .bound import LowerBound
from .cache import Cache
from .costs import CostModel
from .interrupt import interrupts
from .lower import Lowered, lower
from .memory import boundary_bytes
from .needs import missing
from .pareto import pareto
from .placed import read_placed
from .progress import Report
from .quantity import format_seconds
from .result import Choice, Counts
from .sentence import is_plain, sentence
from .shrink import shrink
from .space import Candidate, Space

__all__ = ["Search"]

_RULE = re.compile(r"needs rule (R\d[^(,]*)")
_SAVE_EVERY_S = 1.0
# Plans of the Pareto set differ by more than this; curves are not better known.
_SLACK = 0.01
_TRIALS = 16


class Search:
    """The state of a search.

    Parameters
    ----------
    space
        What is searched.
    topology, memory
        The machine, and the bytes that a rank may use.
    cost
        Says what a plan costs.
    bound
        Says what it costs at least; None when nothing is known. Plans that cannot be among
        the fastest, nor in the Pareto set, are then not costed.
    deadline
        When to stop, on `time.monotonic`'s clock; None for never.
    top
        How many of the fastest plans are tried on the embedded ranks.
    report
        Told what is done now.
    cache, key
        Where progress is kept; None for nowhere.
    """

    def __init__(
        self,
        space: Space,
        topology: Topology,
        memory: int,
        cost: CostModel,
        *,
        bound: LowerBound | None = None,
        deadline: float | None,
        top: int,
        report: Report,
        cache: Cache | None,
        key: str,
    ) -> None:
        self.space, self.topology, self.memory, self.cost = space, topology, memory, cost
        self.bound = bound
        self.choices: list[Choice] = []
        self.ended = "complete"
        self.smallest: int | None = None
        self._deadline, self._top, self._report = deadline, top, report
        self._cache, self._key = cache, key
        self._saved: dict[str, Any] = cache.progress(key) if cache is not None else {}
        self._unsaved: dict[str, Any] = {}
        self._last_save = time.monotonic()
        self._seen = self._too_large = self._pruned = 0
        self._slow: dict[str, Topology] = {}
        self._fastest: float | None = None
        self._best = ""
        self._eager: dict[str, Choice] = {}
        self._refused: Counter[str] = Counter()
        self._lacking: Counter[str] = Counter()
        self._failed: dict[str, str] = {}
        self._right: set[str] = set()
        self._is_stopped: Callable[[], bool] = lambda: False

    # -- every schedule -------------------------------------------------------

    def run(self) -> None:
        """Cost every schedule until the end, the deadline or an interrupt, then try some.

        An interrupt ends either at its next schedule; one more, at once.
        """
        with interrupts() as self._is_stopped:
            for work in (self._cost_all, self._try_best):
                try:
                    work()
                except KeyboardInterrupt:
                    self.ended = "stopped"
                finally:
                    self._save()

    def _is_over(self) -> bool:
        """Whether no more than has to be is to be done, and remember why."""
        if self._is_stopped():
            self.ended = "stopped"
        elif self.ended == "complete" and self._late():
            self.ended = "time limit"
        return self.ended != "complete"

    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def _cost_all(self) -> None:
        links: dict[Any, Mapping[str, Link]] = {}
        for candidate in self.space:
            self._seen += 1
            levels = candidate.placed.levels
            if levels not in links:
                links[levels] = self.topology.links_of(candidate.schedule.mesh)
            self._look_at(candidate, links[levels])
            self._report(f"{self._seen} schedules, {len(self.choices)} compared{self._best}")
            if self._is_over():
                return

    def _look_at(self, candidate: Candidate, links: Mapping[str, Link]) -> None:
        lacks = missing(candidate.placed, links)
        if lacks:
            self._lacking[lacks] += 1
            return
        outcome = self._saved.get(candidate.fingerprint)
        if outcome is None:
            outcome = self._outcome(candidate)
            self._keep(candidate.fingerprint, outcome)
        match outcome:
            case {"choice": value}:
                choice = Choice.from_json(value)
                self._add(choice)
                if not candidate.eager:  # those that merge at the end come next
                    self._eager = {choice.fingerprint: choice}
            case {"pruned": _}:
                self._pruned += 1
            case {"too large": peak}:
                self._too_large += 1
                self.smallest = min(peak, self.smallest or peak)
            case {"refused": reason}:
                self._refused[reason] += 1
            case {"failed": reason}:
                self._failed[candidate.recipe] = reason

    def _add(self, choice: Choice) -> None:
        self.choices.append(choice)
        if self._fastest is None or choice.costs.latency < self._fastest:
            self._fastest = choice.costs.latency
            self._best = f", best {format_seconds(self._fastest)}"

    def _outcome(self, candidate: Candidate) -> dict[str, Any]:
        """Find out about a schedule; whatever goes wrong is its own affair."""
        try:
            outside = boundary_bytes(candidate)
            # How much the smallest plan needs is told only where none fits.
            if outside > self.memory and self.choices:
                return {"too large": outside}
            if self.bound is not None and self._gains_too_little(candidate, self.bound):
                return {"pruned": outside}
            lowered = lower(candidate, self.topology)
            if lowered.peak_bytes > self.memory:
                return {"too large": lowered.peak_bytes}
            if self.bound is not None and self._is_beaten(lowered, self.bound):
                return {"pruned": lowered.peak_bytes}
            return {"choice": self._choice(lowered).to_json()}
        except CompileError as error:
            return {"refused": _reason(error.message)}
        except Exception as error:  # a cost model may be anybody's
            return {"failed": f"{type(error).__name__}: {error}"}

    def _is_beaten(self, lowered: Lowered, bound: LowerBound) -> bool:
        """Whether others are surely better: in everything, and as many as are tried.

        Plain plans are never left out: one of them is always named.
        """
        candidate = lowered.candidate
        if is_plain(candidate.placed):
            return False
        least = bound.of(candidate, self.topology).latency
        slow = max(
            bound.of(candidate, self._slower(name)).latency for name in self._links(candidate)
        )
        return self._others_are_better(least, lowered.peak_bytes, slow)

    def _gains_too_little(self, candidate: Candidate, bound: LowerBound) -> bool:
        """Whether a plan is beaten that merges at the end, by what is known of its eager twin.

        Deferring takes away merges at the most, and moves the same at the same times; and it
        needs no less memory, as partial results wait, unless in a narrow type. So it is not
        even lowered where the eager plan without its merges would still be beaten.
        """
        eager = self._eager.get(candidate.eager)
        narrow = any(partial for _, partial in candidate.placed.deferred)
        if eager is None or narrow or is_plain(candidate.placed):
            return False
        kernels = bound.of(candidate, self.topology).compute
        merges = max(0.0, eager.costs.compute - kernels)
        return self._others_are_better(
            eager.costs.latency - merges, eager.peak_bytes, eager.slow_latency - merges
        )

    def _others_are_better(self, latency: float, peak: int, slow: float) -> bool:
        faster = [each for each in self.choices if each.costs.latency < latency]
        # The runner-up is of another family than the winner.
        if len(faster) < self._top or len({each.family for each in faster}) < 2:
            return False
        return any(each.peak_bytes <= peak and each.slow_latency <= slow for each in faster)

    def _slower(self, link: str) -> Topology:
        """Give the machine with half the bandwidth of one link, always the same object."""
        if link not in self._slow:
            self._slow[link] = self.topology.slower(link, 0.5)
        return self._slow[link]

    def _links(self, candidate: Candidate) -> list[str]:
        found = self.topology.links_of(candidate.schedule.mesh).values()
        return list(dict.fromkeys(link.name for link in found))

    def _choice(self, lowered: Lowered) -> Choice:
        candidate = lowered.candidate
        costs = self.cost(lowered, self.topology)
        slow = [
            (self.cost(lowered, self._slower(name)).latency, name)
            for name in self._links(candidate)
        ]
        worst, link = max(slow, default=(costs.latency, ""))
        return Choice(
            recipe=candidate.recipe,
            fingerprint=candidate.fingerprint,
            family=self.space.family(candidate),
            sentence=sentence(candidate.placed),
            plain=is_plain(candidate.placed),
            costs=costs,
            peak_bytes=lowered.peak_bytes,
            slow_latency=worst,
            slow_link=link,
        )

    # -- trials ---------------------------------------------------------------

    def best(self) -> list[Choice]:
        """Give the plans that did not fail, the fastest first."""
        return sorted(
            (each for each in self.choices if each.recipe not in self._failed),
            key=lambda each: each.rank,
        )

    def is_right(self, choice: Choice) -> bool:
        """Whether a plan ran on the embedded ranks and was right."""
        return choice.fingerprint in self._right

    def finalists(self) -> list[Choice]:
        """Give the plans to try: those that a result names first, then more of the fastest.

        A result names the fastest, another one, a plain one, and those of the Pareto set.
        """
        best = self.best()
        plain = [each for each in best if each.plain][:1]
        # All of the fastest may be one plan that turns its rings one way or the other.
        other = [each for each in best if each.family != best[0].family][:1]
        named = [*best[:1], *other, *plain, *self.front(best), *best[1 : self._top]]
        return list({each.fingerprint: each for each in named}.values())

    def untried(self) -> list[Choice]:
        """Give the plans of the Pareto set that there was no time to try."""
        return [each for each in self.front(self.best()) if not self.is_right(each)]

    @staticmethod
    def front(choices: list[Choice]) -> list[Choice]:
        """Give the Pareto set of some plans."""
        return pareto(choices, lambda each: each.values, _SLACK)

    def _try_best(self) -> None:
        for number in range(_TRIALS + self._top):
            open_ = [each for each in self.finalists() if not self.is_right(each)]
            # The first ones, which a result always names, are tried even when it is late.
            if not open_ or (number > self._top and self._is_over()):
                return
            choice = open_[0]
            self._report(f"trying {choice.recipe}")
            name = f"trial {choice.fingerprint}"
            outcome = self._saved.get(name)
            if outcome is None:
                outcome = self._trial(choice)
                self._keep(name, outcome)
            if outcome == "right":
                self._right.add(choice.fingerprint)
            else:
                self._failed[choice.recipe] = outcome

    def _trial(self, choice: Choice) -> str:
        """Run a plan on the embedded ranks; the reason when it is not right."""
        space = self.space
        try:
            whole = Schedule(space.program, space.mesh, space.boundary).apply(choice.recipe)
            sized = read_placed(whole).layouts.items()
            kept = {axis for axis, layout in sized if layout.startswith("bounds")}
            program = shrink(space.program, space.mesh.size, kept)
            schedule = Schedule(program, space.mesh, space.boundary)
            outcome = trial(schedule.apply(choice.recipe).compile())
        except MercuryError as error:
            return f"a trial on embedded ranks failed: {error.message}"
        if outcome.right:
            return "right"
        errors = ", ".join(f"{name} {error:.1e}" for name, error in outcome.errors.items())
        return f"wrong on embedded ranks: error {errors} against float64"

    def fail(self, choice: Choice, reason: str) -> None:
        """Leave out a plan that failed later, on the machine."""
        self._failed[choice.recipe] = reason

    # -- what is kept ---------------------------------------------------------

    def _keep(self, name: str, outcome: Any) -> None:
        self._saved[name] = self._unsaved[name] = outcome
        if time.monotonic() - self._last_save > _SAVE_EVERY_S:
            self._save()

    def _save(self) -> None:
        if self._cache is not None and self._unsaved:
            self._cache.add_progress(self._key, self._unsaved)
        self._unsaved = {}
        self._last_save = time.monotonic()

    def counts(self) -> Counts:
        """Count what became of the schedules."""
        return Counts(
            seen=self._seen,
            costed=len(self.choices),
            pruned=self._pruned,
            illegal=sum(self.space.illegal.values()),
            too_large=self._too_large,
            refused=dict(self._refused.most_common()),
            lacking=dict(self._lacking.most_common()),
            failed=dict(self._failed),
            tried=len(self._right),
        )


def _reason(message: str) -> str:
    """Give the rule that a plan needs: reasons are counted by it."""
    found = _RULE.search(message)
    return f"rule {found[1].strip()} is not lowered yet" if found else message
