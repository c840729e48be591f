"""What a schedule needs of the machine, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..topology import Link
from .placed import Placed

__all__ = ["Need", "missing", "needs"]


@dataclass(frozen=True, kw_only=True)
class Need:
    """Something that a level must offer.

    Attributes
    ----------
    level
        Of the mesh.
    transport
        That moves data over it.
    capabilities
        That it takes.
    """

    level: str
    transport: str
    capabilities: frozenset[str] = frozenset()

    def lacks(self, link: Link) -> str:
        """Say what a link lacks; empty when nothing."""
        lacking = sorted(self.capabilities - link.capabilities)
        if self.transport not in link.transports:
            lacking.insert(0, f"transport '{self.transport}'")
        return f"level '{self.level}' has no {' and no '.join(lacking)}" if lacking else ""


def needs(placed: Placed) -> list[Need]:
    """Give what a schedule needs beside plain messages and collectives, which all have.

    Reading a peer's memory takes peer access and a copy engine. Results are delivered by
    messages; nothing takes multicast yet.
    """
    found: dict[Need, None] = {}
    taken = frozenset({"peer-access", "copy-engine"})
    for nest in placed.nests:
        if placed.slices(nest) is not None:
            found |= dict.fromkeys(
                Need(level=level, transport="pull", capabilities=taken)
                for buffer in placed.inside
                for level in placed.exchanged(buffer)
            )
        for loop in nest:
            if loop.shift is None:
                continue
            for buffer, levels in placed.moved(loop).items():
                read = buffer in placed.inputs
                way = loop.shift.reads if read else loop.shift.results
                if way not in ("pull", "fetch"):
                    continue
                for level in levels:
                    need = Need(
                        level=level,
                        transport="pull",
                        capabilities=taken,
                    )
                    found[need] = None
    return list(found)


def missing(placed: Placed, links: Mapping[str, Link]) -> str:
    """Say what a machine lacks for a schedule; empty when nothing."""
    for need in needs(placed):
        if reason := need.lacks(links[need.level]):
            return reason
    return ""
