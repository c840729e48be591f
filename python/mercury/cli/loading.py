"""Programs, masks and settings as they are written in a shell."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path

from .. import programs
from ..dsl import Mask, ProgramFactory, causal, full, window
from ..errors import ProgramError

__all__ = ["parse_mask", "parse_settings", "program_function"]

_WHOLE = re.compile(r"-?[0-9]+")


def program_function(text: str) -> ProgramFactory:
    """Find a program: a shipped one by name, or ``my_file.py:my_program``.

    Raises
    ------
    ProgramError
        When there is none.
    """
    path, _, name = text.rpartition(":")
    if not path:
        if text not in programs.__all__:
            raise ProgramError(
                f"there is no program '{text}'; shipped are {', '.join(programs.__all__)}, "
                "your own is my_file.py:my_program"
            )
        found = getattr(programs, text)
    else:
        if not Path(path).is_file():
            raise ProgramError(f"there is no file '{path}' with a program '{name}'")
        try:
            found = runpy.run_path(path, run_name="__mercury__").get(name)
        except Exception as error:
            raise ProgramError(
                f"'{path}' cannot be run: {type(error).__name__}: {error}"
            ) from error
    if not isinstance(found, ProgramFactory):
        raise ProgramError(f"'{name}' of '{path}' is not a function with @mercury.program")
    return found


def parse_settings(texts: tuple[str, ...]) -> dict[str, int]:
    """Read ``sq=4097,sk=4097``.

    Raises
    ------
    ProgramError
        When the text is not of that form.
    """
    settings: dict[str, int] = {}
    for piece in ",".join(texts).split(","):
        name, _, value = piece.partition("=")
        if not piece:
            continue
        if not name.isidentifier() or not _WHOLE.fullmatch(value):
            raise ProgramError(f"expected settings such as sq=4097,h=8, got '{piece}'")
        if name in settings:
            raise ProgramError(f"'{name}' is set twice")
        settings[name] = int(value)
    return settings


def parse_mask(text: str) -> Mask:
    """Read ``full``, ``causal``, ``causal(3)``, ``window(127)`` or ``window(127, 4)``.

    Raises
    ------
    ProgramError
        When it is none of these.

    Examples
    --------
    >>> parse_mask("window(127, 4)")
    Mask(left=127, right=4, documents=())
    """
    found = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", text)
    name, rest = (found[1], found[2] or "") if found else ("", "")
    numbers = [piece.strip() for piece in rest.split(",") if piece.strip()]
    makers: dict[str, tuple[Callable[..., Mask], range]] = {
        "full": (full, range(1)),
        "causal": (causal, range(2)),
        "window": (window, range(1, 3)),
    }
    maker, counts = makers.get(name, (full, range(0)))
    whole = all(_WHOLE.fullmatch(number) for number in numbers)
    if len(numbers) not in counts or not whole:
        raise ProgramError(
            f"expected full, causal, causal(offset), window(left) or window(left, right), "
            f"got '{text}'"
        )
    return maker(*map(int, numbers))
