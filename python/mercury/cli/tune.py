"""``mercury tune``: find the best schedule of a program on a machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import MercuryError
from .files import OutputFile, write_text

if TYPE_CHECKING:
    from ..tuner import TuneResult

__all__ = ["tune"]


@click.command()
@click.argument("program")
@click.option("--topology", required=True, help="A preset such as h100-8x2, or a file.toml.")
@click.option("--mesh", help="Levels, slowest first; all ranks of the topology if not given.")
@click.option("--set", "settings", multiple=True, help="Parameters: sq=4097,sk=4097,h=4.")
@click.option("--mask", help="full, causal, causal(offset), window(left, right).")
@click.option("--layout", help="How axes are cut, where not into blocks: sq=zigzag,sk=zigzag.")
@click.option(
    "--dtype",
    type=click.Choice(["bf16", "f16", "f32", "f64"]),
    help="Of the tensors; the program's own when not given.",
)
@click.option(
    "--at",
    "boundary",
    multiple=True,
    help="Where a buffer lives outside: Q.sq=gpu, or K.sk=node+gpu. Once for each cut; where "
    "a plan wants it, at no cost, when not given.",
)
@click.option("--memory", help="Limit of a rank, as 40GiB; the machine's when not given.")
@click.option(
    "--target",
    default="sim",
    show_default=True,
    help="Where the plan will run; cuda measures the best on GPUs, under torchrun.",
)
@click.option("--time-limit", help="Of the search, as 60s or 2min.")
@click.option("--top", default=3, show_default=True, help="How many plans are tried.")
@click.option(
    "--max-levels",
    default=2,
    show_default=True,
    help="Levels are split until there are so many.",
)
@click.option(
    "--narrow-partials",
    multiple=True,
    type=click.Choice(["bf16", "f16"]),
    help="Partial results may be rounded to this while they wait or move; else float32.",
)
@click.option("--no-cache", is_flag=True, help="Neither use nor keep results.")
@click.option(
    "--json",
    "file",
    type=OutputFile(),
    help="Write the result to this file.",
)
@click.option(
    "--report",
    type=OutputFile(),
    help="Write a page with all of it to this file, as out.html.",
)
@click.option("--script", is_flag=True, help="Print the chosen schedule as a script, too.")
def tune(
    program: str,
    topology: str,
    mesh: str | None,
    settings: tuple[str, ...],
    mask: str | None,
    layout: str | None,
    dtype: str | None,
    boundary: tuple[str, ...],
    memory: str | None,
    target: str,
    time_limit: str | None,
    top: int,
    max_levels: int,
    narrow_partials: tuple[str, ...],
    no_cache: bool,
    file: Path | None,
    report: Path | None,
    script: bool,
) -> None:
    """Find the best schedule of PROGRAM on a machine.

    PROGRAM is a shipped program (ag_gemm, attention, attention_backward, decode_attention,
    gemm_rs, matmul) or your own: my_file.py:my_program. Latencies are predicted; with
    --target cuda, under torchrun with one rank for each GPU, the best plans are measured, too,
    and the fastest is chosen. Ctrl-C ends the search; the next one goes on from there.
    """
    from .. import Mesh, tuner  # noqa: PLC0415 (loads the compiler)
    from .loading import make_program, text_of  # noqa: PLC0415

    try:
        found = tuner.tune(
            make_program(program, settings=settings, layout=layout, mask=mask, dtype=dtype),
            None if mesh is None else Mesh.parse(mesh),
            topology=topology,
            boundary=_boundary(boundary) or None,
            memory=memory,
            target=target,
            time_limit=time_limit,
            options=tuner.SpaceOptions(
                max_levels=max_levels,
                narrow=narrow_partials,
                overlap=target == "cuda",
            ),
            top=top,
            cache=not no_cache,
        )
    except MercuryError as error:
        raise click.ClickException(text_of(error)) from None
    if os.environ.get("RANK", "0") != "0":
        return  # all ranks found the same, and one tells
    click.echo(str(found))
    if script:
        click.echo(found.script, nl=False)
    if report is not None:
        try:
            _write_report(report, found, topology)
        except MercuryError as error:
            raise click.ClickException(str(error)) from None
        click.echo(f"report: {report}")
    if file is not None:
        write_text(file, json.dumps(found.to_json(), indent=1) + "\n")


def _write_report(file: Path, found: TuneResult, topology: str) -> None:
    """Run the plans that matter once more, on embedded ranks, and write the page."""
    from .. import simulate  # noqa: PLC0415 (loads the compiler)
    from ..report import check, write  # noqa: PLC0415

    named = (found.chosen, found.runner_up, found.plain)
    plans = {each.fingerprint: each for each in named if each is not None}
    write(
        file,
        found,
        simulate=lambda schedule: simulate(schedule, topology),
        checks=[check(found, each) for each in plans.values()],
    )


def _boundary(texts: tuple[str, ...]) -> dict[str, dict[str, list[str]]]:
    """Read ``Q.sq=gpu`` and ``K.sk=node+gpu``; ``Q=`` keeps a buffer whole."""
    made: dict[str, dict[str, list[str]]] = {}
    for text in texts:
        place, sign, levels = text.partition("=")
        buffer, _, axis = place.partition(".")
        if not sign or not buffer or bool(axis) != bool(levels):
            raise click.UsageError(
                f"expected --at BUFFER.AXIS=LEVEL or --at BUFFER= (whole), got '{text}'"
            )
        cuts = made.setdefault(buffer, {})
        if axis:
            cuts[axis] = levels.split("+")
    return made
