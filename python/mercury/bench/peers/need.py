"""What a peer needs, and how its absence is told."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import AbsentError
from ..processes import Processes
from ..workload import Attention

__all__ = ["need_even_rows", "need_forward", "need_module", "need_ranks"]


def need_module(name: str, remedy: str) -> Any:
    """Import a module of an optional package.

    Raises
    ------
    AbsentError
        When it is not there, or does not import.
    """
    try:
        return importlib.import_module(name)
    except Exception as error:  # a package of others may fail in any way
        raise AbsentError(f"{name} cannot be imported ({error}); {remedy}") from error


def need_ranks(on: Processes) -> Any:
    """Give ``torch.distributed``, where there is someone to talk to."""
    if on.size < 2:
        raise AbsentError(f"it needs 2 ranks or more, there is {on.size}")
    return need_module("torch.distributed", "install torch")


def need_forward(workload: Attention, instead: str) -> None:
    """Refuse gradients."""
    if workload.backward:
        raise AbsentError(f"it is written for the forward pass; {instead}")


def need_even_rows(workload: Attention, parts: int) -> None:
    """Refuse lengths that parts do not divide."""
    if workload.rows % parts:
        raise AbsentError(
            f"it needs {parts} equal parts of the rows, and {parts} does not divide "
            f"{workload.rows}"
        )
