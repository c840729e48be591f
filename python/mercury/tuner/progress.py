"""A line that says how far a search is, on a terminal that has rich."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Report", "on_terminal", "quiet"]

Report = Callable[[str], None]
"""Takes what a search does now, in a line."""


@contextmanager
def quiet() -> Iterator[Report]:
    """Say nothing."""
    yield lambda _: None


@contextmanager
def on_terminal() -> Iterator[Report]:
    """Show a line that changes in place; nothing where there is no terminal or no rich."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 (optional)
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("tuning")

        def report(text: str) -> None:
            shown.update(task, description=text)

        yield report
