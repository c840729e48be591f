"""Links: how long a message takes on one level of a machine."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .errors import TopologyError

__all__ = ["CAPABILITIES", "DOMAINS", "TRANSPORTS", "Curve", "Link"]

TRANSPORTS = {
    "p2p": "send and receive",
    "collective": "gathers, reductions, all-to-all",
    "pull": "the copy engine reads a peer's memory",
    "push": "the copy engine writes a peer's memory",
    "rma": "one-sided put and signal",
}
CAPABILITIES = {
    "peer-access": "a rank maps and reads the memory of its peers",
    "copy-engine": "copies run beside kernels and take no multiprocessor",
    "one-sided": "a rank writes to a peer that does not take part",
    "multicast": "the switch writes to, or sums over, many ranks at once",
}
DOMAINS = {
    "port": "each rank has a link of its own",
    "uplink": "the ranks of one group of the next faster level share one link",
    "bus": "all ranks of the level share one link, both ways",
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Time by message size, as points of a measurement.

    Between points the *time* is linear in the size, so it never falls as a message grows.
    Below the first point it goes to the latency, beyond the last the bandwidth stays.

    Attributes
    ----------
    latency
        Of a message of no bytes, in seconds.
    points
        Bytes and bytes per second, sizes increasing; at least one.
    slowdown
        Of each kernel that runs beside such a transfer, the part of its speed that it
        loses: messages are kernels themselves, copy engines are not.

    Examples
    --------
    >>> curve = Curve(latency=1e-5, points=((1_000_000, 1e10), (4_000_000, 2e10)))
    >>> [round(1e6 * curve.seconds(size)) for size in (0, 1_000_000, 4_000_000, 8_000_000)]
    [10, 100, 200, 400]
    """

    latency: float
    points: tuple[tuple[float, float], ...]
    slowdown: float = 0.0

    def seconds(self, size: float) -> float:
        """Give the time of a message of so many bytes."""
        sizes = [at for at, _ in self.points]
        times = [at / rate for at, rate in self.points]
        if size >= sizes[-1]:
            return max(size / self.points[-1][1], self.latency)
        upper = bisect_left(sizes, size)
        left_size, left_time = (
            (sizes[upper - 1], times[upper - 1]) if upper else (0.0, self.latency)
        )
        share = (size - left_size) / (sizes[upper] - left_size)
        return max(left_time + share * (times[upper] - left_time), self.latency)

    def bandwidth(self, size: float) -> float:
        """Give the bytes per second of a message of so many bytes."""
        return size / self.seconds(size) if size else 0.0

    def slower(self, factor: float) -> Curve:
        """Give the curve of a link with a part of the bandwidth; its latency stays.

        Parameters
        ----------
        factor
            Of the bandwidth, as 0.5.
        """
        return replace(self, points=tuple((at, rate * factor) for at, rate in self.points))


@dataclass(frozen=True, kw_only=True)
class Link:
    """What connects the groups of one level.

    Attributes
    ----------
    name
        Of the level.
    size
        How many groups of the next faster level it connects.
    transports
        A curve for each transport that works on the link, one direction of one rank.
    domain
        Who shares the link: ``"port"``, ``"uplink"`` or ``"bus"``.
    duplex
        Whether both directions have the whole bandwidth at once.
    capabilities
        What the link can do beyond messages; see `CAPABILITIES`.
    error
        A measurement may be off by so much of the time, as 0.1.
    signal
        From a signal of one rank until another one sees it, in seconds.
    """

    name: str
    size: int
    transports: Mapping[str, Curve]
    domain: str = "port"
    duplex: bool = True
    capabilities: frozenset[str] = frozenset()
    error: float = 0.25
    signal: float = 0.0

    def curve(self, transport: str) -> Curve:
        """Give the curve of a transport.

        Raises
        ------
        TopologyError
            When it does not work on the link.
        """
        if transport not in self.transports:
            raise TopologyError(
                f"level '{self.name}' has no transport '{transport}'; it has "
                f"{', '.join(self.transports)}"
            )
        return self.transports[transport]

    def slower(self, factor: float) -> Link:
        """Give the link with a part of its bandwidth; see `Curve.slower`."""
        curves = {name: curve.slower(factor) for name, curve in self.transports.items()}
        return replace(self, transports=curves)
