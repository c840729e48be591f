"""Programs, masks and settings as they are written in a shell."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

from .. import programs
from ..dsl import Mask, ProgramFactory, causal, full, window
from ..errors import ProgramError

__all__ = ["parse_mask", "parse_settings", "program_function"]


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
        found = runpy.run_path(path, run_name="__mercury__").get(name)
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
        if not name.isidentifier() or not value.lstrip("-").isdigit():
            raise ProgramError(f"expected settings such as sq=4097,h=8, got '{piece}'")
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
    name, _, rest = text.partition("(")
    numbers = [piece.strip() for piece in rest.rstrip(")").split(",") if piece.strip()]
    makers: dict[str, tuple[Callable[..., Mask], range]] = {
        "full": (full, range(1)),
        "causal": (causal, range(2)),
        "window": (window, range(1, 3)),
    }
    maker, counts = makers.get(name.strip(), (full, range(0)))
    whole = all(number.lstrip("-").isdigit() for number in numbers)
    if len(numbers) not in counts or not whole:
        raise ProgramError(
            f"expected full, causal, causal(offset), window(left) or window(left, right), "
            f"got '{text}'"
        )
    return maker(*map(int, numbers))
