"""The simulator as the tuner's cost model."""

from __future__ import annotations

from ..dsl.nodes import Kernel
from ..topology import Topology
from .costs import PlanCosts
from .lower import Lowered

__all__ = ["Simulated"]


class Simulated:
    """Costs by simulation of the lowered plan; see `mercury.simulate`."""

    name = "simulation-1"
    measured = False

    def __call__(self, lowered: Lowered, topology: Topology) -> PlanCosts:
        """Simulate a lowered plan."""
        found = lowered.workload.on(topology)
        schedule = lowered.candidate.schedule
        kernels = {
            op.name
            for nest in schedule.program.nests
            for op in nest.ops
            if isinstance(op, Kernel)
        }
        off = max((topology.machine.kernel(name).error for name in kernels), default=0.0)
        links = topology.links_of(schedule.mesh).values()
        link_off = max(link.error for link in links)
        error = off * found.compute_s + link_off * found.exposed_s
        return PlanCosts(
            latency=found.time_s,
            compute=found.compute_s,
            exposed=found.exposed_s,
            bytes_by_level={
                level: sent // schedule.mesh.size
                for level, sent in found.bytes_by_level.items()
            },
            seconds_by_link={
                name: found.link_seconds[name]
                for name in dict.fromkeys(link.name for link in links)
            },
            error=min(1.0, error / found.time_s) if found.time_s else 0.0,
        )
