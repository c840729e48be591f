"""A lower bound of a plan's simulated time, from curves alone and before it is lowered.

Whatever the simulator adds - launch gaps, late ranks, kernels that messages slow, waits of one
step for the one before - only makes a plan slower than this. It knows:

- the kernels and merges of the fullest rank, which follow one another;
- the messages of a rank, which follow one another in a lane;
- the wires, over which all bytes go, those of other ranks included where they share one;
- what is gathered before the loops and merged after them, meanwhile no kernel runs.

Where a plan may do with less than the rules say, nothing is counted: a ring under a mask
leaves out parts, what is laid out anew over several levels may go in one exchange, and of an
axis that is spread over other levels too a rank needs a part only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ..dsl.nodes import Kernel
from ..topology import Curve, Link, Topology
from .costs import PlanCosts
from .lower import Lowered
from .placed import Placed
from .space import Candidate
from .traffic import Transfer, transfers
from .work import is_masked, least_compute_seconds

__all__ = ["LowerBound"]


@dataclass(frozen=True, kw_only=True)
class _Time:
    """What a transfer takes at least: of its lane, and of the fullest wire."""

    lane: float
    wire: float


class LowerBound:
    """The analytical bound as a cost model; see this module."""

    name = "bound-2"
    measured = False

    def __call__(self, lowered: Lowered, topology: Topology) -> PlanCosts:
        """Give the bound of a lowered plan."""
        return self.of(lowered.candidate, topology)

    def of(self, candidate: Candidate, topology: Topology) -> PlanCosts:
        """Give the bound of a schedule."""
        placed = candidate.placed
        links = topology.links_of(candidate.schedule.mesh)
        compute = least_compute_seconds(candidate, topology.machine)
        one_lane = topology.machine.message_lanes == "one"
        lanes: defaultdict[str, float] = defaultdict(float)
        before: defaultdict[str, float] = defaultdict(float)
        wires = dict.fromkeys((link.name for link in links.values()), 0.0)
        for least in _least_transfers(candidate):
            each, link = least.transfer, links[least.transfer.level]
            time = _least_seconds(each, link, _Sharing.of(placed, links, least))
            # Pulls have lanes of their own, and are counted by their wires alone.
            lane = "" if one_lane else each.level
            wires[link.name] += time.wire
            if each.transport == "pull":
                continue
            lanes[lane] += time.lane
            if not each.hidden:
                before[lane] += time.lane
        latency = max(
            compute + max(before.values(), default=0.0), *lanes.values(), *wires.values()
        )
        moved = dict.fromkeys((level for level, _ in placed.levels), 0.0)
        for each in transfers(candidate):
            moved[each.level] += each.bytes
        return PlanCosts(
            latency=latency,
            compute=compute,
            exposed=latency - compute,
            bytes_by_level={level: round(size) for level, size in moved.items()},
            seconds_by_link=wires,
            error=0.0,
        )


@dataclass(frozen=True, kw_only=True)
class _Least:
    """A transfer, and the ranks of faster levels that may relay it to each other."""

    transfer: Transfer
    relays: int


def _least_transfers(candidate: Candidate) -> list[_Least]:
    """Give the transfers that the plan cannot do without."""
    placed = candidate.placed
    found = transfers(candidate, smallest=True)
    levels: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for each in found:
        levels[each.rule, each.buffer].append(each.level)
    masked = any(
        isinstance(op, Kernel) and is_masked(op)
        for nest in candidate.schedule.program.nests
        for op in nest.ops
    )
    kept = []
    for each in found:
        several = levels[each.rule, each.buffer]
        if masked and each.rule in ("R3", "R6"):
            continue
        if each.rule in ("R6", "R7") and len(set(several)) > 1:
            continue
        if each.rule == "R2" and _needs_a_part(placed, each):
            continue
        names = [name for name, _ in placed.levels]
        faster = [name for name in set(several) if names.index(name) > names.index(each.level)]
        kept.append(_Least(transfer=each, relays=prod(map(placed.size, faster))))
    return kept


def _needs_a_part(placed: Placed, gather: Transfer) -> bool:
    """Whether the axis that is gathered is spread over levels that its cut does not have."""
    for cut in placed.inside[gather.buffer]:
        if gather.level not in cut.levels:
            continue
        for loop in (loop for nest in placed.nests for loop in nest):
            if cut.axis in loop.axes and not set(loop.levels) <= set(cut.levels):
                return True
    return False


@dataclass(frozen=True, kw_only=True)
class _Sharing:
    """Whose messages go over a wire together with those of a rank.

    Attributes
    ----------
    ranks
        That use the wire with messages of the same size, of the same level.
    size
        Of the level.
    share
        Of the bytes, the part that goes over the wire of each rank.
    """

    ranks: int
    size: int
    share: float

    @classmethod
    def of(cls, placed: Placed, links: Mapping[str, Link], least: _Least) -> _Sharing:
        level = least.transfer.level
        link = links[level]
        names = [name for name, _ in placed.levels]
        ranks = 1
        if link.domain == "uplink":
            ranks = prod(
                placed.size(name)
                for name in names[names.index(level) + 1 :]
                if links[name].name != link.name
            )
        elif link.domain == "bus":
            ranks = prod(placed.size(name) for name in names if links[name].name == link.name)
        # Members that are reached over faster levels relay what came once for them all.
        share = 1.0 if link.domain == "bus" else 1 / least.relays
        return cls(ranks=ranks, size=placed.size(level), share=share)


def _least_seconds(transfer: Transfer, link: Link, sharing: _Sharing) -> _Time:
    """Give the time of all messages of a transfer, by the fastest way that it may go."""
    ranks, both = sharing.ranks, 1 if link.duplex or link.domain == "bus" else 2
    if transfer.transport in ("p2p", "pull"):
        curve = link.transports.get(transfer.transport) or link.curve("p2p")
        return _messages(transfer, curve, ranks * both)
    # A collective may be one, or messages; of several levels only the last one is sure.
    curves = [link.curve(name) for name in ("p2p", "collective")]
    apart = [_messages(transfer, curve, ranks * both) for curve in curves]
    groups, size = ranks * both, transfer.bytes * sharing.share
    if link.domain == "bus":
        groups, size = ranks // sharing.size, transfer.bytes * sharing.size
    apart += [
        _Time(lane=curve.seconds(size), wire=groups * _flow(curve, size)) for curve in curves
    ]
    return _Time(lane=min(t.lane for t in apart), wire=min(t.wire for t in apart))


def _messages(transfer: Transfer, curve: Curve, sharers: int) -> _Time:
    lane = transfer.count * curve.seconds(transfer.size)
    flow = transfer.count * _flow(curve, transfer.size)
    # Pieces may be uneven, so only the bytes are sure.
    lane = min(lane, transfer.bytes / max(rate for _, rate in curve.points))
    return _Time(lane=lane, wire=sharers * min(flow, _slope(curve) * transfer.bytes))


def _flow(curve: Curve, size: float) -> float:
    """Give the time of a message without its latency, in which its wire is shared."""
    return max(0.0, curve.seconds(size) - curve.latency)


def _slope(curve: Curve) -> float:
    """Give the least time of a byte, latency aside, in messages of any size."""
    at = [_flow(curve, size) / size for size, _ in curve.points]
    return min(*at, 1 / curve.points[-1][1])
