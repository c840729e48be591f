"""Predicted beside measured: how well the simulator ranks plans."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import BenchError
from .statistics import median

__all__ = [
    "Agreement",
    "agreement",
    "rank_correlation",
    "repeated_correlation",
]

_REPETITIONS = 200
_DIGITS = 9
_INTERVAL = 2 * 1.96  # standard deviations that 95 % of normal numbers lie in


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How well predictions agree with measurements of the same plans.

    Attributes
    ----------
    plans
        How many.
    correlation
        Of the ranks, from -1 to 1; None where all predictions, or all times, are equal.
    first
        The plan that is predicted to be the fastest.
    regret
        By how much it is slower than the fastest measured, as 0.05.
    off_by
        Median of the relative distances.
    """

    plans: int
    correlation: float | None
    first: str
    regret: float
    off_by: float

    @property
    def order(self) -> str:
        """How well the orders agree, in words."""
        if self.correlation is None:
            return "rank correlation not defined: all are predicted, or measured, equal"
        return f"rank correlation {self.correlation:.2f}"


def agreement(predicted: Mapping[str, float], measured: Mapping[str, float]) -> Agreement:
    """Compare times by name of a plan.

    Raises
    ------
    BenchError
        When fewer than two plans have both.
    """
    names = sorted(set(predicted) & set(measured))
    if len(names) < 2:
        raise BenchError(f"predictions are compared for two plans or more, got {len(names)}")
    first = min(names, key=lambda name: predicted[name])
    return Agreement(
        plans=len(names),
        correlation=rank_correlation(
            [predicted[name] for name in names], [measured[name] for name in names]
        ),
        first=first,
        regret=measured[first] / min(measured[name] for name in names) - 1,
        off_by=median([abs(predicted[name] / measured[name] - 1) for name in names]),
    )


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Give Spearman's rank correlation; equal values share their ranks.

    None where all values of one are equal: they have no order to agree with.

    Examples
    --------
    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    >>> rank_correlation([1.0, 1.0], [10.0, 30.0])
    """
    if len(one) != len(other) or len(one) < 2:
        raise BenchError(
            f"a correlation needs as many of both, two at least; got {len(one)}, {len(other)}"
        )
    a, b = _ranks(one), _ranks(other)
    centre = (len(one) - 1) / 2
    shared = sum((x - centre) * (y - centre) for x, y in zip(a, b, strict=True))
    own = sum((x - centre) ** 2 for x in a) * sum((y - centre) ** 2 for y in b)
    return shared / own**0.5 if own else None


def repeated_correlation(measured: Sequence[tuple[float, float, float]]) -> float | None:
    """Give the rank correlation that measuring again would have with what was measured.

    No prediction can be asked for more. The median over repetitions that are drawn at random,
    the same at each call, from normal numbers around each time; None where all are equal.

    Parameters
    ----------
    measured
        Of each plan, its time or ratio with the ends of its interval of 95 %.

    Examples
    --------
    >>> repeated_correlation([(1.0, 0.99, 1.01), (2.0, 1.99, 2.01), (3.0, 2.99, 3.01)])
    1.0
    """
    draw = random.Random(0)
    seen = [centre for centre, _, _ in measured]
    drawn = [
        rank_correlation(
            [draw.gauss(centre, (high - low) / _INTERVAL) for centre, low, high in measured],
            seen,
        )
        for _ in range(_REPETITIONS)
    ]
    found = [each for each in drawn if each is not None]
    return median(found) if found else None


def _ranks(values: Sequence[float]) -> list[float]:
    # Sums of the same times in another order are the same.
    values = [float(f"{value:.{_DIGITS}g}") for value in values]
    ordered = sorted(values)
    return [ordered.index(v) + (ordered.count(v) - 1) / 2 for v in values]
