"""Plans that no other beats in everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["pareto"]

T = TypeVar("T")


def pareto(plans: Iterable[T], values: Callable[[T], Sequence[float]], slack: float) -> list[T]:
    """Give the plans that no other plan beats, the best by the first value first.

    Parameters
    ----------
    plans
        To choose from.
    values
        Of a plan; less is better.
    slack
        A plan must be better than each before it by so much in some value, as 0.01.

    Examples
    --------
    >>> pareto([(3, 1), (1, 3), (2, 4), (2, 2)], lambda plan: plan, 0.0)
    [(1, 3), (2, 2), (3, 1)]
    """
    kept: list[T] = []
    for plan in sorted(plans, key=lambda each: tuple(values(each))):
        own = values(plan)
        if not any(
            all(a <= b * (1 + slack) for a, b in zip(values(other), own, strict=True))
            for other in kept
        ):
            kept.append(plan)
    return kept
