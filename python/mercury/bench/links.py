"""``mercury bench links``: how fast the ranks reach each other, by size."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .cuda import Cuda
from .errors import AbsentError
from .processes import Processes, Work, say
from .statistics import middle

__all__ = ["LinkPoint", "link_table", "measure_links", "time_in_graph"]

_MIB = 1 << 20
SIZES = (1 / 1024, 1 / 16, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
PAIR_MIB = 256.0


@dataclass(frozen=True, kw_only=True)
class LinkPoint:
    """The time of one message.

    Attributes
    ----------
    level
        Of the machine: ``"gpu"`` inside a host, ``"node"`` between hosts.
    transport
        As topologies name it, and the collective's own name.
    ranks
        ``"all"``: every rank of the level at once, both ways; else the pair of group ranks.
    mib
        That a rank receives from one other.
    ms, low, high
        Median time, and its interval of 95 %.
    gb_per_s
        That a rank receives from all others.
    """

    level: str
    transport: str
    ranks: str
    mib: float
    ms: float
    low: float
    high: float
    gb_per_s: float


def time_in_graph(
    on: Processes, work: Callable[[], Any], *, repeat: int, rounds: int
) -> list[float]:
    """Time one of several runs that follow each other in a graph, in milliseconds."""

    def several() -> None:
        for _ in range(repeat):
            work()

    work()
    on.synchronize()
    replay, _ = on.capture(several)
    on.milliseconds(replay, 1)
    return [on.milliseconds(replay, 1) / repeat for _ in range(rounds)]


def levels_of(on: Cuda) -> dict[str, list[list[int]]]:
    """Give the groups of ranks of each level, slowest first.

    Raises
    ------
    AbsentError
        When hosts have different numbers of ranks.
    """
    names: list[Any] = [None] * on.size
    on.dist.all_gather_object(names, socket.gethostname())
    hosts = [
        [r for r, each in enumerate(names) if each == host] for host in dict.fromkeys(names)
    ]
    if len({len(ranks) for ranks in hosts}) > 1:
        raise AbsentError(
            f"hosts must have equal numbers of ranks, got {[len(ranks) for ranks in hosts]}"
        )
    levels = {}
    if len(hosts) > 1:
        levels["node"] = [list(ranks) for ranks in zip(*hosts, strict=True)]
    if len(hosts[0]) > 1:
        levels["gpu"] = hosts
    return levels


def measure_links(
    on: Cuda, *, sizes: Sequence[float] = SIZES, rounds: int = 9, burst_ms: float = 4.0
) -> list[LinkPoint]:
    """Measure every transport of every level of links.

    Raises
    ------
    AbsentError
        When there is no other rank.
    """
    if on.size < 2:
        raise AbsentError(f"links are measured between 2 ranks or more, there is {on.size}")
    points: list[LinkPoint] = []
    for level, groups in levels_of(on).items():
        made = [(ranks, on.dist.new_group(ranks)) for ranks in groups]
        ranks, group = next(each for each in made if on.rank in each[0])
        for link in (_CopyEngine, _Nccl):
            try:
                for transport, who, mib, received, work in link(on, ranks, group).works(sizes):
                    samples = _samples(on, work, rounds, burst_ms)
                    seen = middle(samples)
                    points.append(
                        LinkPoint(
                            level=level,
                            transport=transport,
                            ranks=who,
                            mib=mib,
                            ms=seen.median,
                            low=seen.low,
                            high=seen.high,
                            gb_per_s=received / seen.median / 1e6,
                        )
                    )
                    on.forget()
            except AbsentError as error:
                say(on, f"{level}: {link.name} left out: {error.message}")
    return points


def _samples(on: Cuda, work: Work, rounds: int, burst_ms: float) -> list[float]:
    work()
    once = on.milliseconds(work, 1)
    repeat = max(1, min(32, round(burst_ms / max(once, 1e-3))))
    return time_in_graph(on, work, repeat=repeat, rounds=rounds)


Works = Iterator[tuple[str, str, float, float, Work]]
"""Transport, ranks, MiB of a message, bytes that a rank receives, and the work."""


class _CopyEngine:
    name = "the copy engine"

    def __init__(self, on: Cuda, ranks: Sequence[int], group: Any) -> None:
        from .peer_memory import PeerMemory  # noqa: PLC0415 (its types need this module's)

        self._memory = PeerMemory(on, group, len(ranks))
        self._on, self._count = on, len(ranks)
        self._rank = on.dist.get_rank(group)

    def works(self, sizes: Sequence[float]) -> Works:
        most = int(max(*sizes, PAIR_MIB) * _MIB)
        torch = self._on.torch
        own, target = (
            torch.empty(most, dtype=torch.uint8, device=self._on.device) for _ in range(2)
        )
        sources, targets = self._memory.addresses(own), self._memory.addresses(target)
        following = (self._rank + 1) % self._count
        self._check(own, target, targets[self._rank], sources[following], following)

        def pull(peer: int, size: int) -> Work:
            return lambda: self._memory.copy(targets[self._rank], sources[peer], size)

        def push(peer: int, size: int) -> Work:
            return lambda: self._memory.copy(targets[peer], sources[self._rank], size)

        for transport, make in (("pull", pull), ("push", push)):
            for mib in sizes:
                size = int(mib * _MIB)
                yield transport, "all", mib, size, make(following, size)
            for one in range(self._count):
                for other in range(self._count):
                    if one == other:
                        continue
                    size = int(PAIR_MIB * _MIB)
                    work = make(other, size) if one == self._rank else lambda: None
                    arrow = "<-" if transport == "pull" else "->"
                    yield transport, f"{one}{arrow}{other}", PAIR_MIB, size, work

    def _check(self, own: Any, target: Any, to: int, source: int, peer: int) -> None:
        """See that a peer's bytes do come."""
        own.fill_(self._rank + 1)
        target.zero_()
        self._on.synchronize()
        self._on.agree(None)
        self._memory.copy(to, source, own.numel())
        self._on.synchronize()
        right = bool((target == peer + 1).all())
        wrong = self._on.agree(None if right else f"the memory of rank {peer} does not come")
        if wrong is not None:
            raise AbsentError(wrong)


class _Nccl:
    name = "NCCL"

    def __init__(self, on: Cuda, ranks: Sequence[int], group: Any) -> None:
        self._on, self._ranks, self._group = on, ranks, group
        self._rank, self._count = on.dist.get_rank(group), len(ranks)

    def works(self, sizes: Sequence[float]) -> Works:
        torch, dist, count, group = self._on.torch, self._on.dist, self._count, self._group
        to, source = (self._ranks[(self._rank + step) % count] for step in (1, -1))
        for mib in sizes:
            size = max(16, int(mib * _MIB))
            own = torch.ones(size // 2, dtype=torch.bfloat16, device=self._on.device)
            other = torch.empty_like(own)
            every, all_own = (own.new_ones(count * len(own)) for _ in range(2))

            def exchange(own: Any = own, other: Any = other) -> None:
                for request in dist.batch_isend_irecv(
                    [
                        dist.P2POp(dist.isend, own, to, group=group),
                        dist.P2POp(dist.irecv, other, source, group=group),
                    ]
                ):
                    request.wait()

            def gather(own: Any = own, every: Any = every) -> None:
                dist.all_gather_into_tensor(every, own, group=group)

            def scatter(own: Any = own, every: Any = every) -> None:
                dist.reduce_scatter_tensor(own, every, group=group)

            def change(all_own: Any = all_own, every: Any = every) -> None:
                dist.all_to_all_single(every, all_own, group=group)

            yield "p2p", "all", mib, size, exchange
            for name, work in (
                ("all_gather", gather),
                ("reduce_scatter", scatter),
                ("all_to_all", change),
            ):
                yield name, "all", mib, size * (count - 1), work


def link_table(points: Sequence[LinkPoint]) -> str:
    """Give a Markdown table: a row a size, a column a transport, GB/s of a rank."""
    lines = []
    for level in dict.fromkeys(point.level for point in points):
        of_level = [point for point in points if point.level == level]
        columns = list(dict.fromkeys(p.transport for p in of_level if p.ranks == "all"))
        lines += [f"| {level}, MiB | " + " | ".join(columns) + " |"]
        lines += ["|" + " --- |" * (len(columns) + 1)]
        at = {(p.mib, p.transport): p for p in of_level if p.ranks == "all"}
        for mib in sorted({mib for mib, _ in at}):
            cells = [_rate(at.get((mib, column))) for column in columns]
            lines.append(f"| {mib:.4g} | " + " | ".join(cells) + " |")
        pairs = [point for point in of_level if point.ranks != "all"]
        for point in pairs:
            lines.append(
                f"{level} {point.transport} {point.ranks} alone, {point.mib:g} MiB: "
                f"{point.gb_per_s:.0f} GB/s"
            )
    return "\n".join(lines)


def _rate(point: LinkPoint | None) -> str:
    return "-" if point is None else f"{point.gb_per_s:.1f} ({1000 * point.ms:.0f} us)"
