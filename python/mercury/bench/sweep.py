"""Measuring workloads: the floor, our plans and the peers, of each in one run."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..errors import MercuryError
from . import floor as floors
from .candidate import Candidate, Prepared
from .errors import AbsentError, BenchError
from .measure import Settings, Timing, compare
from .processes import Processes, Work, say
from .record import Peer, Record
from .standing import Ready, Standing
from .statistics import median, ratios

__all__ = ["Entry", "Limits", "Sweep", "records_of"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A plan of ours that is to be measured.

    Attributes
    ----------
    candidate
        What runs.
    plan
        Its schedule in one line.
    predicted_ms
        By the simulator, if it was asked.
    """

    candidate: Candidate
    plan: str
    predicted_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long a workload may take, and how wrong a result may be.

    Attributes
    ----------
    seconds
        For one workload. What is not ready by half of it is left out, and named.
    error
        Times the error of one device.
    """

    seconds: float = 120.0
    error: float = 2.0


class _Floor(Protocol):
    """How the floor is made ready, and what one device computes."""

    def prepare(self, problem: Any, on: Processes) -> Prepared: ...

    def one_device(
        self, problem: Any, floor: Prepared, on: Processes
    ) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Any]]]: ...


class Sweep:
    """Measures one workload after the other.

    Parameters
    ----------
    on
        The processes.
    settings, limits
        How long, how often and how exactly.
    progress
        Is told what happens now.
    floor
        How the floor is made; the module `floor` when not given.
    trace
        Is given the workload, the fastest plan's name and its work, and the floor's.
    """

    def __init__(
        self,
        on: Processes,
        settings: Settings,
        limits: Limits,
        progress: Callable[[str], None] | None = None,
        floor: _Floor = floors,
        trace: Callable[[str, str, Work], None] | None = None,
    ) -> None:
        self.on, self.settings, self.limits = on, settings, limits
        self._progress = progress or (lambda text: say(on, text))
        self._floors, self._trace = floor, trace

    def run(
        self,
        workload: str,
        problem: Any,
        entries: Sequence[Entry],
        peers: Sequence[Candidate],
        common: Mapping[str, Any],
    ) -> list[Record]:
        """Measure a workload.

        Parameters
        ----------
        workload
            Its name.
        problem
            Its data.
        entries
            Our plans.
        peers
            Of others.
        common
            Fields of every record: ranks, device, versions.

        Returns
        -------
        list of Record
            One for each plan, also for those that failed.

        Raises
        ------
        BenchError
            When the floor itself fails: there is nothing to compare with.
        """
        begin = self.on.seconds()
        own = {entry.candidate.name: entry for entry in entries}
        candidates = [entry.candidate for entry in entries] + list(peers)
        twice = [name for name, many in Counter(c.name for c in candidates).items() if many > 1]
        if twice:
            raise BenchError(f"{workload} has two candidates '{twice[0]}'")
        floor, allowed = self._floor(workload, problem)
        standing = Standing(self.on, floor, self.settings.slow)
        reasons: dict[str, str] = {}

        def leave_out(name: str, reason: str) -> None:
            reasons[name] = reason
            self._progress(f"{workload}: {name} left out: {reason}")

        try:
            for candidate in candidates:
                spent = self.on.seconds() - begin
                if spent > self.limits.seconds / 2:
                    reasons[candidate.name] = (
                        "not tried: half of the workload's "
                        f"{self.limits.seconds:.0f} s were over"
                    )
                    continue
                for name, reason in standing.make_room():
                    leave_out(name, reason)
                self._progress(f"{workload}: {candidate.name}, after {spent:.0f} s")
                refused = self._stand(standing, candidate, problem, allowed)
                if refused is not None:
                    leave_out(candidate.name, refused)
            left = self.limits.seconds - (self.on.seconds() - begin)
            settings = replace(
                self.settings, budget_s=max(1.0, min(self.settings.budget_s, left))
            )
            errors = {name: each.error for name, each in standing.ready.items()}
            graphs = {name: each.graph for name, each in standing.ready.items()}
            timing = compare(self.on, standing.works, settings, standing.tried)
            self._show(workload, standing.works, timing, own)
        finally:
            standing.close()
        for name in errors:
            if name not in timing.samples:
                reasons[name] = (
                    "no time was left for its turns, ask for a longer --time-limit: "
                    + standing.beside_the_floor(name)
                )
        return records_of(
            workload=workload,
            own=own,
            peers=[peer.name for peer in peers],
            timing=timing,
            errors=errors,
            graphs=graphs,
            reasons=reasons,
            allowed=allowed,
            common=common,
        )

    def _show(
        self,
        workload: str,
        works: Mapping[str, Work],
        timing: Timing,
        own: Mapping[str, Entry],
    ) -> None:
        """Let the floor and the fastest plan be traced."""
        if self._trace is None:
            return
        plans = [name for name in own if name in timing.samples]
        fastest = sorted(plans, key=lambda name: median(timing.samples[name]))[:1]
        for name in ("floor", *fastest):
            self._trace(workload, name, works[name])

    def _floor(self, workload: str, problem: Any) -> tuple[Ready, float]:
        """Make the floor ready, and say what error is allowed beside it."""
        allowed = 0.0

        def prepare() -> Ready:
            nonlocal allowed
            prepared = self._floors.prepare(problem, self.on)
            results, held = self._floors.one_device(problem, prepared, self.on)
            allowed = self.limits.error * problem.error(results, held)
            prepared.run()
            work, _ = self.on.capture(prepared.run)
            return Ready(work=work, error=allowed, graph=True, made=prepared)

        made = self._guarded(prepare)
        if isinstance(made, str):
            raise BenchError(f"the floor of {workload} cannot be measured: {made}")
        allowed = self.on.maximum(allowed)
        if not allowed < 0.1:
            raise BenchError(f"the floor of {workload} is wrong: its error is {allowed:.1e}")
        return made, allowed

    def _stand(
        self, standing: Standing, candidate: Candidate, problem: Any, allowed: float
    ) -> str | None:
        """Let a candidate stand, or say why not."""
        made = self._ready(candidate, problem, allowed)
        return made if isinstance(made, str) else standing.admit(candidate.name, made)

    def _ready(self, candidate: Candidate, problem: Any, allowed: float) -> Ready | str:
        """Run a candidate, check it, and make a graph of it; or say why not."""
        prepared = self._guarded(
            lambda: candidate.prepare(problem, self.on), undo=lambda made: made.close()
        )
        if isinstance(prepared, str):
            return prepared
        made = self._checked(prepared, problem, allowed)
        if isinstance(made, str):
            self._guarded(prepared.close)
        return made

    def _checked(self, prepared: Prepared, problem: Any, allowed: float) -> Ready | str:
        results = self._guarded(prepared.run)
        if isinstance(results, str):
            return results
        error = self._error(problem, prepared, results)
        if isinstance(error, str):
            return error
        if not error <= allowed:
            return f"wrong: its error is {error:.1e}, at most {allowed:.1e} is allowed"
        eager = Ready(work=prepared.run, error=error, graph=False, made=prepared)
        if prepared.graph is None and not prepared.capturable:
            return eager
        captured = (
            (prepared.graph, results)
            if prepared.graph is not None
            else self._guarded(lambda: self.on.capture(prepared.run))
        )
        if isinstance(captured, str):
            self._progress(f"runs without a graph: {captured}")
            return eager
        replay, outputs = captured
        again = self._replayed(problem, prepared, replay, outputs)
        if isinstance(again, str):
            return again
        if not again <= allowed:
            return (
                f"wrong as a graph: its error is {again:.1e}, at most {allowed:.1e} is allowed"
            )
        return Ready(work=replay, error=max(error, again), graph=True, made=prepared)

    def _replayed(
        self, problem: Any, prepared: Prepared, replay: Work, outputs: Mapping[str, Any]
    ) -> float | str:
        """Replay a graph over outputs that hold no number, and check it."""

        def work() -> bool:
            for output in outputs.values():
                output.fill_(float("nan"))
            replay()
            return True

        done = self._guarded(work)
        return done if isinstance(done, str) else self._error(problem, prepared, outputs)

    def _error(
        self, problem: Any, prepared: Prepared, results: Mapping[str, Any]
    ) -> float | str:
        error = self._guarded(lambda: problem.error(results, prepared.held))
        return error if isinstance(error, str) else self.on.maximum(error)

    def _guarded(
        self, work: Callable[[], Any], undo: Callable[[Any], None] = lambda _: None
    ) -> Any:
        """Do what may fail on any rank; give its result, or why it failed on some rank.

        What was made on this rank and failed on another is undone.
        """
        message, made = None, None
        try:
            made = work()
            self.on.synchronize()
        except AbsentError as error:
            message = error.message
        except MercuryError as error:
            message = f"{type(error).__name__}: {error.message}"
        except Exception as error:  # whatever a candidate does must not end the sweep
            first = next(iter(str(error).splitlines()), "")
            message = f"{type(error).__name__}: {first}"
        agreed = self.on.agree(message)
        if agreed is not None and made is not None:
            with contextlib.suppress(Exception):  # the failure that is told came first
                undo(made)
        return made if agreed is None else agreed


def records_of(
    *,
    workload: str,
    own: Mapping[str, Entry],
    peers: Iterable[str],
    timing: Timing,
    errors: Mapping[str, float],
    graphs: Mapping[str, bool],
    reasons: Mapping[str, str],
    allowed: float,
    common: Mapping[str, Any],
) -> list[Record]:
    """Make the records of a workload from what was seen."""
    samples = timing.samples
    floor = samples["floor"]
    told: dict[str, Peer] = {}
    for name in peers:
        if name in samples:
            told[name] = Peer(
                ms=median(samples[name]),
                ratio_to_floor=ratios(samples[name], floor).median,
                error=errors[name],
                graph=graphs[name],
            )
        else:
            told[name] = Peer(absent=reasons.get(name, "not measured"))
    timed = [name for name in told if name in samples]
    best = min(timed, key=lambda name: median(samples[name])) if timed else None
    measured = [name for name in own if name in samples]
    chosen = min(measured, key=lambda name: median(samples[name])) if measured else None
    if chosen is None:
        chosen = min(own, key=lambda name: timing.tried.get(name, math.inf), default=None)
    records = []
    if not own:
        own = {"": Entry(candidate=Candidate(name="", prepare=_nothing), plan="")}
        chosen, reasons = "", {**reasons, "": "no plan was asked for"}
    for name, entry in own.items():
        made = Record(
            workload=workload,
            plan=entry.plan,
            name=name,
            chosen=name == chosen,
            floor_ms=median(floor),
            best_peer=best,
            best_peer_ms=median(samples[best]) if best else None,
            allowed_error=allowed,
            predicted_ms=entry.predicted_ms,
            peers=told,
            rounds=len(floor),
            failed=reasons.get(name, ""),
            error=errors.get(name),
            **common,
        )
        if name in samples:
            ratio = ratios(samples[name], floor)
            made = replace(
                made,
                ours_ms=median(samples[name]),
                ratio_to_floor=ratio.median,
                ratio_low=ratio.low,
                ratio_high=ratio.high,
                ratio_to_peer=ratios(samples[name], samples[best]).median if best else None,
                graph=graphs[name],
            )
        records.append(made)
    return records


def _nothing(*_: Any) -> Prepared:
    raise AbsentError("there is no plan")
