"""Where in the user's Python an op was written."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Source", "here", "quote"]

_PACKAGE = Path(__file__).resolve().parents[1]
# Code that builds on the user's behalf: the line of interest is its caller's.
_INTERNAL = (
    *(str(_PACKAGE / part) for part in ("dsl", "programs", "schedule", "strategies")),
    contextlib.__file__,
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A line of Python."""

    file: str = "<unknown>"
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def quote(text: str) -> str:
    """Write text as a string of MLIR."""
    return json.dumps(text, ensure_ascii=False)


def here() -> Source:
    """Give the line that called into the DSL, the nearest outside of it."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not str(Path(file).resolve()).startswith(_INTERNAL):
            return Source(file=file, line=frame.f_lineno)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return Source()
