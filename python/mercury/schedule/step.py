"""One step of a schedule as text of the transform dialect."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Step", "names"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A transform: its op, and what stands between its name and ``in %program``.

    Attributes
    ----------
    op
        ``"parallelize"`` for ``transform.commir.parallelize``.
    operands
        The text of its operands.
    """

    op: str
    operands: str

    def __str__(self) -> str:
        return f"transform.commir.{self.op} {self.operands} in %program : !transform.any_op"


def quote(name: str) -> str:
    """Write a name as a string of MLIR."""
    return json.dumps(name)


def names(values: str | Sequence[str]) -> str:
    """Write one or several names as a list of strings."""
    several = [values] if isinstance(values, str) else values
    return "[" + ", ".join(quote(value) for value in several) + "]"


def tile(loop: str, into: int | str, names_: tuple[str, str] | None) -> Step:
    """Cut a loop into parts."""
    text = f"{quote(loop)} into {into if isinstance(into, int) else quote(into)}"
    return Step(op="tile", operands=text + (f" as {names(names_)}" if names_ else ""))


def shift(
    loop: str,
    by: str | Sequence[str],
    *,
    over: str | Sequence[str] | None,
    direction: int,
    offset: int,
    reads: str,
    results: str,
    via: Mapping[str, str] | None,
    chunks: int,
    link: str | None,
) -> Step:
    """Stagger a loop; defaults are left out."""
    text = f"{quote(loop)} by {names(by)}"
    if over is not None:
        text += f" over {names(over)}"
    if direction != 1:
        text += f" direction {direction}"
    if offset:
        text += f" offset {offset}"
    if reads != "rotate":
        text += f" reads {reads}"
    if results != "travel":
        text += f" results {results}"
    if via:
        # As the dialect prints a dictionary: keys bare where they can be.
        keys = {key: key if key.isidentifier() else quote(key) for key in via}
        entries = ", ".join(f"{keys[key]} = {quote(via[key])}" for key in sorted(via))
        text += f" via {{{entries}}}"
    if chunks != 1:
        text += f" chunks {chunks}"
    if link is not None:
        text += f" link {link}"
    return Step(op="shift", operands=text)


def split_level(level: str, into: Mapping[str, int]) -> Step:
    """See one level as several."""
    parts = ", ".join(f"{name} = {size}" for name, size in into.items())
    return Step(op="split_level", operands=f"{quote(level)} into ({parts})")
