"""What a plan costs, and whoever says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..topology import Topology
from .lower import Lowered

__all__ = ["CostModel", "PlanCosts"]


@dataclass(frozen=True, kw_only=True)
class PlanCosts:
    """The cost of a plan on a machine, in seconds and bytes.

    Attributes
    ----------
    latency
        Of one run: the slowest rank.
    compute
        Of its kernels, with nothing else in their way.
    exposed
        Communication that no kernel hides, and waiting for slower ranks.
    bytes_by_level
        That a rank receives over each level of the mesh, on average.
    seconds_by_link
        That the busiest part of each link of the topology is in use.
    error
        The latency may be off by so much, as 0.1.
    """

    latency: float
    compute: float
    exposed: float
    bytes_by_level: Mapping[str, int]
    seconds_by_link: Mapping[str, float]
    error: float

    def to_json(self) -> dict[str, Any]:
        """Give the costs as plain values."""
        return {
            "latency": self.latency,
            "compute": self.compute,
            "exposed": self.exposed,
            "bytes_by_level": dict(self.bytes_by_level),
            "seconds_by_link": dict(self.seconds_by_link),
            "error": self.error,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlanCosts:
        """Read what `to_json` gave."""
        return cls(**value)


class CostModel(Protocol):
    """Says what a plan costs: a bound, a simulation, or a measurement.

    Attributes
    ----------
    name
        Of the model; part of the key of a search.
    measured
        Whether the costs were measured. What is not is shown as *predicted*.
    """

    name: str
    measured: bool

    def __call__(self, lowered: Lowered, topology: Topology) -> PlanCosts:
        """Give the cost of a lowered plan on a machine."""
