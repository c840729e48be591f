"""The commands of ``mercury``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .. import __version__
from ..errors import MercuryError
from .check import check
from .cache import cache
from .topology import topology
from .tune import tune

__all__ = ["cli"]


@click.group()
@click.version_option(__version__, prog_name="mercury")
def cli() -> None:
    """Compile tensor operators for many GPUs."""


cli.add_command(check)
cli.add_command(cache)
cli.add_command(topology)
cli.add_command(tune)


def _text(error: MercuryError) -> str:
    """Give an error without a place that is this command's own."""
    inside = error.location.startswith(str(Path(__file__).parent))
    return error.message if inside else str(error)


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
@click.option("--strategy", help="A named method; see mercury strategies.")
@click.option(
    "--schedule",
    type=click.Path(exists=True, dir_okay=False),
    help="A file with a recipe or a transform script.",
)
@click.option("--recipe", help="The schedule in one line: 'parallelize(sq, gpu)'.")
@click.option("--mesh", default="gpu=4", show_default=True, help="Levels, slowest first.")
@click.option("--set", "settings", multiple=True, help="Parameters: sq=4097,sk=4097,h=4.")
@click.option("--mask", help="full, causal, causal(offset), window(left, right).")
@click.option(
    "--dtype",
    type=click.Choice(["bf16", "f16", "f32", "f64"]),
    help="Of the tensors; f32 when not given, where the program has a choice.",
)
@click.option(
    "--seed", default=0, type=click.IntRange(0), show_default=True, help="Of the random inputs."
)
@click.option(
    "--delays",
    default=0,
    type=click.IntRange(0, 2**63 - 1),
    help="Not 0: a seed for delayed, reordered messages.",
)
def run(
    program: str,
    strategy: str | None,
    schedule: str | None,
    recipe: str | None,
    mesh: str,
    settings: tuple[str, ...],
    mask: str | None,
    dtype: str | None,
    seed: int,
    delays: int,
) -> None:
    """Run PROGRAM on embedded ranks and compare it with float64 on one device.

    PROGRAM is a shipped program (ag_gemm, attention, attention_backward,
    decode_attention, gemm_rs, matmul) or your own:
    my_file.py:my_program.
    """
    from .. import Mesh, Schedule  # noqa: PLC0415 (loads the compiler)
    from .. import strategies as known  # noqa: PLC0415
    from ..runtime.sim import SimOptions  # noqa: PLC0415
    from ..runtime.trial import trial  # noqa: PLC0415
    from .loading import parse_mask, parse_settings, program_function  # noqa: PLC0415

    if sum(option is not None for option in (strategy, schedule, recipe)) != 1:
        raise click.UsageError("give one of --strategy, --schedule and --recipe")
    try:
        function = program_function(program)
        parameters: dict[str, object] = {**parse_settings(settings)}
        if dtype is not None or "dtype" in function.parameters:
            parameters["dtype"] = dtype or "f32"
        if mask is not None:
            parameters["mask"] = parse_mask(mask)
        built = function(**parameters)
        ranks = Mesh.parse(mesh)
        if strategy is not None:
            scheduled = known.get(strategy).schedule(ranks, built)
        else:
            text = recipe if schedule is None else Path(schedule).read_text()
            scheduled = Schedule(built, ranks).apply(text or "")
        plan = scheduled.compile()
        result = trial(plan, seed, SimOptions(seed=delays))
    except MercuryError as error:
        raise click.ClickException(_text(error)) from None

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
        raise click.ClickException(_text(error)) from None
