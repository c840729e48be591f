"""Running a case and comparing it, for the tests that have a number.

Sizes are smaller than where the kind was met, and as odd. Every result is compared with
float64 on one device, which no zero output and no lost tile passes.
"""

import itertools

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.runtime import SimOptions, dtypes
from mercury.runtime.trial import trial

ULP = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
BOTH = [mc.programs.attention, mc.programs.attention_backward]


def each(strategies):
    """Every pair of a program and a strategy."""
    return pytest.mark.parametrize(
        ("program", "strategy"), list(itertools.product(BOTH, strategies))
    )


def check(schedule, seed=0, options=None):
    """Compile, run and compare; gives the plan and the trial."""
    plan = schedule.compile()
    result = trial(plan, seed, options)
    assert result.right, (schedule.recipe(), schedule.mesh, schedule.program, result.errors)
    return plan, result


def schedule_by(strategy, mesh, program):
    mesh = mc.Mesh.parse(mesh) if isinstance(mesh, str) else mesh
    return mc.strategies.get(strategy).schedule(mesh, program)


def inputs_of(program, seed=0):
    """Inputs of unit scale, as they are in their dtype."""
    drawn = reference.draw(program, seed)
    return {
        buffer.name: dtypes.decode(
            dtypes.encode(drawn[buffer.name], buffer.dtype), buffer.dtype
        )
        for buffer in program.inputs
    }


def same_for_every_delay(plan, seeds, **options):
    """Whatever comes when, all bits of all outputs are the same; gives the outputs."""
    shards = plan.scatter(**inputs_of(plan.program))
    expected = plan.run(shards)
    for seed in seeds:
        result = plan.run(shards, SimOptions(seed=seed, **options))
        for mine, first in zip(result, expected, strict=True):
            for name, array in first.items():
                np.testing.assert_array_equal(mine[name], array)
    return plan.gather(expected)
