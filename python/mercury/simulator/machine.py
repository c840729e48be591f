"""A topology as the simulator reads it, for one mesh."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..dsl.mesh import Mesh
from ..topology import Curve, KernelCurve, Link, Topology

__all__ = ["to_json"]


def to_json(topology: Topology, mesh: Mesh) -> str:
    """Give the figures of a topology, with the link that each level of a mesh uses.

    Parameters
    ----------
    topology
        The machine; each of its links reaches ranks that follow one another.
    mesh
        Whose ranks fill the fastest link first.

    Raises
    ------
    TopologyError
        When the mesh has more ranks than the machine.
    """
    return _cached(_Key(topology), mesh)


class _Key:
    """A topology by identity: it holds dictionaries, and so has no hash."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    def __hash__(self) -> int:
        return id(self.topology)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.topology is other.topology


@lru_cache(maxsize=64)
def _cached(key: _Key, mesh: Mesh) -> str:
    topology = key.topology
    used = topology.links_of(mesh)
    names = [link.name for link in topology.links]
    links = []
    reach = 1
    for link in reversed(topology.links):
        unit, reach = reach, reach * link.size
        links.append(
            {
                "name": link.name,
                "domain": link.domain,
                "duplex": link.duplex,
                "unit": unit,
                "reach": reach,
                "signal": link.signal,
                "transports": {
                    transport: _link(curve) for transport, curve in _transports(link).items()
                },
            }
        )
    machine = topology.machine
    return json.dumps(
        {
            "copy_rate": machine.copy_rate,
            "launch": machine.launch,
            "join": machine.join,
            "lane_for_each_group": machine.message_lanes == "group",
            "kernels": {name: _kernel(curve) for name, curve in machine.kernels.items()},
            "moves": machine.moves,
            "links": links[::-1],
            "levels": [names.index(used[level].name) for level in mesh],
        }
    )


def _transports(link: Link) -> Mapping[str, Curve]:
    """Give the curves of a link: a put of which none is known takes the time of a message."""
    known = link.transports
    return {"rma": known["p2p"], **known} if "one-sided" in link.capabilities else known


def _link(curve: Curve) -> dict[str, Any]:
    return {"latency": curve.latency, "points": curve.points, "slowdown": curve.slowdown}


def _kernel(curve: KernelCurve) -> dict[str, Any]:
    return {
        "points": curve.points,
        "block": curve.block,
        "units": curve.units,
        "overhead": curve.overhead,
        "edge": curve.edge,
    }
