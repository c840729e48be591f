"""The errors that Mercury raises: each says what was given, the rule and the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

__all__ = [
    "CompileError",
    "MercuryError",
    "ProgramError",
    "RunError",
    "ScheduleError",
    "did_you_mean",
]

_LOCATION = re.compile(r'"(?P<file>[^"]+)":(?P<line>\d+)')


class MercuryError(Exception):
    """Anything that Mercury refuses or that fails while it works.

    Parameters
    ----------
    message
        What went wrong, and what to do.
    notes
        Other places that matter, as ``(location, text)``.
    location
        Where in the user's Python, as ``"file.py:12"``; empty when not known.
    """

    def __init__(
        self,
        message: str,
        *,
        location: str = "",
        notes: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.message = message
        self.location = location
        self.notes = tuple(notes)
        lines = [f"{location}: {message}" if location else message]
        lines += [f"  note: {place + ': ' if place else ''}{text}" for place, text in notes]
        super().__init__("\n".join(lines))

    @classmethod
    def from_diagnostics(
        cls, diagnostics: Sequence[Sequence[tuple[str, str]]], *, otherwise: str
    ) -> MercuryError:
        """Make an error of the compiler's diagnostics, the first being the cause.

        Parameters
        ----------
        diagnostics
            Each a diagnostic and its notes, as ``(MLIR location, text)``.
        otherwise
            The message when there is no diagnostic.

        Returns
        -------
        MercuryError
            An error of this class.
        """
        if not diagnostics:
            return cls(otherwise)
        (where, text), *notes = diagnostics[0]
        kept = [
            (python_location(place), note)
            for place, note in notes
            if not note.startswith("see current operation")
        ]
        return cls(text, location=python_location(where), notes=kept)


class ProgramError(MercuryError):
    """A program, its mesh or its boundary does not make sense."""


class ScheduleError(MercuryError):
    """A step of a schedule is not legal; the schedule is as it was before the step."""


class CompileError(MercuryError):
    """A scheduled program cannot be lowered to a plan."""


class RunError(MercuryError):
    """A plan failed while it ran, or was given data that does not fit it."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Give the end of a message about an unknown name: the nearest known one, if any is.

    Examples
    --------
    >>> did_you_mean("doublering", ["ring", "double-ring"])
    "; did you mean 'double-ring'?"
    >>> did_you_mean("star", ["ring", "double-ring"])
    ''
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def python_location(text: str) -> str:
    """``loc("file.py":12:3)`` as ``file.py:12``."""
    found = _LOCATION.search(text)
    return f"{found['file']}:{found['line']}" if found else ""
