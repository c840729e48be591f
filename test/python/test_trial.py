"""Trials: what rounding explains of an error, and what it does not."""

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.runtime.trial import limits, trial

SEED = 91000253


def gradients(**mesh):
    """Of a sink, the terms of whose gradient cancel to a hundredth at this seed."""
    program = mc.programs.attention_backward(
        b=2,
        h=2,
        sq=5,
        sk=5,
        d=3,
        dv=6,
        mask=mc.window(3, 1).packed([0, 3, 4, 5]),
        sink=True,
        dtype="f32",
    )
    return mc.Schedule(program, mc.Mesh(**mesh))


def test_terms_that_cancel_have_a_larger_limit():
    schedule = gradients(gpu=2).parallelize("h", "gpu")
    drawn = reference.draw(schedule.program, SEED)
    condition = reference.condition(schedule.program, drawn, SEED)
    assert condition["dSINK"] > 50
    assert all(condition[name] < 20 for name in ("dQ", "dK", "dV"))


def test_a_product_has_none():
    program = mc.programs.matmul(m=7, n=5, depth=64)
    condition = reference.condition(program, reference.draw(program, 1))
    assert condition["C"] < 2


@pytest.mark.parametrize("seed", [SEED, 1200])
def test_a_right_plan_is_not_called_wrong_where_they_cancel(seed):
    result = trial(gradients(gpu=2).parallelize("h", "gpu").compile(), seed)
    assert result.right, result


def test_a_lost_term_is_called_wrong(monkeypatch):
    plan = gradients(gpu=1).compile()
    whole = reference.evaluate

    def without_one(program, inputs):
        """What is expected when a sixth of the values' gradient is lost."""
        return whole(program, {**inputs, "dO": inputs["dO"] * np.r_[0.0, np.ones(5)]})

    monkeypatch.setattr(reference, "evaluate", without_one)
    result = trial(plan, SEED)
    assert not result.right
    assert all(result.errors[name] > 100 * limits(plan.program)[name] for name in result.errors)
