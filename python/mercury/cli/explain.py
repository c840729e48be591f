"""``mercury explain``: what each rank of a plan does, step by step."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import MercuryError, ProgramError
from .files import OutputFile, write_text
from .loading import make_schedule, schedule_options, text_of

if TYPE_CHECKING:
    from ..runtime import Plan
    from ..runtime.events import Event
    from ..schedule import Schedule
    from ..tuner.placed import Cut, Placed

__all__ = ["explain"]

_SHOWN_RANKS = 4
_WIDTH = 160  # where the output is no terminal

_HELP = """Say what each rank computes, sends, receives and waits for; nothing is run.

PROGRAM and its schedule are given as in mercury run. The table has a row for each step and a
column for each rank; "send K -> 1" is to rank 1, "receive K <- 2" from rank 2, "Q[sq 0:33]"
are the positions from 0 up to 33. Bytes and messages are those of all ranks, as a run reports
them.

\b
    mercury explain attention --strategy ring --mesh gpu=3 --set sq=99,sk=99
    mercury explain matmul --strategy async-tp --trace out.json

--trace writes a file for ui.perfetto.dev: a process for each rank, a track for what it computes
and for each level, an arrow for each message. Its times are nominal, a unit for each
multiply-accumulate and for each byte: a schedule of events, not a measurement.
"""


@click.command(help=_HELP)
@click.argument("program")
@schedule_options
@click.option("--ranks", help="Those to show, as 0,3; the first few when not given.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
@click.option(
    "--trace",
    type=OutputFile(),
    help="Write a trace with nominal times to this file.",
)
def explain(
    program: str, ranks: str | None, as_json: bool, trace: Path | None, **options: Any
) -> None:
    """Print the plan as a table."""
    from ..runtime.timeline import to_chrome  # noqa: PLC0415 (loads NumPy)

    try:
        schedule = make_schedule(program, **options)
        plan = schedule.compile()
        shown = _ranks(ranks, plan.mesh.size, as_json)
        events = plan.events()
        if trace is not None:
            write_text(trace, json.dumps(to_chrome(plan.mesh, events)) + "\n")
        if as_json:
            click.echo(json.dumps(_to_json(schedule, plan, events, shown), indent=1))
        else:
            _print(schedule, plan, events, shown)
    except MercuryError as error:
        raise click.ClickException(text_of(error)) from None


def _ranks(text: str | None, size: int, everything: bool) -> list[int]:
    if text is None:
        return list(range(size if everything else min(size, _SHOWN_RANKS)))
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(re.fullmatch(r"[0-9]+", piece) for piece in pieces):
        raise click.UsageError(f"expected --ranks such as 0,3, got '{text}'")
    shown = list(dict.fromkeys(map(int, pieces)))
    wrong = [rank for rank in shown if rank >= size]
    if wrong:
        raise ProgramError(f"the mesh has ranks 0 to {size - 1}, --ranks names {wrong[0]}")
    return shown


def _cuts(cuts: Sequence[Cut]) -> str:
    """Say how a buffer is cut, as ``sq -> node, gpu``."""
    said = []
    for cut in cuts:
        over = ", ".join(map(str, cut.factors))
        kind = "" if cut.layout in {"", "block"} else f" {cut.layout}"
        said.append(f"{cut.axis} -> {over}{kind}")
    return "; ".join(said) or "whole"


def _shard_bytes(plan: Plan, rank: int) -> int:
    """Add up the bytes of a rank's shards."""
    from ..runtime.dtypes import storage  # noqa: PLC0415 (loads NumPy)

    return sum(
        prod(plan.layout(buffer.name).shape(rank)) * storage(buffer.dtype).itemsize
        for buffer in plan.program.buffers
    )


def _describe(schedule: Schedule) -> tuple[Placed, str]:
    from ..tuner.placed import read_placed  # noqa: PLC0415 (loads the compiler)
    from ..tuner.sentence import sentence  # noqa: PLC0415

    placed = read_placed(schedule)
    return placed, sentence(placed) or "every rank computes everything"


def _print(
    schedule: Schedule, plan: Plan, events: Sequence[Event], shown: Sequence[int]
) -> None:
    from ..runtime.events import traffic  # noqa: PLC0415 (loads NumPy)
    from .plan_table import rows  # noqa: PLC0415

    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH)
    placed, said = _describe(schedule)

    def line(name: str, text: str) -> None:
        console.print(f"{name:12}{escape(text)}", soft_wrap=True)

    line("schedule", schedule.recipe() or "none")
    line("", said)
    line("mesh", ", ".join(f"{level} = {size}" for level, size in plan.mesh.levels))
    buffers = Table("buffer", "elements", "outside", "inside")
    for buffer in plan.program.buffers:
        shape = "x".join(map(str, buffer.shape))
        places = (_cuts(side[buffer.name]) for side in (placed.boundary, placed.inside))
        buffers.add_row(escape(str(buffer)), f"{shape} {buffer.dtype}", *map(escape, places))
    console.print(buffers)
    arenas = f"{plan.arena_bytes:,} bytes a rank, {plan.symmetric_bytes:,} of them symmetric"
    line("memory", f"arenas {arenas}; shards of the buffers:")
    held = [f"{_shard_bytes(plan, rank):,} (rank {rank})" for rank in shown]
    line("", ", ".join(held) + " bytes")

    own = {rank: [event for event in events if event.rank == rank] for rank in shown}
    table = Table("step", show_lines=True)
    for rank in shown:
        at = plan.mesh.coordinates(rank)
        place = ", ".join(f"{level} {number}" for level, number in at.items())
        table.add_column(f"rank {rank}" + (f" ({place})" if len(at) > 1 else ""))
    for row in rows(plan, own):
        table.add_row(row.step, *(escape("\n".join(cell)) for cell in row.cells))
    console.print(table)
    if len(shown) < plan.mesh.size:
        line("", f"{plan.mesh.size} ranks in all; --ranks names those to show")
    for level, moved in traffic(plan.mesh, events).items():
        line(level, f"{moved.bytes:,} bytes in {moved.messages:,} messages")


def _to_json(
    schedule: Schedule, plan: Plan, events: Sequence[Event], shown: Sequence[int]
) -> dict[str, Any]:
    from ..runtime.events import traffic  # noqa: PLC0415 (loads NumPy)

    placed, said = _describe(schedule)

    def place(cuts: Sequence[Cut]) -> list[dict[str, Any]]:
        return [
            {"axis": cut.axis, "factors": list(cut.factors), "layout": cut.layout}
            for cut in cuts
        ]

    return {
        "program": plan.program.name,
        "mesh": dict(plan.mesh.levels),
        "schedule": schedule.recipe(),
        "sentence": said,
        "buffers": [
            {
                "name": buffer.name,
                "shape": list(buffer.shape),
                "dtype": buffer.dtype,
                "outside": place(placed.boundary[buffer.name]),
                "inside": place(placed.inside[buffer.name]),
            }
            for buffer in plan.program.buffers
        ],
        "arena_bytes": plan.arena_bytes,
        "symmetric_bytes": plan.symmetric_bytes,
        "shard_bytes": {rank: _shard_bytes(plan, rank) for rank in shown},
        "traffic": {
            level: {"bytes": moved.bytes, "messages": moved.messages}
            for level, moved in traffic(plan.mesh, events).items()
        },
        "events": [event.to_json(plan.mesh) for event in events if event.rank in shown],
    }
