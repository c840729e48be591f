"""The fastest plans of a search, measured on the machine itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..schedule import Schedule
from .agree import Vote, agree_on_text
from .quantity import TuneError
from .result import Choice
from .search import Search

__all__ = ["Measure", "measure_finalists"]

Measure = Callable[[Sequence[Schedule]], Sequence[float | str]]
"""Takes schedules, the same on every rank, and gives for each the seconds of a run, the
slowest rank's, or why it has none."""


def measure_finalists(search: Search, measure: Measure, vote: Vote) -> list[Choice]:
    """Measure the plans that a search would name; all ranks call it together.

    Parameters
    ----------
    search
        That has ended.
    measure
        Runs and times schedules.
    vote
        The exchange, so that all ranks measure what the first one found.

    Returns
    -------
    list of Choice
        Those with a time. The others are the search's failures, with the reason.

    Raises
    ------
    TuneError
        When there are not as many times as schedules.
    """
    mine = [each.to_json() for each in search.finalists() if search.is_right(each)]
    choices = [
        Choice.from_json(each) for each in json.loads(agree_on_text(json.dumps(mine), vote))
    ]
    space = search.space
    schedules = [
        Schedule(space.program, space.mesh, space.boundary).apply(each.recipe)
        for each in choices
    ]
    seen = list(measure(schedules))
    if len(seen) != len(schedules):
        raise TuneError(
            f"a measurement must give a time or a reason for each of {len(schedules)} "
            f"schedules, got {len(seen)}"
        )
    timed = []
    for choice, found in zip(choices, seen, strict=True):
        if isinstance(found, str):
            search.fail(choice, f"it could not be measured: {found}")
        else:
            timed.append(replace(choice, measured_s=float(found)))
    return timed
