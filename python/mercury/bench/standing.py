"""Candidates that wait for their turns, and the memory that they hold meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .candidate import Prepared
from .measure import trial
from .processes import Processes, Work

__all__ = ["Ready", "Standing"]


@dataclass(frozen=True, kw_only=True)
class Ready:
    """What may have its turns. A graph reads the tensors of `made`, and does not keep them.

    Attributes
    ----------
    work
        One run.
    error
        Of its results.
    graph
        Whether the run is a graph.
    made
        What it reads and writes.
    """

    work: Work
    error: float
    graph: bool
    made: Prepared


class Standing:
    """The candidates that still stand: those worth a turn, in the memory that there is.

    All decide alike on every rank: times are the maximum over the ranks, free memory the
    minimum.

    Parameters
    ----------
    on
        The processes.
    floor
        Is never dropped.
    slow
        What takes so many times the floor leaves at once.
    """

    def __init__(self, on: Processes, floor: Ready, slow: float) -> None:
        self._on, self._slow = on, slow
        self._floor = floor
        self._ready: dict[str, Ready] = {}
        self._tried = {"floor": trial(on, floor.work)}
        self._free, self._largest = on.free_memory(), 0

    @property
    def ready(self) -> Mapping[str, Ready]:
        """Those that stand, by name."""
        return self._ready

    @property
    def works(self) -> Mapping[str, Work]:
        """The floor first, then those that stand."""
        return {
            "floor": self._floor.work,
            **{name: each.work for name, each in self._ready.items()},
        }

    @property
    def tried(self) -> Mapping[str, float]:
        """By name, the time of the shortest of the first runs, in milliseconds."""
        return self._tried

    def admit(self, name: str, ready: Ready) -> str | None:
        """Try a candidate; it stands, or it is closed and the reason is given."""
        self._tried[name] = tried = trial(self._on, ready.work)
        self._largest = max(self._largest, self._free - self._on.free_memory())
        if tried > self._slow * self._tried["floor"]:
            ready.made.close()
            return f"too slow to be measured in turns: {self.beside_the_floor(name)}"
        self._ready[name] = ready
        return None

    def make_room(self) -> Iterator[tuple[str, str]]:
        """Close the slowest until one as large as the largest fits, and half of it again.

        Yields
        ------
        tuple of str
            The name of each that is closed, and the reason. The fastest stays.
        """
        self._free = self._on.free_memory()
        # A run takes more than what it leaves behind: kernels have workspaces of their own.
        while self._free < 1.5 * self._largest and len(self._ready) > 1:
            name = max(self._ready, key=self._tried.__getitem__)
            self._ready.pop(name).made.close()
            self._free = self._on.free_memory()
            yield (
                name,
                "left its place to others, as memory was short, being the slowest then: "
                + self.beside_the_floor(name),
            )

    def close(self) -> None:
        """Let go of all, and of the floor."""
        for each in (*self._ready.values(), self._floor):
            each.made.close()
        self._ready.clear()

    def beside_the_floor(self, name: str) -> str:
        """Say how long a candidate took when it was tried."""
        return f"{self._tried[name]:.3f} ms when tried, the floor {self._tried['floor']:.3f}"
