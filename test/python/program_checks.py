"""Running the shipped programs and comparing them, for their tests."""

import numpy as np
from mercury.runtime import dtypes
from mercury.runtime.trial import trial

ULP = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


def check(schedule, seed=0):
    result = trial(schedule.compile(), seed)
    assert result.right, (schedule.recipe(), schedule.mesh, schedule.program, result.errors)
    return result


def rounded(values, dtype):
    """The numbers as they are in a dtype."""
    return dtypes.decode(dtypes.encode(np.asarray(values), dtype), dtype)


def run(plan, inputs, options=None):
    result = plan.gather(plan.run(plan.scatter(**inputs), options))
    outputs = plan.program.outputs
    return result if len(outputs) > 1 else {outputs[0].name: result}


ATTENTION = [
    "context-parallel",
    "ring",
    "double-ring",
    "ulysses",
    "usp",
    "shifted-reduction",
    "split-reduction",
    "hybrid",
    "tree",
]
