"""A way to do the work of a workload: a floor, a plan of ours, or a peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .processes import Processes, Work

__all__ = ["Candidate", "Prepared", "Problem"]

Held = Mapping[str, Sequence[Any]]
"""For each output, the global indices that a rank holds, a sequence a dimension."""


class Problem(Protocol):
    """The data of a workload, and what is right."""

    def error(self, results: Mapping[str, Any], held: Held) -> float:
        """Give the error of this rank's results against float64, of samples of them."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A candidate that is ready to run.

    Attributes
    ----------
    run
        One run in the current stream; gives its outputs by name.
    held
        What part of the outputs this rank has.
    graph
        A run as a graph, when the candidate makes its own; its outputs are those that the
        last `run` gave.
    capturable
        Whether a graph may be made of `run`.
    close
        Lets go of what was made.
    """

    run: Callable[[], Mapping[str, Any]]
    held: Held
    graph: Work | None = None
    capturable: bool = True
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A way to do the work.

    Attributes
    ----------
    name
        Short, and of no other candidate.
    prepare
        Makes it ready for a problem, or raises `AbsentError` saying what is missing.
    """

    name: str
    prepare: Callable[[Any, Processes], Prepared]
