"""``mercury run``: run a plan once on random data and compare it with float64."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import MercuryError, RunError
from .loading import make_schedule, schedule_options, text_of

if TYPE_CHECKING:
    from ..cuda.plan import CudaPlan
    from ..runtime.plan import Plan
    from ..schedule import Schedule

__all__ = ["run"]

_MOST_RANKS = 1024

_HELP = """Run PROGRAM and compare it with float64 on one device.

PROGRAM is a shipped program (ag_gemm, attention, attention_backward, decode_attention,
gemm_rs, matmul) or your own: my_file.py:my_program. With --target sim, ranks are threads
of this process; with --target cuda each is a process with a GPU:

\b
    mercury run attention --strategy ring --mesh gpu=4 --set sq=512,sk=512
    torchrun --nproc-per-node 2 --no-python mercury run attention --strategy ring \\
        --mesh gpu=2 --dtype bf16 --target cuda
"""


@click.command(help=_HELP)
@click.argument("program")
@schedule_options
@click.option(
    "--target",
    type=click.Choice(["sim", "cuda"]),
    default="sim",
    show_default=True,
    help="Where ranks run.",
)
@click.option(
    "--seed", default=0, type=click.IntRange(0), show_default=True, help="Of the random inputs."
)
@click.option(
    "--delays",
    default=0,
    type=click.IntRange(0, 2**63 - 1),
    help="Not 0: a seed for delayed, reordered messages (target sim).",
)
def run(program: str, target: str, seed: int, delays: int, **options: Any) -> None:
    """Run a plan once."""
    if delays and target != "sim":
        raise click.UsageError("--delays is of target sim; GPUs take their own time")
    try:
        scheduled = make_schedule(program, **options)
        right = (
            _on_gpus(scheduled, seed) if target == "cuda" else _here(scheduled, seed, delays)
        )
    except MercuryError as error:
        raise click.ClickException(text_of(error)) from None
    if not right:
        sys.exit(1)


def _here(scheduled: Schedule, seed: int, delays: int) -> bool:
    from ..runtime.sim import SimOptions  # noqa: PLC0415 (loads the compiler)
    from ..runtime.trial import trial  # noqa: PLC0415

    ranks = scheduled.mesh.size
    if ranks > _MOST_RANKS:
        raise RunError(
            f"a mesh of {ranks:,} ranks is too large to run here, where each is a thread: take "
            f"at most {_MOST_RANKS:,}, or mercury simulate, which runs nothing"
        )
    plan = scheduled.compile()
    _print_schedule(scheduled, plan.remarks)  # first: what follows may take long
    result = trial(plan, seed, SimOptions(seed=delays))
    _print_errors(result.errors, result.limits)
    for level, sent in result.report.bytes_sent.items():
        messages = result.report.messages[level]
        click.echo(f"{level:11} {sent:,} bytes in {messages:,} messages")
    _print_arenas(plan)
    return result.right


def _on_gpus(scheduled: Schedule, seed: int) -> bool:
    from ..cuda import Session  # noqa: PLC0415
    from ..cuda.trial import trial  # noqa: PLC0415

    plan = scheduled.compile(target="cuda")
    with Session(plan.mesh) as session:
        if session.rank == 0:
            _print_schedule(scheduled, plan.remarks)
        result = trial(plan, session, seed)
        if session.rank == 0:
            _print_errors(result.errors, result.limits)
            _print_arenas(plan)
    return result.right


def _print_arenas(plan: Plan | CudaPlan) -> None:
    click.echo(
        f"arenas      {plan.arena_bytes:,} bytes a rank, "
        f"{plan.symmetric_bytes:,} of them symmetric"
    )


def _print_schedule(scheduled: Schedule, remarks: Sequence[str]) -> None:
    click.echo(f"schedule    {scheduled.recipe() or 'none'}")
    for text in remarks:
        click.echo(f"remark      {text}")


def _print_errors(errors: dict[str, float], limits: dict[str, float]) -> None:
    for name, distance in errors.items():
        verdict = "right" if distance <= limits[name] else "WRONG"
        click.echo(
            f"{name:11} error {distance:.1e} against float64 (limit {limits[name]:.0e}): "
            f"{verdict}"
        )
