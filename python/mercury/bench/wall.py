"""The memory wall: the longest attention that each method fits in so much memory of a GPU."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .candidate import Candidate
from .cuda import Cuda
from .errors import AbsentError, BenchError
from .ours import OwnPlan, candidate, plans_of
from .peers import peers_of
from .problems import AttentionProblem
from .processes import Processes, say
from .table import markdown
from .workload import Attention, parse_workload

if TYPE_CHECKING:
    from ..dsl import Mesh
    from ..simulator import Simulation
    from ..topology import Topology

__all__ = ["Wall", "longest_that_runs", "measure_walls", "predict_walls", "wall_table"]

_BEYOND = 2
"""How many steps over our longest the search for a peer's begins: it states no peak."""


@dataclass(frozen=True, kw_only=True)
class Wall:
    """The longest context of one method.

    Attributes
    ----------
    workload
        Of one step: lengths are multiples of its rows.
    topology, ranks, limit_bytes
        The machine, and the memory of each rank.
    name, plan
        The method, and its schedule in one line; peers have none.
    stated_rows, stated_bytes, predicted_ms
        The longest whose plan states a peak within the limit, that peak, and its time by the
        simulator; None for peers.
    measured_rows
        The longest that ran; None when none did, or nothing was run.
    reason
        Why the next longer one did not run.
    """

    workload: str
    topology: str
    ranks: int
    limit_bytes: int
    name: str
    plan: str = ""
    stated_rows: int | None = None
    stated_bytes: int | None = None
    predicted_ms: float | None = None
    measured_rows: int | None = None
    reason: str | None = None


def predict_walls(text: str, mesh: Mesh, topology: Topology, limit: int) -> Iterator[Wall]:
    """Give the longest attention that each plan of ours states to fit; no GPU is needed.

    Parameters
    ----------
    text
        An attention by name, whose rows are the step that lengths are counted in.
    mesh, topology
        The ranks, and their machine.
    limit
        Bytes of each rank, for its shards and what the plan works in.

    Raises
    ------
    BenchError
        When it is no attention, or one step of it does not fit.
    """
    from .. import simulate  # noqa: PLC0415 (loads the compiler)

    step = _step(text)

    @functools.cache
    def plans(steps: int) -> dict[str, OwnPlan]:
        return {own.name: own for own in plans_of(_of(step, steps), mesh)}

    @functools.cache
    def found(name: str, steps: int) -> Simulation:
        return simulate(plans(steps)[name].schedule, topology)

    def peak(name: str, steps: int) -> int:
        return max(found(name, steps).peak_bytes)

    for name in plans(1):
        if peak(name, 1) > limit:
            raise BenchError(
                f"{step} takes {peak(name, 1)} bytes of a rank by '{name}', more than the "
                f"limit of {limit}; give fewer rows, or a larger limit"
            )
        steps = limit // peak(name, 1)
        while peak(name, steps) > limit:
            steps -= 1
        while peak(name, steps + 1) <= limit:
            steps += 1
        yield Wall(
            workload=text,
            topology=topology.name,
            ranks=mesh.size,
            limit_bytes=limit,
            name=name,
            plan=plans(steps)[name].recipe,
            stated_rows=steps * step.rows,
            stated_bytes=peak(name, steps),
            predicted_ms=round(1e3 * found(name, steps).time_s, 2),
        )


def measure_walls(
    on: Cuda, walls: Sequence[Wall], mesh: Mesh, *, plans: Sequence[str] = ()
) -> Iterator[Wall]:
    """Run each plan at the length that it states, and shorter ones until one fits; then peers.

    All memory of a GPU but the limit is taken before, beside what its context takes. A length
    fits when one run of it ends on every rank.

    Parameters
    ----------
    on
        The ranks.
    walls
        What `predict_walls` gave for this mesh.
    mesh
        The ranks, by level.
    plans
        Only plans and peers whose name contains one of these; all when empty.
    """
    first = walls[0]
    step = _step(first.workload)
    if on.size != mesh.size:
        raise BenchError(
            f"{mesh} has {mesh.size} ranks and {on.size} were started; start as many with "
            f"torchrun --nproc-per-node {mesh.size}, or give mesh"
        )
    free, _ = on.torch.cuda.mem_get_info()
    if free < first.limit_bytes:
        raise BenchError(
            f"a GPU has {free} bytes free, less than the limit of {first.limit_bytes}; give "
            "a lower limit"
        )
    taken = on.torch.empty(free - first.limit_bytes, dtype=on.torch.uint8, device=on.device)

    def wanted(name: str) -> bool:
        return not plans or any(part in name for part in plans)

    def tried(wall: Wall, make: Callable[[Attention], Candidate], start: int) -> Wall:
        rows, reason = longest_that_runs(on, make, step, start)
        told = f"{rows} rows" if rows else "nothing"
        say(
            on,
            f"{wall.name}: {told} of {first.limit_bytes / (1 << 30):.3g} GiB; {reason or ''}",
        )
        return replace(wall, measured_rows=rows, reason=reason)

    for wall in walls:
        if wanted(wall.name) and wall.stated_rows is not None:

            def own(at: Attention, name: str = wall.name) -> Candidate:
                made = next(each for each in plans_of(at, mesh) if each.name == name)
                return candidate(made, deadline_ms=120_000)

            yield tried(wall, own, wall.stated_rows // step.rows)
    longest = max(wall.stated_rows or 0 for wall in walls) // step.rows
    for number, peer in enumerate(peers_of(step, mesh.size)):
        if wanted(peer.name):

            def other(at: Attention, number: int = number) -> Candidate:
                return peers_of(at, mesh.size)[number]

            named = Wall(
                workload=first.workload,
                topology=first.topology,
                ranks=first.ranks,
                limit_bytes=first.limit_bytes,
                name=peer.name,
            )
            yield tried(named, other, longest + _BEYOND)
    del taken


def longest_that_runs(
    on: Cuda, make: Callable[[Attention], Candidate], step: Attention, start: int
) -> tuple[int | None, str | None]:
    """Try `start` steps, then one fewer each time; give the rows that ran, and the last reason.

    Parameters
    ----------
    on
        The ranks.
    make
        Makes the candidate of a length.
    step
        The attention of one step.
    start
        Steps of the longest that is tried.
    """
    reason: str | None = None
    for steps in range(start, 0, -1):
        at = _of(step, steps)
        try:
            agreed = on.agree(_failure(on, make, at))
        except AbsentError as error:
            return None, error.message
        on.forget()
        if agreed is None:
            return at.rows, reason
        reason = f"{at.rows} rows: {agreed}"
    return None, reason


def _failure(on: Cuda, make: Callable[[Attention], Candidate], at: Attention) -> str | None:
    """Run a candidate once; give why it does not run, or None."""
    try:
        prepared = make(at).prepare(_Shards(at, on), on)
        with contextlib.closing(prepared):
            prepared.run()
            on.synchronize()
    except AbsentError:
        raise  # on every rank, and at every length
    except Exception as error:  # what does not fit says so in the words of its library
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


class _Shards(AttentionProblem):
    """An attention of which a rank has its own parts alone: nobody holds the whole."""

    def __init__(self, workload: Attention, on: Processes) -> None:
        self.workload, self.on = workload, on
        self.whole = dict.fromkeys("QKV")
        self.outputs = ("O", "LSE")

    def part(self, name: str, indices: Sequence[Any]) -> Any:
        torch = self.on.torch
        shape = [len(index) for index in indices]
        return torch.empty(shape, dtype=torch.bfloat16, device=self.on.device).normal_()


def _step(text: str) -> Attention:
    step = parse_workload(text)
    if not isinstance(step, Attention) or step.backward:
        raise BenchError(
            f"the longest context is that of an attention forward, got '{text}'; give one "
            "whose rows are the step of lengths, as attention-1x64x65536-causal"
        )
    return step


def _of(step: Attention, steps: int) -> Attention:
    return replace(step, rows=steps * step.rows)


def wall_table(walls: Sequence[Wall]) -> str:
    """Give a Markdown table, the method that goes furthest first."""
    ran = any(wall.measured_rows is not None for wall in walls)
    rows = [
        [
            str(wall.ranks),
            wall.name,
            str(wall.stated_rows or "-"),
            "-" if wall.stated_bytes is None else f"{wall.stated_bytes / (1 << 30):.1f}",
            "-" if wall.predicted_ms is None else f"{wall.predicted_ms / 1e3:.1f}",
            *([str(wall.measured_rows or "-")] if ran else []),
        ]
        for wall in sorted(
            walls,
            key=lambda wall: (wall.ranks, -(wall.measured_rows or wall.stated_rows or 0)),
        )
    ]
    head = ["ranks", "method", "rows", "stated peak, GiB", "s"]
    return markdown([*head, *(["rows that ran"] if ran else [])], rows)
