"""Running a plan once on random data and comparing it with its reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod, sqrt

import numpy as np

from .. import reference
from ..dsl import Program
from ..dsl.nodes import Store
from ..errors import RunError
from .dtypes import decode, encode
from .free_memory import free_memory
from .plan import Plan
from .sim import RunReport, SimOptions

__all__ = ["LIMITS", "Trial", "limits", "trial", "widened"]

# The largest error that rounding explains in a result of up to 1024 terms: some units in
# the last place of its dtype. A zero result has error 1.
LIMITS = {"f64": 1e-13, "f32": 2e-6, "f16": 5e-4, "bf16": 4e-3}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of it.

    Attributes
    ----------
    errors
        The relative error of each output against float64.
    limits
        The largest that rounding explains, for each output.
    report
        What the run moved.
    """

    errors: dict[str, float]
    limits: dict[str, float]
    report: RunReport

    @property
    def right(self) -> bool:
        """Whether every output is as near as its dtype allows."""
        return all(error <= self.limits[name] for name, error in self.errors.items())


def trial(plan: Plan, seed: int = 0, options: SimOptions | None = None) -> Trial:
    """Run a plan on random inputs of unit scale.

    Parameters
    ----------
    plan
        Any plan whose kernels have a reference.
    seed
        Of the inputs.
    options
        Of the embedded backend.

    Raises
    ------
    RunError
        When this machine has too little memory for it, before any is taken.
    """
    _check_memory(plan)
    drawn = reference.draw(plan.program, seed)
    # The reference sees the inputs as they are in their dtype.
    inputs = {
        buffer.name: decode(encode(drawn[buffer.name], buffer.dtype), buffer.dtype)
        for buffer in plan.program.inputs
    }
    result = plan.gather(plan.run(plan.scatter(**inputs), options))
    outputs = plan.program.outputs
    found = result if len(outputs) > 1 else {outputs[0].name: result}
    expected = reference.evaluate(plan.program, inputs)
    errors = {
        name: reference.relative_error(found[name], whole) for name, whole in expected.items()
    }
    rng = np.random.default_rng(seed)
    explained = widened(
        limits(plan.program),
        errors,
        lambda: reference.condition(
            lambda moved: reference.evaluate(plan.program, moved),
            inputs,
            lambda whole: rng.choice([-1.0, 1.0], whole.shape),
        ),
    )
    return Trial(errors=errors, limits=explained, report=plan.report)


def _check_memory(plan: Plan) -> None:
    free = free_memory()
    arenas = plan.arena_bytes * plan.mesh.size
    # Inputs are there as drawn, rounded, and cut; results as found, whole and expected.
    shards = 16 * sum(prod(buffer.shape) for buffer in plan.program.buffers)
    needed = reference.needed_bytes(plan.program) + shards + arenas
    if free is not None and needed > free:
        raise RunError(
            f"comparing with float64 needs {needed / 2**30:,.1f} GiB on this machine, "
            f"{arenas / 2**30:,.1f} GiB of them arenas of {plan.mesh.size} ranks, and "
            f"{free / 2**30:,.1f} GiB are free; take a smaller problem"
        )


def widened(
    limits: Mapping[str, float],
    errors: Mapping[str, float],
    condition: Callable[[], Mapping[str, float]],
) -> dict[str, float]:
    """Widen limits by the condition of each result, if any error is beyond its limit.

    Where terms cancel, rounding explains more. It takes the reference twice more to know.
    """
    if all(error <= limits[name] for name, error in errors.items()):
        return dict(limits)
    worse = condition()
    return {name: limit * worse[name] for name, limit in limits.items()}


def limits(program: Program) -> dict[str, float]:
    """Give the limit of each output; rounding grows with the root of the terms summed."""
    found = {}
    for nest in program.nests:
        for store in nest.ops:
            if not isinstance(store, Store):
                continue
            terms = prod(axis.extent for axis in store.merge.over) if store.merge else 1
            for buffer in store.buffers:
                found[buffer.name] = LIMITS[buffer.dtype] * max(1.0, sqrt(terms / 1024))
    return found
