"""Timing several ways to do the same work, in turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import BenchError
from .processes import Processes, Work

__all__ = ["Settings", "Timing", "compare", "trial"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long a measurement may take.

    Attributes
    ----------
    burst_ms
        Work between two barriers of the ranks, so that they do not count.
    rounds, least_rounds
        How often each takes its turn: as often as the budget allows.
    most_times
        Runs in a row.
    budget_s
        For all rounds together. Where it is too short for the least number of rounds, the
        slowest leave, never the first.
    slow
        What took so many times the floor when it was tried has no turn.
    """

    burst_ms: float = 10.0
    rounds: int = 15
    least_rounds: int = 5
    most_times: int = 50
    budget_s: float = 60.0
    slow: float = 3.0

    def __post_init__(self) -> None:
        if self.least_rounds < 1 or self.rounds < self.least_rounds:
            raise BenchError(
                f"there must be at least one round, and no fewer than the least, got "
                f"{self.rounds} and {self.least_rounds}"
            )
        if self.burst_ms <= 0 or self.most_times < 1 or self.budget_s <= 0 or self.slow < 1:
            raise BenchError("bursts, runs and budgets must be above 0, and slow at least 1")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What a comparison saw.

    Attributes
    ----------
    samples
        By name, the time of a run in each round, in milliseconds.
    tried
        By name, the shortest of the first runs, in milliseconds; of those without a turn, too.
    """

    samples: Mapping[str, list[float]]
    tried: Mapping[str, float] = field(default_factory=dict)


def compare(
    on: Processes,
    works: Mapping[str, Work],
    settings: Settings,
    tried: Mapping[str, float] | None = None,
) -> Timing:
    """Time works in turns, in the order given; the first is the floor.

    Each is tried first; `tried` has the times where that is done already.

    The ranks need not talk about who has a turn: times are the maximum over the ranks, so all
    know the same.

    Raises
    ------
    BenchError
        When there is no work.
    """
    if not works:
        raise BenchError("there is nothing to measure")
    floor = next(iter(works))
    tried = tried or {name: trial(on, work) for name, work in works.items()}
    turns = [name for name in works if tried[name] <= settings.slow * tried[floor]]
    fastest = min(tried[name] for name in turns)
    times = max(1, min(settings.most_times, round(settings.burst_ms / fastest)))

    def seconds_of_a_round() -> float:
        return times * sum(tried[name] for name in turns) / 1000

    while len(turns) > 1 and settings.least_rounds * seconds_of_a_round() > settings.budget_s:
        turns.remove(max(turns[1:], key=tried.__getitem__))
    fits = int(settings.budget_s / max(seconds_of_a_round(), 1e-9))
    rounds = max(settings.least_rounds, min(settings.rounds, fits))
    samples: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(rounds):
        # There and back: no one always runs after the same neighbour.
        for name in turns if number % 2 == 0 else turns[::-1]:
            samples[name].append(on.milliseconds(works[name], times))
    return Timing(samples=samples, tried=tried)


def trial(on: Processes, work: Work) -> float:
    """Give the shorter time of two first runs, in milliseconds, or of a long one alone."""
    first = on.milliseconds(work, 1)
    # What the first run of a graph still loads matters to short ones only.
    return first if first > 100 else min(first, on.milliseconds(work, 1))
