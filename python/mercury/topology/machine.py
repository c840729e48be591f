"""A machine: its ranks, their memory and kernels, and the links between them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import prod

from ..dsl.mesh import Mesh
from .errors import TopologyError
from .kernels import KernelCurve
from .links import Link

__all__ = ["Machine", "Topology"]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One rank.

    Attributes
    ----------
    name
        Of the device.
    memory
        That a program may use, in bytes.
    copy_rate
        Bytes read and written per second by a copy in its own memory.
    launch
        From the end of a kernel to the start of the next, in seconds.
    join
        From the end of a transfer to the start of a kernel that waits for it, in seconds.
    message_lanes
        ``"one"``: all messages of a rank follow one another. ``"group"``: those of
        different groups of ranks do not.
    kernels
        By the kernel's meaning; ``"*"`` stands for those not listed.
    moves
        For what only moves bytes, points of bytes read and written and their rate, sizes
        increasing: generated kernels by name (``"softmax_merge_all"``, ``"accumulate"``), and
        ``"merge_attention_fwd"`` for merging what a library's kernel made into what there
        is. Those not listed go at ``copy_rate``.
    """

    name: str
    memory: int
    copy_rate: float
    launch: float
    kernels: Mapping[str, KernelCurve]
    join: float = 0.0
    message_lanes: str = "one"
    moves: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    @property
    def fastest_move(self) -> float:
        """Bytes per second that nothing in a rank's own memory exceeds."""
        rates = [rate for points in self.moves.values() for _, rate in points]
        return max(self.copy_rate, *rates) if rates else self.copy_rate

    def kernel(self, name: str) -> KernelCurve:
        """Give the curve of a kernel, or that of kernels not listed."""
        return self.kernels.get(name) or self.kernels["*"]


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A real or imagined machine.

    Attributes
    ----------
    name
        How it is called.
    machine
        One of its ranks; all are alike.
    links
        Outermost (slowest) first.
    sources
        Where the figures come from.
    """

    name: str
    machine: Machine
    links: tuple[Link, ...]
    sources: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of ranks."""
        return prod(link.size for link in self.links)

    @property
    def mesh(self) -> Mesh:
        """The mesh of all ranks; levels of one group are left out."""
        levels = {link.name: link.size for link in self.links if link.size > 1}
        return Mesh(**(levels or {self.links[-1].name: 1}))

    def links_of(self, mesh: Mesh) -> dict[str, Link]:
        """Give the link that each level of a mesh uses, by the level's name.

        Ranks fill the fastest level first, so ``gpu0 = 2, gpu1 = 4`` are both inside a node
        of 8. A level that reaches over a slower link uses that one.

        Raises
        ------
        TopologyError
            When the mesh has more ranks than the machine.

        Examples
        --------
        >>> from mercury.topology import load
        >>> links = load("h100-8x2").links_of(Mesh(node=2, gpu0=2, gpu1=4))
        >>> [link.name for link in links.values()]
        ['node', 'gpu', 'gpu']
        """
        if mesh.size > self.size:
            raise TopologyError(
                f"mesh {mesh} has {mesh.size} ranks, topology '{self.name}' has {self.size}; "
                f"take a mesh such as {self.mesh}"
            )
        # How many ranks are reached without the links slower than each.
        reach: list[int] = []
        for link in reversed(self.links):
            reach.insert(0, link.size * (reach[0] if reach else 1))
        found: dict[str, Link] = {}
        ranks = 1
        for level, size in reversed(mesh.levels):
            ranks *= size
            found[level] = next(
                link
                for link, reached in reversed(list(zip(self.links, reach, strict=True)))
                if ranks <= reached
            )
        return dict(reversed(found.items()))

    def slower(self, level: str, factor: float) -> Topology:
        """Give the machine with a part of the bandwidth of one level.

        Parameters
        ----------
        level
            The name of a link.
        factor
            Of its bandwidth, as 0.5.
        """
        return replace(
            self,
            links=tuple(
                link.slower(factor) if link.name == level else link for link in self.links
            ),
        )

    def with_ranks(self, ranks: int) -> Topology:
        """Give the machine with so many ranks on its fastest level, all else as it was.

        That is another host of the kind where each rank has a port of its own on a switch. What
        collectives of more ranks lose, their curve does not know.

        Examples
        --------
        >>> from mercury.topology import load
        >>> load("h200-2x1").with_ranks(8).mesh
        Mesh(gpu=8)
        """
        *slower, fastest = self.links
        groups = prod(link.size for link in slower)
        if ranks < 1 or ranks % groups:
            raise TopologyError(
                f"topology '{self.name}' has {groups} nodes, which cannot share {ranks} ranks"
            )
        return replace(
            self,
            name=f"{self.name} with {ranks} ranks",
            links=(*slower, replace(fastest, size=ranks // groups)),
        )

    def fingerprint(self) -> str:
        """Give a hash of all figures; names and sources do not count."""
        figures = {
            "machine": asdict(self.machine) | {"name": ""},
            "links": [
                asdict(link) | {"capabilities": sorted(link.capabilities)}
                for link in self.links
            ],
        }
        text = json.dumps(figures, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
