"""``mercury simulate``: how long a plan takes on a described machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import MercuryError
from .files import OutputFile, write_text
from .loading import make_schedule, schedule_options, text_of

if TYPE_CHECKING:
    from ..schedule import Schedule
    from ..simulator import Simulation

__all__ = ["simulate"]

_SHOWN_RANKS = 8

_HELP = """Predict how long a plan takes on a machine; nothing is run.

PROGRAM and its schedule are given as in mercury run, the machine as in mercury tune. Times are
*predicted* from the curves of the topology, not measured.

\b
    mercury simulate attention --strategy ring --mesh gpu=8 --dtype bf16 \\
        --set h=32,sq=65536,sk=65536 --topology h100-8x1 --trace out.json

--trace writes the timeline for ui.perfetto.dev: a process for each rank, a track for what it
computes and waits for, and one for each lane of transfers.
"""


@click.command(help=_HELP)
@click.argument("program")
@schedule_options
@click.option("--topology", required=True, help="A preset such as h100-8x2, or a file.toml.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@click.option(
    "--trace",
    type=OutputFile(),
    help="Write the timeline to this file.",
)
def simulate(
    program: str, topology: str, as_json: bool, trace: Path | None, **options: Any
) -> None:
    """Print the prediction."""
    from ..simulator import simulate as run  # noqa: PLC0415 (loads the compiler)
    from ..simulator import to_chrome  # noqa: PLC0415

    try:
        schedule = make_schedule(program, **options)
        found = run(schedule, topology)
        if trace is not None:
            write_text(trace, json.dumps(to_chrome(found)) + "\n")
    except MercuryError as error:
        raise click.ClickException(text_of(error)) from None
    if as_json:
        click.echo(json.dumps({"schedule": schedule.recipe(), **found.to_json()}, indent=1))
    else:
        _print(schedule, found)


def _print(schedule: Schedule, found: Simulation) -> None:
    from ..tuner.quantity import format_bytes, format_seconds  # noqa: PLC0415

    console = Console(highlight=False, soft_wrap=True)

    def line(name: str, text: str) -> None:
        console.print(f"{name:12}{escape(text)}")

    line("schedule", schedule.recipe() or "none")
    line("predicted", f"{format_seconds(found.time_s)} on {found.topology}, not measured")
    line("compute", f"{format_seconds(found.compute_s)} of the busiest rank")
    line("exposed", f"{format_seconds(found.exposed_s)} that nothing hides")
    for level, sent in found.bytes_by_level.items():
        line(level, f"{sent:,} bytes in all")
    for link, seconds in found.link_seconds.items():
        line(f"link {link}", f"in use for {format_seconds(seconds)}")
    largest = max(found.peak_bytes)
    line("memory", f"{format_bytes(largest)} on rank {found.peak_bytes.index(largest)}")
    table = Table("rank", "kernels", "copies", "transfers", "waits")
    ranks = range(min(found.mesh.size, _SHOWN_RANKS))
    for rank in ranks:
        total = dict.fromkeys(("kernel", "copy", "transfer", "wait"), 0.0)
        for span in found.spans:
            if span.rank == rank:
                total[span.kind] += span.end_s - span.start_s
        table.add_row(str(rank), *map(format_seconds, total.values()))
    console.print(table)
    if len(ranks) < found.mesh.size:
        line("", f"{found.mesh.size} ranks in all")
