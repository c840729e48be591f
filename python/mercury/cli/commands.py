"""The commands of ``mercury``."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .. import __version__
from ..errors import MercuryError
from .bench import bench
from .cache import cache
from .check import check
from .explain import explain
from .loading import text_of
from .run import run
from .simulate import simulate
from .topology import topology
from .tune import tune

__all__ = ["cli"]


@click.group()
@click.version_option(__version__, prog_name="mercury")
def cli() -> None:
    """Compile tensor operators for many GPUs."""


cli.add_command(check)
cli.add_command(bench)
cli.add_command(cache)
cli.add_command(explain)
cli.add_command(run)
cli.add_command(simulate)
cli.add_command(topology)
cli.add_command(tune)


@cli.command()
def doctor() -> None:
    """Say what this machine can do, and what is missing."""
    from . import doctor as looks  # noqa: PLC0415 (loads the runtime)

    findings = looks.run()
    looks.print_findings(findings)
    if any(finding.status == "missing" for finding in findings):
        sys.exit(1)


@cli.command()
@click.argument("name", required=False)
@click.option("--mesh", default="gpu=4", show_default=True, help="Levels, slowest first.")
def strategies(name: str | None, mesh: str) -> None:
    """List the named methods, or show the schedule of one as a script."""
    from .. import Mesh  # noqa: PLC0415 (loads the compiler)
    from .. import strategies as known  # noqa: PLC0415

    try:
        if name is not None:
            schedule = known.get(name).schedule(Mesh.parse(mesh))
            click.echo(schedule.recipe())
            click.echo(str(schedule), nl=False)
            return
        table = Table(title=f"mesh {mesh}")
        table.add_column("name", no_wrap=True)
        for column in ("program", "what it does", "schedule"):
            table.add_column(column, overflow="fold")
        for each in known.names():
            strategy = known.get(each)
            steps = "; ".join(strategy.steps(Mesh.parse(mesh)))
            table.add_row(each, strategy.program.name, strategy.summary, escape(steps))
        Console().print(table)
    except MercuryError as error:
        raise click.ClickException(text_of(error)) from None
