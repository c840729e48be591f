"""The commands of ``mercury``."""

from __future__ import annotations

import sys
from typing import Any

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
from .loading import make_schedule, schedule_options, text_of
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
cli.add_command(simulate)
cli.add_command(topology)
cli.add_command(tune)


@cli.command()
def doctor() -> None:
    """Say what this machine can do, and what is missing."""
    from .doctor import print_findings, run  # noqa: PLC0415 (loads the runtime)

    findings = run()
    print_findings(findings)
    if any(finding.status == "missing" for finding in findings):
        sys.exit(1)


@cli.command()
@click.argument("program")
@schedule_options
@click.option(
    "--seed", default=0, type=click.IntRange(0), show_default=True, help="Of the random inputs."
)
@click.option(
    "--delays",
    default=0,
    type=click.IntRange(0, 2**63 - 1),
    help="Not 0: a seed for delayed, reordered messages.",
)
def run(program: str, seed: int, delays: int, **options: Any) -> None:
    """Run PROGRAM on embedded ranks and compare it with float64 on one device.

    PROGRAM is a shipped program (ag_gemm, attention, attention_backward,
    decode_attention, gemm_rs, matmul) or your own:
    my_file.py:my_program.
    """
    from ..runtime.sim import SimOptions  # noqa: PLC0415 (loads the compiler)
    from ..runtime.trial import trial  # noqa: PLC0415

    try:
        scheduled = make_schedule(program, **options)
        plan = scheduled.compile()
        result = trial(plan, seed, SimOptions(seed=delays))
    except MercuryError as error:
        raise click.ClickException(text_of(error)) from None

    click.echo(f"schedule    {scheduled.recipe()}")
    for name, distance in result.errors.items():
        verdict = "right" if distance <= result.limits[name] else "WRONG"
        limit = result.limits[name]
        click.echo(
            f"{name:11} error {distance:.1e} against float64 (limit {limit:.0e}): {verdict}"
        )
    for level, sent in result.report.bytes_sent.items():
        messages = result.report.messages[level]
        click.echo(f"{level:11} {sent:,} bytes in {messages:,} messages")
    click.echo(f"arena       {plan.arena_bytes:,} bytes a rank")
    if not result.right:
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
        table = Table("name", "program", "what it does", "schedule", title=f"mesh {mesh}")
        for each in known.names():
            strategy = known.get(each)
            steps = "; ".join(strategy.steps(Mesh.parse(mesh)))
            table.add_row(each, strategy.program.name, strategy.summary, escape(steps))
        Console().print(table)
    except MercuryError as error:
        raise click.ClickException(text_of(error)) from None
