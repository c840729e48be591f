"""``mercury bench wall``: how long a context fits into so much memory."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import MercuryError
from .bench_files import machine_for, write_json
from .files import OutputFile

__all__ = ["wall"]


@click.command()
@click.argument("workload")
@click.option("--limit", default="40GiB", show_default=True, help="Memory of each rank.")
@click.option("--topology", required=True, help="A preset such as h200-8x1, or a file.toml.")
@click.option("--mesh", help="Levels, slowest first; all ranks of the topology if not given.")
@click.option("--run", is_flag=True, help="Run the methods and the peers, under torchrun.")
@click.option("--plans", help="Run only methods whose names contain one of these: ring,usp.")
@click.option(
    "--json",
    "file",
    type=OutputFile(),
    help="Write what was found to this file.",
)
def wall(
    workload: str,
    limit: str,
    topology: str,
    mesh: str | None,
    run: bool,
    plans: str | None,
    file: Path | None,
) -> None:
    """Find the longest context of each method within a limit of memory.

    WORKLOAD is an attention whose rows are the step of lengths, as in
    attention-1x128x32768-causal. By the peak memory that plans state, which takes no GPU; with
    --run each is run at that length, or at the longest below it that fits, and so are peers.
    """
    from ..bench import wall as walls  # noqa: PLC0415 (loads the compiler)
    from ..tuner.quantity import parse_bytes  # noqa: PLC0415

    try:
        ranks, machine = machine_for(topology, mesh)
        found = list(walls.predict_walls(workload, ranks, machine, parse_bytes(limit)))
        tells = True
        if run:
            from ..bench.cuda import Cuda  # noqa: PLC0415 (loads PyTorch)

            wanted = tuple(filter(None, (plans or "").split(",")))
            with Cuda() as on:
                found = list(walls.measure_walls(on, found, ranks, plans=wanted))
                tells = on.rank == 0
    except MercuryError as error:
        raise click.ClickException(error.message) from None
    if tells:
        click.echo(walls.wall_table(found))
        write_json(file, found)
