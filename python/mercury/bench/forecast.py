"""What the simulator says of workloads before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import MercuryError
from .errors import BenchError
from .ours import plans_of
from .table import markdown, milliseconds
from .workload import Attention, Workload, parse_workload

if TYPE_CHECKING:
    from ..dsl import Mesh, Program
    from ..topology import Topology

__all__ = ["Forecast", "forecast", "forecast_table", "share_of"]


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """One plan of one workload, on a machine that need not be there.

    Attributes
    ----------
    workload
        As `parse_workload` reads it.
    topology, ranks
        The machine.
    name, plan
        How the plan is called, and its schedule in one line.
    floor_ms, predicted_ms
        Of a rank's share of the work with all data there already, and of the plan.
    tflops
        Of each rank, by the plan.
    peak_bytes
        Of the fullest rank: its shards and what the plan works in.
    """

    workload: str
    topology: str
    ranks: int
    name: str
    plan: str
    floor_ms: float
    predicted_ms: float
    tflops: float
    peak_bytes: int


def forecast(
    workloads: Sequence[str],
    mesh: Mesh,
    topology: Topology,
    *,
    wide: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Forecast]:
    """Predict the floor and every plan of ours; no GPU is needed.

    Parameters
    ----------
    workloads
        By name.
    mesh, topology
        The ranks, and their machine.
    wide
        More variants, as `plans_of` has them.
    tell
        Is told which plan has no prediction, and why.
    """
    from .. import Mesh, Schedule, simulate  # noqa: PLC0415 (loads the compiler)

    for text in workloads:
        workload = parse_workload(text)
        alone = Schedule(share_of(workload, mesh.size), Mesh(gpu=1))
        floor = simulate(alone, topology).time_s

        def skipped(name: str, why: str, workload: Workload = workload) -> None:
            tell(f"{workload}: {name} is left out: {why}")

        for own in plans_of(workload, mesh, skipped, wide=wide):
            try:
                found = simulate(own.schedule, topology)
            except MercuryError as error:
                skipped(own.name, error.message)
                continue
            yield Forecast(
                workload=text,
                topology=topology.name,
                ranks=mesh.size,
                name=own.name,
                plan=own.recipe,
                floor_ms=round(1e3 * floor, 5),
                predicted_ms=round(1e3 * found.time_s, 5),
                tflops=round(workload.flops / mesh.size / found.time_s / 1e12, 1),
                peak_bytes=max(found.peak_bytes),
            )


def share_of(workload: Workload, ranks: int) -> Program:
    """Give what one rank computes, as the measured floor has it.

    The rows of attention; of causal attention and of gradients whole heads, which is the same
    work on every rank; the columns of AG-GEMM and the depth of GEMM-RS.

    Raises
    ------
    BenchError
        When the ranks cannot have equal shares.
    """
    from .. import programs  # noqa: PLC0415 (loads the compiler)

    def part(what: str, size: int) -> int:
        if size % ranks:
            raise BenchError(
                f"the floor of {workload} gives each rank as much, and {ranks} ranks do not "
                f"divide {size} {what}; take a number of ranks that does"
            )
        return size // ranks

    if not isinstance(workload, Attention):
        if workload.operator == "ag-gemm":
            return programs.matmul(
                m=workload.m, n=part("columns", workload.n), depth=workload.k
            )
        return programs.matmul(m=workload.m, n=workload.n, depth=part("of depth", workload.k))
    by_heads = workload.causal or workload.backward
    function = programs.attention_backward if workload.backward else programs.attention
    if by_heads:
        part("key heads", workload.key_heads)
    return function(
        b=workload.batch,
        h=part("heads", workload.heads) if by_heads else workload.heads,
        sq=workload.rows if by_heads else part("rows", workload.rows),
        sk=workload.rows,
        d=workload.depth,
        group=workload.group,
        mask="causal" if workload.causal else "full",
    )


def forecast_table(found: Sequence[Forecast], *, every: bool = False) -> str:
    """Give a Markdown table: the fastest plan of each workload and number of ranks, or all."""
    rows = []
    for case in dict.fromkeys((each.ranks, each.workload) for each in found):
        plans = sorted(
            (each for each in found if (each.ranks, each.workload) == case),
            key=lambda each: each.predicted_ms,
        )
        rows += [
            [
                each.workload,
                str(each.ranks),
                milliseconds(each.floor_ms),
                each.name,
                milliseconds(each.predicted_ms),
                f"{each.predicted_ms / each.floor_ms:.3f}",
                f"{each.tflops:.0f}",
                f"{each.peak_bytes / (1 << 30):.1f}",
            ]
            for each in (plans if every else plans[:1])
        ]
    head = ["workload", "ranks", "floor, ms", "plan", "plan, ms", "ratio to floor"]
    return markdown([*head, "TFLOP/s a GPU", "peak, GiB"], rows)
