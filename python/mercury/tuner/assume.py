"""What a plan assumes of the machine, and which plan is safe where that does not hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..topology import Link
from .agree import Vote, agree_on_all
from .quantity import TuneError, format_bytes, format_seconds

if TYPE_CHECKING:
    from .result import Choice

__all__ = ["Assumptions", "LinkSpeed", "Observed", "Selection", "TuneWarning", "select"]


class TuneWarning(UserWarning):
    """A plan is not run as it was chosen, because the machine is not as assumed."""


@dataclass(frozen=True, kw_only=True)
class LinkSpeed:
    """How fast a link is taken to be.

    Attributes
    ----------
    name
        Of the link in the topology.
    bandwidth
        Of a large message between two ranks, in bytes per second.
    error
        Its time may be longer by so much, as 0.25.
    """

    name: str
    bandwidth: float
    error: float

    @classmethod
    def of(cls, link: Link) -> LinkSpeed:
        """Read it off a link of a topology."""
        _, bandwidth = link.curve("p2p").points[-1]
        return cls(name=link.name, bandwidth=bandwidth, error=link.error)

    def __str__(self) -> str:
        return f"{self.bandwidth / 1e9:.3g} GB/s, {self.slowest / 1e9:.3g} at the least"

    @property
    def slowest(self) -> float:
        """The bandwidth at the end of the error range."""
        return self.bandwidth / (1 + self.error)

    def slowdown(self, measured: float | None) -> float:
        """Say how often the assumed time a message takes; 1 within the error range.

        Examples
        --------
        >>> link = LinkSpeed(name="node", bandwidth=12e9, error=0.25)
        >>> link.slowdown(10e9), link.slowdown(6e9), link.slowdown(None)
        (1.0, 2.0, 1.0)
        """
        late = measured is not None and measured < self.slowest
        return self.bandwidth / measured if measured and late else 1.0


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What must hold for a plan to run as the search says.

    Attributes
    ----------
    free_bytes
        Memory that each rank must have free.
    links
        The links that it sends over.
    """

    free_bytes: int
    links: tuple[LinkSpeed, ...]

    @classmethod
    def of(cls, choice: Choice, links: Iterable[LinkSpeed]) -> Assumptions:
        """Give those of a plan on a machine with some links."""
        used = choice.costs.seconds_by_link
        return cls(
            free_bytes=choice.peak_bytes,
            links=tuple(link for link in links if used.get(link.name, 0) > 0),
        )

    def __str__(self) -> str:
        links = [f"link '{link.name}' of {link}" for link in self.links]
        return "; ".join(
            [f"{format_bytes(self.free_bytes)} of free memory on each rank", *links]
        )

    def to_json(self) -> dict[str, Any]:
        """Give them as plain values."""
        return {"free_bytes": self.free_bytes, "links": [asdict(link) for link in self.links]}

    def unmet(self, observed: Observed) -> list[str]:
        """Say which ones do not hold on a machine as it was found."""
        said = []
        if observed.free_bytes is not None and observed.free_bytes < self.free_bytes:
            said.append(
                f"{format_bytes(observed.free_bytes)} of memory are free, it needs "
                f"{format_bytes(self.free_bytes)}"
            )
        for link in self.links:
            measured = observed.bandwidths.get(link.name)
            if measured is not None and measured < link.slowest:
                said.append(
                    f"link '{link.name}' was measured at {measured / 1e9:.3g} GB/s, assumed is "
                    f"{link}"
                )
        return said


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What a machine was found to be when a plan is about to run.

    Attributes
    ----------
    free_bytes
        Memory that is free on this rank, as ``torch.cuda.mem_get_info()[0]``; None when not
        known.
    bandwidths
        Of links, measured with large messages, in bytes per second.

    Raises
    ------
    TuneError
        When a figure is below zero.
    """

    free_bytes: int | None = None
    bandwidths: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot have been measured."""
        figures = [*self.bandwidths.values(), *([self.free_bytes] if self.free_bytes else [])]
        if any(figure <= 0 for figure in figures):
            raise TuneError(f"what was observed must be above zero, got {self}")

    def agreed(self, vote: Vote) -> Observed:
        """Give the worst of what all ranks found, the same on each."""
        found = [json.loads(text) for text in agree_on_all(json.dumps(asdict(self)), vote)]
        free = [each["free_bytes"] for each in found if each["free_bytes"] is not None]
        names = {name for each in found for name in each["bandwidths"]}
        return Observed(
            free_bytes=min(free, default=None),
            bandwidths={
                name: min(
                    each["bandwidths"][name] for each in found if name in each["bandwidths"]
                )
                for name in sorted(names)
            },
        )


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The plan to run, and why it is another one.

    Attributes
    ----------
    choice
        The plan.
    latency
        That is predicted for it on the machine as it was found.
    note
        In a line, which assumption does not hold and what follows; empty when all hold.
    """

    choice: Choice
    latency: float
    note: str


def select(
    plans: Sequence[Choice], links: Sequence[LinkSpeed], observed: Observed
) -> Selection:
    """Take the first plan when what it assumes holds, else the next safe one.

    Safe are the plans that fit into what memory is free. Of these, the one is taken that is
    the fastest with the links as they were measured: what a slower link adds to a plan is
    what half its bandwidth was predicted to add, times how often slower it is.

    Parameters
    ----------
    plans
        The chosen one, then the others, down to plain library calls.
    links
        Of the machine that they were chosen for.
    observed
        The machine as it is.

    Raises
    ------
    TuneError
        When no plan fits.
    """
    chosen = plans[0]
    unmet = Assumptions.of(chosen, links).unmet(observed)
    if not unmet:
        return Selection(choice=chosen, latency=chosen.costs.latency, note="")
    free = observed.free_bytes
    safe = [each for each in plans if free is None or each.peak_bytes <= free]
    if not safe:
        smallest = min(plans, key=lambda each: each.peak_bytes)
        raise TuneError(
            f"no plan fits: {format_bytes(free or 0)} of memory are free, and the smallest of "
            f"{len(plans)} plans needs {format_bytes(smallest.peak_bytes)}: {smallest.recipe}; "
            "free some memory, or search with that limit"
        )
    slower = {
        link.name: link.slowdown(observed.bandwidths.get(link.name)) - 1 for link in links
    }
    latency, _, taken = min((_latency(each, slower), n, each) for n, each in enumerate(safe))
    what = (
        f"'{taken.recipe}' stays the fastest"
        if taken is chosen
        else f"'{taken.recipe}' runs instead of '{chosen.recipe}'"
    )
    return Selection(
        choice=taken,
        latency=latency,
        note=f"{' and '.join(unmet)}: {what}, predicted {format_seconds(latency)}",
    )


def _latency(choice: Choice, slower: Mapping[str, float]) -> float:
    """Predict the latency when links take longer by some parts of their time."""
    costs = choice.costs
    most = choice.slow_latency - costs.latency  # of the link that hurts most
    added = 0.0
    for name, part in slower.items():
        own = (
            most if name == choice.slow_link else min(most, costs.seconds_by_link.get(name, 0))
        )
        added += part * own
    return costs.latency + added
