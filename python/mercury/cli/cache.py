"""``mercury cache``: what searches have found, kept on disk."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import ParamSpec

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import MercuryError
from .files import OutputFile

__all__ = ["cache"]

P = ParamSpec("P")


def _telling(function: Callable[P, None]) -> Callable[P, None]:
    """Show errors of ours as messages."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except MercuryError as error:
            raise click.ClickException(error.message) from None

    return wrapped


@click.group()
def cache() -> None:
    """Results of mercury tune, kept in MERCURY_CACHE_DIR or the user's cache folder."""


@cache.command("list")
@_telling
def list_entries() -> None:
    """List the entries, the oldest first."""
    from ..tuner import Cache  # noqa: PLC0415 (loads NumPy)

    own = Cache()
    entries = own.entries()
    if not entries:
        click.echo(f"{own.path}: no entries")
        return
    table = Table("key", "made", "question", "schedule")
    for entry in entries:
        made = datetime.fromtimestamp(entry.created).strftime("%Y-%m-%d %H:%M")
        recipe = str(entry.answer.get("recipe", ""))
        table.add_row(entry.key[:8], made, escape(entry.label), escape(recipe))
    Console(highlight=False).print(table)


@cache.command()
@click.argument("key")
@_telling
def show(key: str) -> None:
    """Print the entry whose key begins with KEY, as JSON."""
    from ..tuner import Cache  # noqa: PLC0415 (loads NumPy)

    click.echo(json.dumps(json.loads(Cache().find(key).text()), indent=1))


@cache.command()
@click.argument("key")
@click.option("--free-memory", help="Of a rank, as 40GiB.")
@click.option("--link", "links", multiple=True, help="A measured bandwidth: node=4GB a second.")
@_telling
def choose(key: str, free_memory: str | None, links: tuple[str, ...]) -> None:
    """Say which plan of the entry KEY runs on a machine as it was found.

    That is the chosen plan when what it assumes holds, else the next safe one.
    """
    from ..tuner import Cache, Observed  # noqa: PLC0415 (loads NumPy)
    from ..tuner.quantity import parse_bytes  # noqa: PLC0415
    from ..tuner.result import select_stored  # noqa: PLC0415

    bandwidths = {}
    for text in links:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.UsageError(f"expected --link NAME=BYTES, as node=4GB, got '{text}'")
        bandwidths[name] = float(parse_bytes(value))
    observed = Observed(
        free_bytes=None if free_memory is None else parse_bytes(free_memory),
        bandwidths=bandwidths,
    )
    taken = select_stored(Cache().find(key).answer, observed)
    click.echo(taken.note or "all that the chosen plan assumes holds")
    click.echo(taken.choice.recipe)


@cache.command()
@click.argument("key", required=False)
@click.option("--all", "everything", is_flag=True, help="Forget all entries.")
@_telling
def drop(key: str | None, everything: bool) -> None:
    """Forget the entry whose key begins with KEY."""
    from ..tuner import Cache  # noqa: PLC0415 (loads NumPy)

    if (key is None) != everything:
        raise click.UsageError("give either a KEY or --all")
    own = Cache()
    if key is None:
        click.echo(f"{own.clear()} entries forgotten")
        return
    found = own.find(key)
    own.drop(found.key)
    click.echo(f"{found.key[:8]} forgotten: {found.label}")


@cache.command("export")
@click.argument("file", type=OutputFile())
@click.argument("keys", nargs=-1)
@_telling
def export_entries(file: Path, keys: tuple[str, ...]) -> None:
    """Write entries to FILE: all, or those whose KEYS begin so."""
    from ..tuner import Cache  # noqa: PLC0415 (loads NumPy)

    own = Cache()
    chosen = [own.find(key).key for key in keys] if keys else None
    click.echo(f"{own.export(file, chosen)} entries written to {file}")


@cache.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_telling
def import_entries(file: Path) -> None:
    """Read entries from FILE, which mercury cache export wrote."""
    from ..tuner import Cache  # noqa: PLC0415 (loads NumPy)

    click.echo(f"{Cache().load(file)} entries read from {file}")


@cache.command()
def path() -> None:
    """Say where the cache is."""
    from ..tuner import default_path  # noqa: PLC0415 (loads NumPy)

    click.echo(default_path())
