"""``mercury check``: prove that a plan means its program, or show where it does not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..errors import CompileError, MercuryError
from .loading import make_schedule, schedule_options

__all__ = ["check"]

_HELP = """Prove that the plan of all ranks does what the program means.

SOURCE is a file of MLIR text, with scheduled programs or with lowered plans beside the
programs they came from, or a program as in mercury run. Nothing is run: every rank is
followed on what its memory holds. The exit status is 1 when a plan is wrong; then the
rank, the step, the op and the buffer are named.

\b
    mercury check attention --strategy ring --mesh gpu=8 --mask causal
    mercury check plan.mlir
"""


@click.command(help=_HELP)
@click.argument("source")
@schedule_options
def check(source: str, **options: Any) -> None:
    """Check the plans of a file, or of a program."""
    path = Path(source)
    scheduled = any(options[name] is not None for name in ("strategy", "schedule", "recipe"))
    try:
        if scheduled:
            module = _read(make_schedule(source, **options).ir())
        elif path.is_file():
            module = _parse(path)
        else:
            raise click.UsageError(
                f"there is no file '{source}'; give one of --strategy, --schedule and --recipe "
                "to check a program"
            )
        proofs = _prove(module)
    except MercuryError as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    for name, ranks, launches, messages, moved in proofs:
        click.echo(f"{name}: right on {ranks} rank{'s' if ranks != 1 else ''}")
        click.echo(
            f"  every element of its outputs is merged from every part once, by {launches:,} "
            "launches"
        )
        click.echo(
            f"  {messages:,} messages of {moved:,} bytes in all are received, in an order that "
            "cannot hang"
        )
        click.echo("  nothing is read before it is there, or overwritten while it is needed")


def _parse(path: Path) -> Any:
    """Read a file, keeping its lines."""
    from .._mlir import ir  # noqa: PLC0415 (loads the compiler)

    try:
        return ir.Module.parseFile(str(path), ir.Context())
    except ir.MLIRError as error:
        raise CompileError.from_diagnostics(
            [[(str(d.location), d.message)] for d in error.error_diagnostics],
            otherwise=str(error),
        ) from None


def _read(text: str) -> Any:
    from .._mlir import ir  # noqa: PLC0415 (loads the compiler)

    return ir.Module.parse(text, ir.Context())


def _prove(module: Any) -> list[tuple[str, int, int, int, int]]:
    """Lower what is not lowered yet, and check every plan."""
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (loads the compiler)

    programs = [
        op.operation
        for op in module.body.operations
        if op.operation.name == "commir.program"
        and "commir.is_source" not in op.operation.attributes
    ]
    if programs:
        succeeded, problems, _ = _mercury.run_pipeline(module, "builtin.module(commir-to-spmd)")
        if not succeeded:
            raise CompileError.from_diagnostics(problems, otherwise="the plan is not lowered")
    proofs, problems = _mercury.check_plans(module)
    if problems:
        raise CompileError.from_diagnostics(problems, otherwise="the plan is wrong")
    if not proofs:
        raise CompileError(
            "there is no plan to check: expected a commir.program with a schedule, or a "
            "function that mercury-opt --commir-to-spmd made of one"
        )
    return list(proofs)
