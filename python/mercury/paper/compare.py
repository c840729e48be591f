"""Simulating every method of a case, and choosing ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..dsl import Mesh, Program
from ..errors import MercuryError
from ..schedule import Schedule
from ..simulator import simulate
from ..topology import Topology
from .cases import CASES, Case
from .methods import boundary, methods, space

__all__ = ["Comparison", "Outcome", "compare"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a method: the fastest of its recipes that fit, *predicted*.

    Attributes
    ----------
    recipe
        Empty when none fits; then the smallest is told of.
    time_s, exposed_s, peak_bytes
        Of it; the time is None when none fits.
    why
        Why there is no time.
    tried
        How many recipes were simulated.
    """

    recipe: str
    time_s: float | None
    exposed_s: float
    peak_bytes: int
    why: str
    tried: int

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        return dict(self.__dict__) | {"predicted": True}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A case with the outcome of each method and of ours."""

    case: Case
    methods: dict[str, Outcome]
    ours: Outcome

    @property
    def ratios(self) -> dict[str, float]:
        """How many times slower than ours each method is predicted to be."""
        if self.ours.time_s is None:
            return {}
        return {
            name: each.time_s / self.ours.time_s
            for name, each in self.methods.items()
            if each.time_s is not None
        }

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "case": self.case.name,
            "group": self.case.group,
            "predicted": True,
            "methods": {name: each.to_json() for name, each in self.methods.items()},
            "ours": self.ours.to_json(),
            "ratios": self.ratios,
        }


def compare(
    cases: Iterable[Case] = CASES, report: Callable[[str], None] = lambda _: None
) -> list[Comparison]:
    """Predict every method of some cases.

    Parameters
    ----------
    cases
        All that the paper has, when not given.
    report
        Told which case is at hand.

    Returns
    -------
    list of Comparison
        One a case; all times are *predicted*.
    """
    found = []
    for case in cases:
        report(case.name)
        found.append(_compare(case))
    return found


def _compare(case: Case) -> Comparison:
    on = _Machine(case)
    outcomes = {
        name: on.best(recipes) for name, recipes in methods(case.operator, case.mesh).items()
    }
    return Comparison(
        case=case, methods=outcomes, ours=on.best(space(case.operator, case.mesh))
    )


class _Machine:
    """A case's program and machine; each recipe is simulated once."""

    def __init__(self, case: Case) -> None:
        self._program: Program = case.program()
        self._mesh: Mesh = case.mesh
        self._topology: Topology = case.topology
        self._boundary = boundary(case.operator, case.mesh)
        self._bare = Schedule(self._program, self._mesh, self._boundary)
        self._known: dict[str, tuple[float, float, int] | str] = {}

    def best(self, recipes: list[str]) -> Outcome:
        """Give the fastest that fits into memory."""
        limit = self._topology.machine.memory
        fastest: tuple[float, float, int, str] | None = None
        smallest, why = 0, "no recipe can be lowered on this machine"
        tried = 0
        for recipe in recipes:
            found = self._time(recipe)
            if isinstance(found, str):
                why = why if tried else found
                continue
            tried += 1
            if found[2] > limit:
                smallest = min(smallest or found[2], found[2])
                why = f"out of memory: {smallest / 2**30:.0f} of {limit / 2**30:.0f} GiB"
            elif fastest is None or found[0] < fastest[0]:
                fastest = (*found, recipe)
        if fastest is None:
            return Outcome(
                recipe="", time_s=None, exposed_s=0.0, peak_bytes=smallest, why=why, tried=tried
            )
        time, exposed, peak, recipe = fastest
        return Outcome(
            recipe=recipe, time_s=time, exposed_s=exposed, peak_bytes=peak, why="", tried=tried
        )

    def _time(self, recipe: str) -> tuple[float, float, int] | str:
        if recipe not in self._known:
            try:
                schedule = self._bare.copy().apply(recipe)
                found = simulate(schedule, self._topology)
                self._known[recipe] = (found.time_s, found.exposed_s, max(found.peak_bytes))
            except MercuryError as error:
                self._known[recipe] = error.message
        return self._known[recipe]
