"""Points of a measurement as a JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

__all__ = ["write_json"]


def write_json(file: Path | None, points: Sequence[Any]) -> None:
    """Write dataclasses as a list of objects, where a file is given."""
    if file is None:
        return
    try:
        file.write_text(
            json.dumps([asdict(point) for point in points], indent=1) + "\n", encoding="utf-8"
        )
    except OSError as error:
        raise click.ClickException(f"'{file}' cannot be written: {error}") from None
