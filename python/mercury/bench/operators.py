"""``mercury bench operators``: floors, our plans and peers on a list of workloads."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MercuryError
from ..topology import load
from .cuda import Cuda
from .measure import Settings
from .ours import candidate, plans_of
from .peers import peers_of
from .predict import agreement, repeated_correlation
from .problems import make_problem
from .processes import Work, say
from .record import Record, read_records, write_records
from .sweep import Entry, Limits, Sweep
from .trace import trace
from .watchdog import Watchdog
from .workload import Workload, parse_workload

if TYPE_CHECKING:
    from ..dsl import Mesh

__all__ = ["Request", "agreement_lines", "measure_operators", "predict_records"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be measured.

    Attributes
    ----------
    workloads
        By name.
    mesh
        The ranks of our plans; one level of all when not given.
    plans, rivals
        Only plans, and peers, whose name contains one of these; all when empty.
    wide
        More variants of ours, to compare predictions with.
    ours, peers
        Whether they take part.
    topology
        Of the simulator, whose predictions stand beside the measurements.
    file
        Where records are written, after each workload.
    resume
        Keep what is in the file and leave its workloads out.
    trace
        Where timelines are written: of the floor and of the fastest plan of each workload.
    """

    workloads: Sequence[str]
    mesh: Mesh | None = None
    plans: Sequence[str] = ()
    rivals: Sequence[str] = ()
    wide: bool = False
    ours: bool = True
    peers: bool = True
    topology: str | None = None
    file: Path | None = None
    resume: bool = False
    trace: Path | None = None


def measure_operators(
    on: Cuda, request: Request, settings: Settings, limits: Limits
) -> list[Record]:
    """Measure workloads one after the other; one that fails is told and left out."""
    records: list[Record] = []
    if request.resume and request.file is not None and request.file.exists():
        records = read_records(request.file)
    done = {record.workload for record in records}
    watchdog = Watchdog()
    sweep = Sweep(on, settings, limits, trace=_tracer(on, request.trace))
    from .. import __version__  # noqa: PLC0415 (the package above)

    common = {
        "ranks": on.size,
        "device": on.name,
        "versions": {
            "mercury": __version__,
            **on.versions(),
            "date": datetime.date.today().isoformat(),
        },
    }
    for name in request.workloads:
        if name in done:
            say(on, f"{name}: measured already")
            continue
        watchdog.expect(name, 2 * limits.seconds + 60)
        try:
            records += _one(on, name, request, sweep, common)
        except MercuryError as error:
            say(on, f"{name}: left out: {error.message}")
        on.forget()
        if request.file is not None and on.rank == 0:
            write_records(request.file, records)
    watchdog.stop()
    return records


def _tracer(on: Cuda, file: Path | None) -> Callable[[str, str, Work], None] | None:
    if file is None:
        return None

    def show(workload: str, name: str, work: Work) -> None:
        words = re.sub(r"[^a-z0-9]+", "-", f"{workload} {name}".lower())
        place = file.with_name(f"{file.stem}-{words}.json")
        say(on, f"{workload}: {name}, on one GPU\n{trace(on, work, place)}")

    return show


def _one(
    on: Cuda,
    name: str,
    request: Request,
    sweep: Sweep,
    common: Mapping[str, Any],
) -> list[Record]:
    workload = parse_workload(name)
    entries = _entries(on, workload, request) if request.ours else []
    peers = [
        peer
        for peer in (peers_of(workload, on.size) if request.peers else ())
        if _among(peer.name, request.rivals)
    ]
    problem = make_problem(workload, on)
    return sweep.run(name, problem, entries, peers, common)


def _among(name: str, parts: Sequence[str]) -> bool:
    return not parts or any(part in name for part in parts)


def _entries(on: Cuda, workload: Workload, request: Request) -> list[Entry]:
    from .. import Mesh, simulate  # noqa: PLC0415 (loads the compiler)

    mesh = request.mesh or Mesh(gpu=on.size)

    def skipped(name: str, why: str) -> None:
        say(on, f"{workload}: {name} does not fit {mesh}: {why}")

    entries = []
    for own in plans_of(workload, mesh, skipped, wide=request.wide):
        if not _among(own.name, request.plans):
            continue
        predicted = None
        if request.topology is not None:
            try:
                predicted = 1000 * simulate(own.schedule, request.topology).time_s
            except MercuryError as error:
                say(on, f"{workload}: {own.name} is not predicted: {error.message}")
        entries.append(Entry(candidate=candidate(own), plan=own.recipe, predicted_ms=predicted))
    return entries


def predict_records(
    records: Sequence[Record], topology: str | Path, skipped: Callable[[str], None]
) -> list[Record]:
    """Predict the plans of records again, by a topology; no GPU is needed.

    Parameters
    ----------
    records
        Of one level of ranks.
    topology
        A preset or a file.
    skipped
        Is told which plan is not predicted, and why.
    """
    from .. import Mesh, simulate  # noqa: PLC0415 (loads the compiler)

    machine = load(topology)
    made: list[Record] = []
    for workload in dict.fromkeys(record.workload for record in records):
        own = [record for record in records if record.workload == workload]
        mesh = Mesh(gpu=own[0].ranks)
        plans = {p.name: p for p in plans_of(parse_workload(workload), mesh, wide=True)}
        for record in own:
            plan, predicted = plans.get(record.name), None
            if plan is None or plan.recipe != record.plan:
                skipped(f"{workload}: this version has no plan '{record.name}' like it")
            else:
                try:
                    predicted = 1000 * simulate(plan.schedule, machine).time_s
                except MercuryError as error:
                    skipped(f"{workload}: {record.name} is not predicted: {error.message}")
            made.append(replace(record, predicted_ms=predicted))
    return made


def agreement_lines(
    records: Sequence[Record], tell: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Say for each workload how the simulator's predictions compare with measurements."""
    lines = []
    for workload in dict.fromkeys(record.workload for record in records):
        plans = [record for record in records if record.workload == workload]
        predicted = {r.name: r.predicted_ms for r in plans if r.predicted_ms is not None}
        measured = {r.name: r.ours_ms for r in plans if r.ours_ms is not None}
        if len(set(predicted) & set(measured)) < 2:
            tell(f"{workload}: too few plans have both a prediction and a measurement")
            continue
        found = agreement(predicted, measured)
        lines.append(
            f"{workload}: {found.plans} plans, {found.order}{_repeated(plans)}, "
            f"first choice '{found.first}' {found.regret:+.1%} from the best, "
            f"predictions off by {found.off_by:.0%}"
        )
    return lines


def _repeated(plans: Sequence[Record]) -> str:
    """Say what no prediction of these plans can be above, where their intervals are known."""
    measured = [
        (plan.ratio_to_floor, plan.ratio_low, plan.ratio_high)
        for plan in plans
        if plan.predicted_ms is not None
        and plan.ratio_to_floor is not None
        and plan.ratio_low is not None
        and plan.ratio_high is not None
    ]
    if len(measured) < 2:
        return ""
    again = repeated_correlation(measured)
    return "" if again is None else f" (of measuring again {again:.2f})"
