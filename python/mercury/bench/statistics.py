"""Medians, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from .errors import BenchError

__all__ = ["Middle", "median", "middle", "ratios"]


@dataclass(frozen=True, kw_only=True)
class Middle:
    """The median of a population, as samples know it.

    Attributes
    ----------
    median
        Of the samples.
    low, high
        The median of the population lies between them.
    confidence
        With this probability: at least 0.95, or what so few samples allow.
    """

    median: float
    low: float
    high: float
    confidence: float


def median(samples: Sequence[float]) -> float:
    """Give the median, the mean of two when their number is even."""
    if not samples:
        raise BenchError("there is no median of no samples; measure at least once")
    ordered, half = sorted(samples), len(samples) // 2
    return ordered[half] if len(samples) % 2 else (ordered[half - 1] + ordered[half]) / 2


def middle(samples: Sequence[float], confidence: float = 0.95) -> Middle:
    """Give the median with its interval, whatever the samples' distribution is.

    Each sample is below the median of the population with probability one half, so how many
    are is binomial; the interval lies between two samples of equal rank from either end
    (Conover, "Practical Nonparametric Statistics", 1999, section 3.2).

    Examples
    --------
    >>> middle([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).low
    2.0
    >>> middle([1.0, 2.0, 4.0])
    Middle(median=2.0, low=1.0, high=4.0, confidence=0.75)
    """
    count, ordered = len(samples), sorted(samples)
    centre = median(samples)
    # Outside of the samples of rank r from either end: 2 P(Binomial(count, 1/2) < r).
    outside, rank, tail = 2 * 0.5**count, 1, 0.5**count
    while 2 * (rank + 1) <= count:
        tail += comb(count, rank) * 0.5**count
        if 2 * tail > 1 - confidence:
            break
        outside, rank = 2 * tail, rank + 1
    return Middle(
        median=centre,
        low=ordered[rank - 1],
        high=ordered[count - rank],
        confidence=max(0.0, 1 - outside),
    )


def ratios(own: Sequence[float], floor: Sequence[float]) -> Middle:
    """Give the ratio of two that were measured in turns, round by round.

    Raises
    ------
    BenchError
        When they have not the same rounds.
    """
    if len(own) != len(floor):
        raise BenchError(
            f"a ratio needs the same rounds of both, got {len(own)} and {len(floor)}"
        )
    return middle([one / other for one, other in zip(own, floor, strict=True)])
