"""Few cases that have every pair of values: a covering array of strength two."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

__all__ = ["Case", "covering", "pairs_of"]

Case = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]


def pairs_of(case: Mapping[str, str]) -> set[Pair]:
    """Give every pair of values of a case."""
    return set(itertools.combinations(sorted(case.items()), 2))


def covering(
    values: Mapping[str, Sequence[str]],
    fits: Callable[[Mapping[str, str]], bool],
    seed: int = 0,
) -> tuple[list[Case], set[Pair]]:
    """Make cases greedily, each with as many new pairs as a look at each parameter finds.

    Parameters
    ----------
    values
        Of each parameter.
    fits
        Whether values may stand in one case; asked about parts of a case, too.
    seed
        Of the order in which equals are taken.

    Returns
    -------
    tuple
        The cases, and every pair that some case can have.

    Examples
    --------
    >>> made, pairs = covering({"a": "12", "b": "12", "c": "12"}, lambda case: True)
    >>> len(made) < 8, len(pairs)
    (True, 12)
    """
    source = random.Random(seed)
    names = sorted(values)
    every = [
        pair
        for one, other in itertools.combinations(names, 2)
        for pair in itertools.product(
            ((one, value) for value in values[one]), ((other, value) for value in values[other])
        )
    ]
    source.shuffle(every)
    missing = dict.fromkeys(every)
    possible: set[Pair] = set()
    cases: list[Case] = []
    while missing:
        pair = next(iter(missing))
        del missing[pair]
        case = _complete(dict(pair), names, values, fits, missing, source)
        if case is None:
            continue
        cases.append(case)
        possible |= pairs_of(case)
        for found in pairs_of(case):
            missing.pop(found, None)
    return cases, possible


def _complete(
    case: Case,
    names: Sequence[str],
    values: Mapping[str, Sequence[str]],
    fits: Callable[[Mapping[str, str]], bool],
    missing: Mapping[Pair, None],
    source: random.Random,
) -> Case | None:
    """Add the other parameters, each with the value that brings the most missing pairs."""
    if not fits(case):
        return None
    rest = [name for name in names if name not in case]
    if not rest:
        return case
    name = source.choice(rest)

    def gain(value: str) -> int:
        return sum(
            tuple(sorted(((name, value), item))) in missing  # type: ignore[comparison-overlap]
            for item in case.items()
        )

    choices = list(values[name])
    source.shuffle(choices)
    for value in sorted(choices, key=gain, reverse=True):
        whole = _complete({**case, name: value}, names, values, fits, missing, source)
        if whole is not None:
            return whole
    return None
