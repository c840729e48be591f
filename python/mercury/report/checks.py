"""What a plan does on embedded ranks at reduced length: measured, beside what was predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..dsl import Program
from ..runtime.events import traffic
from ..runtime.sim import SimOptions
from ..runtime.trial import trial
from ..schedule import Schedule
from ..tuner import Choice, TuneResult
from ..tuner.shrink import shrink

__all__ = ["Check", "check"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One run.

    Attributes
    ----------
    fingerprint
        Of the plan's schedule.
    program
        What ran, with its extents.
    errors, limits
        The error of each output against float64, and the largest that rounding explains.
    predicted_bytes, measured_bytes
        Over each level, as read off the plan and as counted in the run.
    """

    fingerprint: str
    program: str
    errors: Mapping[str, float]
    limits: Mapping[str, float]
    predicted_bytes: Mapping[str, int]
    measured_bytes: Mapping[str, int]

    @property
    def right(self) -> bool:
        """Whether every output is near enough, and the bytes are those predicted."""
        near = all(error <= self.limits[name] for name, error in self.errors.items())
        return near and self.predicted_bytes == self.measured_bytes

    @property
    def error(self) -> float:
        """The largest of the errors."""
        return max(self.errors.values(), default=0.0)


def check(
    result: TuneResult, choice: Choice, program: Program | None = None, seed: int = 1
) -> Check:
    """Run one of the plans on embedded ranks, on random data, and compare with float64.

    Parameters
    ----------
    result
        The search that found it.
    choice
        The plan.
    program
        A shorter one of the same kind; made when not given.
    seed
        Of the data, and of delays of the messages.
    """
    small = shrink(result.program, result.mesh.size) if program is None else program
    schedule = Schedule(small, result.mesh, result.boundary).apply(choice.recipe)
    plan = schedule.compile()
    outcome = trial(plan, seed, SimOptions(seed=seed))
    moved = traffic(plan.mesh, plan.events())
    axes = ", ".join(f"{axis.name}={axis.extent}" for axis in small.axes)
    sent = outcome.report.bytes_sent
    return Check(
        fingerprint=choice.fingerprint,
        program=f"{small.name}({axes}), {small.inputs[0].dtype}",
        errors=outcome.errors,
        limits=outcome.limits,
        predicted_bytes={level: moved[level].bytes for level in sent},
        measured_bytes=dict(sent),
    )
