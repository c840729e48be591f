"""``mercury topology``: show a machine, check a topology file."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import MercuryError
from ..topology import CAPABILITIES, DOMAINS, Topology, load, presets
from .files import OutputFile

__all__ = ["topology"]

_SIZES = (1 << 20, 16 << 20, 256 << 20, 1 << 30)


@click.group()
def topology() -> None:
    """Descriptions of machines: presets, and files of your own."""


@topology.command("list")
def list_presets() -> None:
    """List the presets."""
    for gpu in presets():
        machine = load(f"{gpu}-1x1").machine
        gib = machine.memory / (1 << 30)
        click.echo(f"{gpu}-<gpus per node>x<nodes>  {machine.name}, {gib:.0f} GiB")


@topology.command()
@click.argument("name")
def check(name: str) -> None:
    """Read a topology file, or a preset, and say what is wrong with it."""
    found = _load(name)
    links = ", ".join(f"{link.name} = {link.size}" for link in found.links)
    click.echo(f"{name}: right, {found.size} ranks ({links})")


@topology.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a topology: its ranks, kernels and links."""
    found = _load(name)
    console = Console(highlight=False)
    machine = found.machine
    console.print(f"[bold]{escape(found.name)}[/]: {found.size} x {escape(machine.name)}")
    console.print(
        f"memory {machine.memory / (1 << 30):.1f} GiB, copies {machine.copy_rate / 1e9:,.0f} "
        f"GB/s, {machine.launch * 1e6:g} us between kernels"
    )
    console.print(_links(found))
    console.print(_kernels(found))
    for link in found.links:
        has = sorted(link.capabilities)
        console.print(f"[bold]{escape(link.name)}[/]: {DOMAINS[link.domain]}", soft_wrap=True)
        for capability in has or []:
            console.print(f"  {capability}: {CAPABILITIES[capability]}", soft_wrap=True)
        lacking = sorted(set(CAPABILITIES) - link.capabilities)
        if lacking:
            console.print(f"  not there: {', '.join(lacking)}", soft_wrap=True)
    for source in found.sources:
        console.print(f"source: {escape(source)}", style="dim", soft_wrap=True)


@topology.command()
@click.argument("file", type=OutputFile())
@click.option("--name", help="Of the topology; that of the file when not given.")
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(1))
def probe(file: Path, name: str | None, rounds: int) -> None:
    """Measure this machine and write its topology to FILE.

    Under torchrun, with one rank for each GPU: torchrun --nproc-per-node 2 -m mercury
    topology probe mine.toml. A rank alone is measured without links.
    """
    from ..bench.probe import probe as measure  # noqa: PLC0415 (loads PyTorch)

    try:
        measure(file, name or file.stem, rounds=rounds, tell=click.echo)
    except MercuryError as error:
        raise click.ClickException(error.message) from None


def _load(name: str) -> Topology:
    try:
        return load(name)
    except MercuryError as error:
        raise click.ClickException(error.message) from None


def _links(found: Topology) -> Table:
    table = Table("level", "size", "transport", "latency", title="links, GB/s each way")
    for label in ("1 MiB", "16 MiB", "256 MiB", "1 GiB", "off by"):
        table.add_column(label, justify="right")
    for link in found.links:
        for number, (name, curve) in enumerate(link.transports.items()):
            first = number == 0
            table.add_row(
                link.name if first else "",
                str(link.size) if first else "",
                name,
                f"{curve.latency * 1e6:g} us",
                *[f"{curve.bandwidth(size) / 1e9:.1f}" for size in _SIZES],
                f"{link.error:.0%}" if first else "",
            )
    return table


def _kernels(found: Topology) -> Table:
    table = Table("kernel", "TFLOP/s", "block", "at a time", "a launch", "off by")
    for name, curve in found.machine.kernels.items():
        rates = [rate / 1e12 for _, rate in curve.points]
        low, high = min(rates), max(rates)
        table.add_row(
            "any other" if name == "*" else name,
            f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}",
            " x ".join(str(size) for size in curve.block if size),
            str(curve.units),
            f"{curve.overhead * 1e6:g} us",
            f"{curve.error:.0%}",
        )
    return table
