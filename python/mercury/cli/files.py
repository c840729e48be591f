"""Files that commands write: looked at before the work, not after it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

__all__ = ["OutputFile", "write_text"]


class OutputFile(click.Path):
    """A file that can be written; its folder must be there when the command starts."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Refuse a path whose folder is missing or may not be written to."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"there is no folder '{path.parent}'; make it first", param, ctx)
        if not path.exists() and not os.access(path.parent, os.W_OK):
            self.fail(f"folder '{path.parent}' may not be written to", param, ctx)
        return path


def write_text(path: Path, text: str) -> None:
    """Write a file, or end the command with the reason why it cannot be.

    Raises
    ------
    click.ClickException
        When the system refuses.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"'{path}' cannot be written: {error.strerror}") from None
