"""``mercury bench``: how fast operators, kernels and links are on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from ..errors import MercuryError
from .bench_files import machine_for, write_json
from .bench_paper import paper
from .bench_wall import wall
from .files import OutputFile

__all__ = ["bench"]

F = TypeVar("F", bound=Callable[..., object])
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def bench() -> None:
    """Measure operators, kernels and links, on one GPU or, under torchrun, on many.

    torchrun --nproc-per-node 2 -m mercury bench operators --json results.json

    paper, forecast and predict measure nothing: they predict, as wall does without --run.
    """


bench.add_command(paper)
bench.add_command(wall)


def _rounds(default: int) -> Callable[[F], F]:
    return click.option(
        "--rounds",
        default=default,
        show_default=True,
        type=click.IntRange(1),
        help="How often each is measured.",
    )


@bench.command()
@click.argument("workloads", nargs=-1)
@click.option("--list", "show", is_flag=True, help="Name the workloads with goals, and stop.")
@click.option("--plans", help="Only plans whose names contain one of these: pull,ring.")
@click.option("--peers", "rivals", help="Only peers whose names contain one of these.")
@click.option("--wide", is_flag=True, help="More plans: how well are they predicted?")
@click.option("--mesh", help="Levels of our plans, slowest first; gpu=RANKS if not given.")
@click.option("--no-ours", is_flag=True, help="Measure the floor and the peers only.")
@click.option("--no-peers", is_flag=True, help="Measure the floor and our plans only.")
@click.option("--topology", help="Predict by this topology, too: a preset or a file.toml.")
@click.option("--json", "file", type=OutputFile(), help="Write the records to this file.")
@click.option("--resume", is_flag=True, help="Leave out what is in that file already.")
@click.option(
    "--trace", type=OutputFile(), help="Write a timeline of each fastest plan: NAME.json."
)
@_rounds(15)
@click.option(
    "--burst-ms",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Work between two barriers of the ranks.",
)
@click.option(
    "--time-limit",
    default=120.0,
    show_default=True,
    type=click.FloatRange(1),
    help="Seconds for one workload.",
)
@click.option(
    "--slow",
    default=3.0,
    show_default=True,
    type=click.FloatRange(1),
    help="What took so many times the floor when it was tried is not measured further.",
)
def operators(
    workloads: tuple[str, ...],
    show: bool,
    plans: str | None,
    rivals: str | None,
    wide: bool,
    mesh: str | None,
    no_ours: bool,
    no_peers: bool,
    topology: str | None,
    file: Path | None,
    resume: bool,
    trace: Path | None,
    rounds: int,
    burst_ms: float,
    time_limit: float,
    slow: float,
) -> None:
    """Measure WORKLOADS: the floor, our plans, and what others do, in turns.

    A workload is attention-BxHxS-full or -causal, with -gqaHK for HK key heads and -bwd for
    gradients behind it, ag-gemm-MxKxN or gemm-rs-MxKxN; all with goals when none is given.
    The floor is what one GPU needs for its share when all data is there already. Everything
    timed is first compared with float64.
    """
    from .. import bench as benches  # noqa: PLC0415 (nothing before it is needed)
    from ..bench.measure import Settings  # noqa: PLC0415
    from ..bench.sweep import Limits  # noqa: PLC0415

    if show:
        for name, goal in benches.GOALS.items():
            click.echo(f"{name}  at most {goal:.2f} x the floor, on 2 ranks")
        return
    if resume and file is None:
        raise click.UsageError("--resume needs --json FILE, whose workloads it leaves out")
    try:
        for name in workloads:
            benches.parse_workload(name)
        settings = Settings(
            rounds=rounds,
            least_rounds=min(5, rounds),
            burst_ms=burst_ms,
            budget_s=time_limit,
            slow=slow,
        )
        from .. import Mesh  # noqa: PLC0415
        from ..bench.cuda import Cuda  # noqa: PLC0415 (loads PyTorch)
        from ..bench.operators import (  # noqa: PLC0415
            Request,
            agreement_lines,
            measure_operators,
        )

        with Cuda() as on:
            records = measure_operators(
                on,
                Request(
                    workloads=workloads
                    or (tuple(benches.GOALS) if on.size > 1 else benches.ONE_GPU),
                    mesh=None if mesh is None else Mesh.parse(mesh),
                    plans=tuple(filter(None, (plans or "").split(","))),
                    rivals=tuple(filter(None, (rivals or "").split(","))),
                    wide=wide,
                    ours=not no_ours,
                    peers=not no_peers,
                    topology=topology,
                    file=file,
                    resume=resume,
                    trace=trace,
                ),
                settings,
                Limits(seconds=time_limit),
            )
            if on.rank == 0:
                click.echo(benches.table(records, every=True))
                click.echo()
                click.echo(benches.peers_table(records))
                if topology is not None:
                    click.echo("\n" + "\n".join(agreement_lines(records)))
    except MercuryError as error:
        raise click.ClickException(error.message) from None


@bench.command()
@click.argument("file", type=_FILE)
@click.option("--all", "every", is_flag=True, help="Every plan, not the fastest only.")
@click.option("--peers", is_flag=True, help="The peers, instead of our plans.")
@click.option("--brief", is_flag=True, help="Ratios alone, of the fastest plans.")
def table(file: Path, every: bool, peers: bool, brief: bool) -> None:
    """Print FILE, which mercury bench operators wrote, as a Markdown table."""
    from .. import bench as benches  # noqa: PLC0415
    from ..bench.operators import agreement_lines  # noqa: PLC0415

    if every + peers + brief > 1:
        raise click.UsageError(
            "--all, --peers and --brief are different tables; give one of them"
        )
    try:
        records = benches.read_records(file)
    except MercuryError as error:
        raise click.ClickException(error.message) from None
    if brief:
        click.echo(benches.brief_table(records))
    else:
        click.echo(
            benches.peers_table(records) if peers else benches.table(records, every=every)
        )
    if every:
        for line in agreement_lines(records):
            click.echo(line)


@bench.command()
@click.argument("file", type=_FILE)
@click.option("--topology", required=True, help="A preset such as h200-2x1, or a file.toml.")
def predict(file: Path, topology: str) -> None:
    """Predict the plans of FILE by a topology, and compare with what was measured.

    The predictions in FILE are replaced. No GPU is needed.
    """
    from .. import bench as benches  # noqa: PLC0415
    from ..bench.operators import agreement_lines, predict_records  # noqa: PLC0415

    def warn(text: str) -> None:
        click.echo(text, err=True)

    try:
        records = predict_records(benches.read_records(file), topology, warn)
        benches.write_records(file, records)
    except MercuryError as error:
        raise click.ClickException(error.message) from None
    click.echo(benches.table(records, every=True))
    for line in agreement_lines(records, warn):
        click.echo(line)


@bench.command()
@click.argument("workloads", nargs=-1)
@click.option("--topology", required=True, help="A preset such as h200-8x1, or a file.toml.")
@click.option("--mesh", help="Levels, slowest first; all ranks of the topology if not given.")
@click.option("--wide", is_flag=True, help="More plans.")
@click.option("--all", "every", is_flag=True, help="Show every plan, not the fastest only.")
@click.option("--json", "file", type=OutputFile(), help="Write all predictions to this file.")
def forecast(
    workloads: tuple[str, ...],
    topology: str,
    mesh: str | None,
    wide: bool,
    every: bool,
    file: Path | None,
) -> None:
    """Predict WORKLOADS on a machine before they are measured; no GPU is needed.

    Those that 4 and 8 GPUs are asked when none is given. A mesh of more ranks than the
    topology has is put on a host of the same kind with as many: --topology h200x2.toml
    --mesh gpu=8. Every figure is *predicted* by the simulator.
    """
    from ..bench import MANY_GPUS  # noqa: PLC0415
    from ..bench import forecast as forecasts  # noqa: PLC0415

    try:
        ranks, machine = machine_for(topology, mesh)
        found = list(
            forecasts.forecast(
                workloads or MANY_GPUS,
                ranks,
                machine,
                wide=wide,
                tell=lambda text: click.echo(text, err=True),
            )
        )
    except MercuryError as error:
        raise click.ClickException(error.message) from None
    click.echo(forecasts.forecast_table(found, every=every))
    write_json(file, found)


@bench.command()
@click.option("--json", "file", type=OutputFile(), help="Write the points to this file.")
@_rounds(9)
def kernels(file: Path | None, rounds: int) -> None:
    """Measure products, attention and copies of one GPU; of many, the slowest counts."""
    from ..bench.cuda import Cuda  # noqa: PLC0415 (loads PyTorch)
    from ..bench.kernels import kernel_table, measure_kernels  # noqa: PLC0415

    try:
        with Cuda() as on:
            points = measure_kernels(on, rounds=rounds)
            if on.rank == 0:
                click.echo(kernel_table(points))
                write_json(file, points)
    except MercuryError as error:
        raise click.ClickException(error.message) from None


@bench.command()
@click.option("--json", "file", type=OutputFile(), help="Write the points to this file.")
@_rounds(9)
def links(file: Path | None, rounds: int) -> None:
    """Measure the links between ranks by size: copy engines and NCCL."""
    from ..bench.cuda import Cuda  # noqa: PLC0415 (loads PyTorch)
    from ..bench.links import link_table, measure_links  # noqa: PLC0415

    try:
        with Cuda() as on:
            points = measure_links(on, rounds=rounds)
            if on.rank == 0:
                click.echo(link_table(points))
                write_json(file, points)
    except MercuryError as error:
        raise click.ClickException(error.message) from None


@bench.command()
@click.option("--json", "file", type=OutputFile(), help="Write the points to this file.")
@click.option("--mesh", help="Levels of the plans, slowest first; gpu=RANKS if not given.")
@_rounds(15)
def host(file: Path | None, mesh: str | None, rounds: int) -> None:
    """Measure the host's time for a step of a plan that no graph holds, kernels aside."""
    from ..bench.host import (  # noqa: PLC0415 (loads the runtime)
        host_table,
        measure_host,
        named_plans,
        small_tensors,
    )
    from ..cuda import Session  # noqa: PLC0415
    from ..dsl import Mesh  # noqa: PLC0415

    levels = Mesh.parse(mesh or f"gpu={os.environ.get('WORLD_SIZE', '1')}")
    try:
        points = []
        for name, plan in named_plans(levels):
            with Session(levels) as session:
                tensors = small_tensors(plan, session)
                points.append(measure_host(session, name, plan, tensors, rounds=rounds))
        if session.rank == 0:
            click.echo(host_table(points))
            write_json(file, points)
    except MercuryError as error:
        raise click.ClickException(error.message) from None
