"""The processes that measure together, and what a measurement asks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Processes", "Work", "say"]

Work = Callable[[], object]
"""Puts one run into the current stream and returns."""


class Processes(Protocol):
    """One process for each rank.

    Every method that speaks of all ranks is called by all of them, in the same order; what it
    gives is the same on each, so that all decide alike.

    Attributes
    ----------
    torch
        PyTorch.
    rank, size
        Of this process, and how many there are.
    device
        That tensors live on, as PyTorch names it.
    name
        Of the device, as its maker calls it.
    """

    torch: Any
    rank: int
    size: int
    device: str
    name: str

    def maximum(self, value: float) -> float:
        """Give the largest value of all ranks; not a number counts as infinite."""

    def agree(self, message: str | None) -> str | None:
        """Give the first message of any rank, naming it, or None when there is none."""

    def seconds(self) -> float:
        """Give the time on a clock that all ranks share."""

    def milliseconds(self, work: Work, times: int) -> float:
        """Give the time of one run, of several in a row: the maximum over the ranks."""

    def capture(self, work: Callable[[], Any]) -> tuple[Work, Any]:
        """Make a graph of a run that has run before; give its replay and what it returned."""

    def free_memory(self) -> int:
        """Give back what no one holds, and give the bytes free on the fullest device."""

    def synchronize(self) -> None:
        """Wait until the device of this rank has nothing to do."""


def say(on: Processes, text: str) -> None:
    """Tell the user, once for all ranks."""
    if on.rank == 0:
        print(text, flush=True)


def exchange_messages(messages: Sequence[str | None]) -> str | None:
    """Give what some rank says, and which; None when none says anything.

    Examples
    --------
    >>> exchange_messages([None, "no memory", None])
    'rank 1: no memory'
    >>> exchange_messages(["not there", "not there"])
    'not there'
    """
    if len(set(messages)) == 1:
        return messages[0]
    return next(
        (f"rank {rank}: {text}" for rank, text in enumerate(messages) if text is not None), None
    )
