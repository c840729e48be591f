"""Smoothing measurements that rise to one peak and fall behind it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["unimodal"]


def unimodal(values: Sequence[float]) -> list[float]:
    """Give the nearest numbers, by squares, that rise to one peak and fall behind it.

    For each place that the peak can have, pool adjacent violators (Ayer et al., 1955) on
    either side; the nearest of these is the answer.

    Examples
    --------
    >>> unimodal([1.0, 3.0, 2.0, 4.0, 1.0])
    [1.0, 2.5, 2.5, 4.0, 1.0]
    """
    candidates = [
        _rising(values[:peak]) + _rising(values[peak:][::-1])[::-1]
        for peak in range(len(values) + 1)
    ]
    return min(
        candidates,
        key=lambda made: sum((x - y) ** 2 for x, y in zip(made, values, strict=True)),
    )


def _rising(values: Sequence[float]) -> list[float]:
    """Give the nearest numbers of which none is below the one before it."""
    pools: list[list[float]] = []
    for value in values:
        pool = [value]
        while pools and _mean(pools[-1]) > _mean(pool):
            pool = pools.pop() + pool
        pools.append(pool)
    return [_mean(pool) for pool in pools for _ in pool]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
