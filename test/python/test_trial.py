"""Trials: what rounding explains of an error, and what it does not."""

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.cuda.trial import conditions, distances
from mercury.runtime.trial import limits, trial, widened

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


def condition_of(program, seed):
    rng = np.random.default_rng(seed)
    return reference.condition(
        lambda inputs: reference.evaluate(program, inputs),
        reference.draw(program, seed),
        lambda whole: rng.choice([-1.0, 1.0], whole.shape),
    )


def test_terms_that_cancel_have_a_larger_limit():
    schedule = gradients(gpu=2).parallelize("h", "gpu")
    condition = condition_of(schedule.program, SEED)
    assert condition["dSINK"] > 50
    assert all(condition[name] < 20 for name in ("dQ", "dK", "dV"))


def test_a_product_has_none():
    program = mc.programs.matmul(m=7, n=5, depth=64)
    assert condition_of(program, 1)["C"] < 2


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


def test_limits_are_widened_only_if_an_error_is_beyond_one():
    limits, errors = {"A": 1e-6, "B": 1e-6}, {"A": 1e-7, "B": 1e-6}
    assert widened(limits, errors, lambda: pytest.fail("nothing is beyond")) == limits
    errors["B"] = 3e-6
    assert widened(limits, errors, lambda: {"A": 1.0, "B": 4.0}) == {"A": 1e-6, "B": 4e-6}


def test_samples_on_gpus_have_the_condition_of_what_they_compare():
    torch = pytest.importorskip("torch")
    program = mc.programs.matmul(m=8, n=6, depth=64, dtype="f32")
    plan = mc.Schedule(program, mc.Mesh(gpu=2), {"C": {"i": "gpu"}}).parallelize("i", "gpu")
    compiled = plan.patch("*", "mine").compile(target="cuda")
    a, b = torch.randn(8, 64), torch.randn(64, 6)
    assert conditions(compiled, 0, {"A": a, "B": b})["C"] < 5
    # Each second term takes back the one before, save for a thousandth.
    a[4:, 1::2], b[1::2] = -a[4:, ::2] * 1.001, b[::2]
    assert conditions(compiled, 0, {"A": a, "B": b})["C"] < 5
    assert conditions(compiled, 1, {"A": a, "B": b})["C"] > 200
    whole = (a.double() @ b.double())[4:]
    assert distances(compiled, 1, {"A": a, "B": b}, {"C": whole})["C"] < 1e-12
    assert distances(compiled, 1, {"A": a, "B": b}, {"C": whole * 1.5})["C"] == pytest.approx(
        0.5
    )


def test_a_rank_without_a_part_compares_nothing():
    torch = pytest.importorskip("torch")
    program = mc.programs.matmul(m=2, n=6, depth=4, dtype="f32")
    plan = mc.Schedule(program, mc.Mesh(gpu=3), {"C": {"i": "gpu"}}).parallelize("i", "gpu")
    compiled = plan.patch("*", "mine").compile(target="cuda")
    inputs = {"A": torch.randn(2, 4), "B": torch.randn(4, 6)}
    assert compiled.layout("C").shape(2)[0] == 0
    assert distances(compiled, 2, inputs, {"C": torch.empty(0, 6)}) == {"C": 0.0}
    assert conditions(compiled, 2, inputs) == {"C": 1.0}
