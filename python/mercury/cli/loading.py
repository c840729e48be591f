"""Programs, masks and settings as they are written in a shell."""

from __future__ import annotations

import re
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from .. import programs
from ..dsl import Mask, Mesh, Program, ProgramFactory, causal, full, window
from ..errors import MercuryError, ProgramError, ScheduleError, did_you_mean

if TYPE_CHECKING:
    from ..schedule import Schedule

__all__ = [
    "make_program",
    "make_schedule",
    "parse_layout",
    "parse_mask",
    "parse_settings",
    "program_function",
    "schedule_options",
    "text_of",
]

_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_COMMA = re.compile(r",(?![^\[(]*[\])])")  # of a list, not within brackets
F = TypeVar("F", bound=Callable[..., object])


def schedule_options(function: F) -> F:
    """Give a command the options that `make_schedule` takes."""
    options = [
        click.option("--strategy", help="A named method; see mercury strategies."),
        click.option(
            "--schedule",
            type=click.Path(exists=True, dir_okay=False),
            help="A file with a recipe or a transform script.",
        ),
        click.option("--recipe", help="The schedule in one line: 'parallelize(sq, gpu)'."),
        click.option(
            "--mesh", default="gpu=4", show_default=True, help="Levels, slowest first."
        ),
        click.option(
            "--set", "settings", multiple=True, help="Parameters: sq=4097,sk=4097,h=4."
        ),
        click.option(
            "--layout", help="How axes are cut, where not into blocks: sq=zigzag,sk=zigzag."
        ),
        click.option("--mask", help="full, causal, causal(offset), window(left, right)."),
        click.option(
            "--dtype",
            type=click.Choice(["bf16", "f16", "f32", "f64"]),
            help="Of the tensors; f32 when not given, where the program has a choice.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def make_schedule(
    program: str,
    *,
    strategy: str | None,
    schedule: str | None,
    recipe: str | None,
    mesh: str,
    settings: tuple[str, ...],
    layout: str | None,
    mask: str | None,
    dtype: str | None,
) -> Schedule:
    """Build a program and schedule it, as the options of a command say.

    Raises
    ------
    click.UsageError
        When there is not one schedule.
    MercuryError
        When the program or the schedule is not right.
    """
    from .. import Schedule  # noqa: PLC0415 (loads the compiler)
    from .. import strategies as known  # noqa: PLC0415

    if sum(option is not None for option in (strategy, schedule, recipe)) != 1:
        raise click.UsageError("give one of --strategy, --schedule and --recipe")
    if dtype is None and "dtype" in program_function(program).parameters:
        dtype = "f32"
    built = make_program(program, settings=settings, layout=layout, mask=mask, dtype=dtype)
    ranks = Mesh.parse(mesh)
    if strategy is not None:
        return known.get(strategy).schedule(ranks, built)
    text = recipe if schedule is None else _read(schedule)
    return Schedule(built, ranks).apply(text or "")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScheduleError(f"'{path}' cannot be read as a schedule: {error}") from None


def make_program(
    program: str,
    *,
    settings: tuple[str, ...],
    layout: str | None,
    mask: str | None,
    dtype: str | None,
) -> Program:
    """Build a program as the options of a command say; what is None is the program's own.

    Raises
    ------
    MercuryError
        When there is none, or an option is not right.
    """
    parameters: dict[str, object] = {**parse_settings(settings)}
    for name in ("dtype", "layout", "mask"):
        if name in parameters:
            raise ProgramError(f"'{name}' is no number; give it as --{name}")
    if dtype is not None:
        parameters["dtype"] = dtype
    if layout is not None:
        parameters["layout"] = parse_layout(layout)
    if mask is not None:
        parameters["mask"] = parse_mask(mask)
    function = program_function(program)
    try:
        return function(**parameters)
    except MercuryError:
        raise
    except Exception as error:
        raise _failed(f"program '{program}'", program.rpartition(":")[0], error) from error


def text_of(error: MercuryError) -> str:
    """Give an error's text, without a place that is Mercury's own."""
    inside = error.location.startswith(str(Path(__file__).parents[1]))
    return error.message if inside else str(error)


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
                f"your own is my_file.py:my_program{did_you_mean(text, programs.__all__)}"
            )
        found = getattr(programs, text)
    else:
        if not Path(path).is_file():
            raise ProgramError(f"there is no file '{path}' with a program '{name}'")
        sys.path.insert(0, str(Path(path).resolve().parent))  # as python does for a script
        try:
            found = runpy.run_path(path, run_name="__mercury__").get(name)
        except MercuryError:
            raise
        except Exception as error:
            raise _failed(f"'{path}'", path, error) from error
    if not isinstance(found, ProgramFactory):
        raise ProgramError(f"'{name}' of '{path}' is not a function with @mercury.program")
    return found


def _failed(what: str, path: str, error: Exception) -> ProgramError:
    """Say how the user's own Python failed, and on which line of their file."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path
    ]
    return ProgramError(
        f"{what} cannot be run: {type(error).__name__}: {error}",
        location=f"{path}:{lines[-1]}" if lines else "",
    )


def parse_settings(texts: tuple[str, ...]) -> dict[str, int | float]:
    """Read ``sq=4097,sk=4097`` or ``scale=0.5``.

    Raises
    ------
    ProgramError
        When the text is not of that form.
    """
    settings: dict[str, int | float] = {}
    for piece in ",".join(texts).split(","):
        name, _, value = piece.partition("=")
        if not piece:
            continue
        if not name.isidentifier() or not _NUMBER.fullmatch(value):
            raise ProgramError(f"expected settings such as sq=4097,h=8, got '{piece}'")
        if name in settings:
            raise ProgramError(f"'{name}' is set twice")
        settings[name] = int(value) if _WHOLE.fullmatch(value) else float(value)
    return settings


def parse_layout(text: str) -> dict[str, str]:
    """Read ``sq=zigzag,sk=bounds[0, 3, 9]``: how axes are cut, where not into blocks.

    Raises
    ------
    ProgramError
        When the text is not of that form.
    """
    layout: dict[str, str] = {}
    for piece in _COMMA.split(text):
        axis, _, cut = (part.strip() for part in piece.partition("="))
        if not axis.isidentifier() or not cut or axis in layout:
            raise ProgramError(
                "expected the cuts of axes, each once, such as sq=zigzag,sk=zigzag, got "
                f"'{text}'"
            )
        layout[axis] = cut
    return layout


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
