"""What a simulation found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..dsl.mesh import Mesh

__all__ = ["Simulation", "Span"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Something that a rank does for a while.

    Attributes
    ----------
    rank
        Of the mesh.
    lane
        ``"compute"``, ``"compute 1"`` for another lane of kernels, ``"messages"`` (with the
        group where each has a lane), or ``"pulls from 3"``.
    name
        The kernel, or what is done with which buffer, as ``"exchange K"``.
    kind
        ``"kernel"``, ``"copy"`` (in the rank's own memory), ``"transfer"`` or ``"wait"``.
    start_s, end_s
        From the start of the plan, in seconds. A transfer begins when its lane comes to it,
        and may wait for its peer first.
    bytes
        That this rank sends or pulls, or that a copy reads and writes.
    step
        The index of the innermost loop around it; None outside of loops.
    """

    rank: int
    lane: str
    name: str
    kind: str
    start_s: float
    end_s: float
    bytes: int
    step: int | None


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The *predicted* time of a plan on a machine.

    Attributes
    ----------
    mesh, topology
        The ranks, and the name of the machine.
    time_s
        Until the last rank is done.
    compute_s
        The kernels and local copies of the busiest rank, with nothing beside them.
    exposed_s
        The rest: what communication adds, and waiting for slower ranks.
    bytes_by_level
        What all ranks send over each level of the mesh, as a run counts it.
    link_seconds
        How long the busiest wire of each link of the machine is in use.
    peak_bytes
        Memory of each rank: its shards of the buffers and the plan's arenas.
    """

    mesh: Mesh
    topology: str
    time_s: float
    compute_s: float
    exposed_s: float
    bytes_by_level: Mapping[str, int]
    link_seconds: Mapping[str, float]
    peak_bytes: Sequence[int]
    _record: Callable[[], list[Span]] = field(repr=False, compare=False)

    @cached_property
    def spans(self) -> list[Span]:
        """All that ranks do, by time; made when asked for, by the same simulation again."""
        return sorted(self._record(), key=lambda span: (span.start_s, span.rank, span.lane))

    def to_json(self) -> dict[str, Any]:
        """Give the figures as plain values, without spans."""
        return {
            "mesh": dict(self.mesh.levels),
            "topology": self.topology,
            "predicted": True,
            "time_s": self.time_s,
            "compute_s": self.compute_s,
            "exposed_s": self.exposed_s,
            "bytes_by_level": dict(self.bytes_by_level),
            "link_seconds": dict(self.link_seconds),
            "peak_bytes": list(self.peak_bytes),
        }
