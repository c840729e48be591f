"""Running a plan once on random data and comparing it with its reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import reference
from .dtypes import decode, encode
from .plan import Plan
from .sim import RunReport, SimOptions

__all__ = ["LIMITS", "Trial", "trial"]

# The largest error of a result in its dtype that rounding explains; half a unit in the
# last place is 2^-24, 2^-11 and 2^-8 times 0.5. A zero result has error 1.
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
    """
    rng = np.random.default_rng(seed)
    # The reference sees the inputs as they are in their dtype.
    inputs = {
        buffer.name: decode(
            encode(rng.standard_normal(buffer.shape), buffer.dtype), buffer.dtype
        )
        for buffer in plan.program.inputs
    }
    result = plan.gather(plan.run(plan.scatter(**inputs), options))
    outputs = plan.program.outputs
    found = result if len(outputs) > 1 else {outputs[0].name: result}
    expected = reference.evaluate(plan.program, inputs)
    return Trial(
        errors={
            name: reference.relative_error(found[name], whole)
            for name, whole in expected.items()
        },
        limits={buffer.name: LIMITS[buffer.dtype] for buffer in outputs},
        report=plan.report,
    )
