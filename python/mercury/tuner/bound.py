"""A lower bound of a plan's time, from curves alone.

What it knows: the time of each kernel by its shape, the bytes that each rule moves over each
level, the curves of links, who shares a link, and which transfers the work of a loop can
hide. What it assumes, and a simulation or a measurement need not:

- hidden transfers hide perfectly: a loop takes the longer of its work and its traffic, and
  every step of a ring is alike, whatever a mask leaves of it;
- transfers that are not hidden follow one another, and nothing else waits: no launch gaps
  between streams, no order between ranks, no late rank;
- a kernel is not slower while data moves, and the largest shard is everywhere;
- a ring relays all its parts, even those that a mask leaves unused.

So plans that lose by small steps, by a slow rank or by contention inside a kernel look
better than they are. The order of plans is worth more than the figures, and the *error* of
the topology's curves stands beside each.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

from ..topology import Link, Topology
from .costs import PlanCosts
from .lower import Lowered
from .placed import Placed
from .traffic import Transfer, transfers
from .work import compute_seconds

__all__ = ["LowerBound"]

_MERGING = ("R4", "R5", "R6")


class LowerBound:
    """The analytical bound as a cost model; see this module."""

    name = "bound-1"
    measured = False

    def __call__(self, lowered: Lowered, topology: Topology) -> PlanCosts:
        """Give the bound of a lowered plan."""
        candidate = lowered.candidate
        placed = candidate.placed
        links = topology.links_of(candidate.schedule.mesh)
        compute, off = compute_seconds(candidate, topology.machine)
        hidden: defaultdict[str, float] = defaultdict(float)
        open_: defaultdict[str, float] = defaultdict(float)
        sizes: defaultdict[str, float] = defaultdict(float)
        worst = off * compute
        for each in transfers(candidate):
            link = links[each.level]
            seconds = _seconds(each, link, _sharers(placed, links, each.level))
            (hidden if each.hidden else open_)[link.name] += seconds
            sizes[each.level] += each.bytes
            worst += seconds * link.error
            if each.rule in _MERGING:
                # Both parts are read and the merged one is written, by one kernel.
                merge = 3 * each.size / topology.machine.copy_rate + topology.machine.launch
                compute += each.count * merge
        # Levels of one link share it, those of different links run side by side.
        traffic = max(hidden.values(), default=0.0)
        latency = max(compute, traffic) + sum(open_.values())
        return PlanCosts(
            latency=latency,
            compute=compute,
            exposed=latency - compute,
            bytes_by_level={level: round(sizes[level]) for level, _ in placed.levels},
            seconds_by_link={
                name: hidden[name] + open_[name]
                for name in dict.fromkeys(link.name for link in links.values())
            },
            error=min(1.0, worst / latency) if latency else 0.0,
        )


def _seconds(transfer: Transfer, link: Link, sharers: int) -> float:
    """Give the time of all messages of a transfer."""
    transport = transfer.transport
    if transport not in link.transports:
        # What a link does not offer is removed before; the slowest way bounds it still.
        transport = "p2p"
    ways = 1 if link.duplex else 2
    return transfer.count * link.curve(transport).seconds(transfer.size * sharers * ways)


def _sharers(placed: Placed, links: dict[str, Link], level: str) -> int:
    """Give the ranks that use one link of a level at the same time."""
    link = links[level]
    if link.domain == "port":
        return 1
    names = [name for name, _ in placed.levels]
    if link.domain == "uplink":
        return prod(
            placed.size(name)
            for name in names[names.index(level) + 1 :]
            if links[name].name != link.name
        )
    return prod(placed.size(name) for name in names if links[name].name == link.name)
