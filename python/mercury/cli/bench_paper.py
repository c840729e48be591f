"""``mercury bench paper``: the paper's comparisons, by prediction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import MercuryError
from .files import OutputFile, write_text

if TYPE_CHECKING:
    from ..paper import Comparison, Line, Outcome

__all__ = ["paper"]

_HELP = """Predict the comparisons of the Mercury paper (SOSP 2025); nothing is run.

Attention (MHA and GQA, batch 1 and 16, 4K to 2M tokens) by ring, Ulysses, USP and gathered
keys, and products with communication (Llama-3 sizes) synchronous and as AsyncTP, on the
paper's meshes of H100, A100 and L4; beside them the best of a bounded space of schedules. Every
figure is *predicted* by the simulator from datasheet curves, none is measured.
"""


@click.command(help=_HELP)
@click.option("--only", multiple=True, help="Cases whose group or name contains this text.")
@click.option(
    "--json",
    "file",
    type=OutputFile(),
    help="Write all figures to this file.",
)
def paper(only: tuple[str, ...], file: Path | None) -> None:
    """Print a line for each case, and the published ratios beside ours."""
    from ..paper import CASES, compare, summary  # noqa: PLC0415 (loads the compiler)

    cases = [
        case
        for case in CASES
        if not only or any(text in f"{case.group}: {case.name}" for text in only)
    ]
    if not cases:
        raise click.UsageError(
            f"no case has {' or '.join(map(repr, only))} in its name; groups are "
            f"{', '.join(dict.fromkeys(case.group for case in CASES))}"
        )
    found: list[Comparison] = []
    try:
        for case in cases:
            (comparison,) = compare([case])
            found.append(comparison)
            for line in _case(comparison):
                click.echo(line)
    except MercuryError as error:
        raise click.ClickException(error.message) from None
    lines = summary(found)
    for text in _summary(lines):
        click.echo(text)
    if file is not None:
        values = {
            "predicted": True,
            "cases": [each.to_json() for each in found],
            "summary": [line.to_json() for line in lines],
        }
        write_text(file, json.dumps(values, indent=1) + "\n")


def _case(comparison: Comparison) -> list[str]:
    ours, name = comparison.ours, comparison.case.name
    others = "  ".join(
        f"{method} {_time(outcome, comparison.ratios.get(method))}"
        for method, outcome in comparison.methods.items()
    )
    best = f"ours (best of {ours.tried}) {_time(ours, None)}"
    chosen = f"  [{ours.recipe}]" if ours.recipe else ""
    return [f"*predicted* {name}: {best}  {others}{chosen}"]


def _time(outcome: Outcome, ratio: float | None) -> str:
    from ..tuner.quantity import format_seconds  # noqa: PLC0415

    if outcome.time_s is None:
        return outcome.why
    return format_seconds(outcome.time_s) + (f" ({ratio:.2f}x)" if ratio is not None else "")


def _summary(lines: Sequence[Line]) -> list[str]:
    told = []
    for line in lines:
        told.append(
            f"*predicted* {line.claim.what}: {line.against_best:.2f}x the best of the others, "
            f"{line.against_mean:.2f}x all of them; published {line.claim.published:.2f}x"
        )
        if line.why:
            told.append(f"*predicted* why not: {line.why}")
    return told
