"""Gradients of attention against float64, on many schedules."""

import functools

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.runtime import SimOptions, dtypes
from mercury.runtime.trial import LIMITS
from program_checks import ATTENTION, ULP, check, rounded, run

MASKS = [None, mc.causal(), mc.causal(-3), mc.window(5), mc.window(9, 4)]


@pytest.mark.parametrize("mesh", ["gpu=1", "gpu=3", "gpu=4", "node=2,gpu=2"])
@pytest.mark.parametrize("strategy", ATTENTION)
def test_backward_by_every_attention_strategy(strategy, mesh):
    program = mc.programs.attention_backward(
        b=2, h=24, group=2, sq=19, sk=23, d=8, dv=5, mask="causal", dtype="f32"
    )
    schedule = mc.strategies.get(strategy).schedule(mc.Mesh.parse(mesh), program)
    check(schedule)


BACKWARD_RECIPES = [
    "parallelize(sq, gpu); shift(sk, by=sq)",
    "parallelize(sq, gpu); shift(sk, by=sq, direction=-1)",
    "parallelize(sq, gpu); shift(sk, by=sq, offset=1)",
    "parallelize(sq, gpu); shift(sk, by=sq, direction=-1, offset=2)",
    "parallelize(sk, gpu); shift(sq, by=sk, offset=1)",
    "parallelize(sk, gpu); shift(sq, by=sk)",
    "parallelize(sq, gpu)",
    "parallelize(sk, gpu)",
    "parallelize(b, gpu)",
    "parallelize(sq, gpu); shard(K, sk, gpu); shard(V, sk, gpu); shard(dK, sk, gpu)",
    "parallelize(sq, gpu); tile(sk, 3); tile(h, 2)",
    "parallelize(sq, gpu); shift(sk, by=sq); tile(h, 2); reorder(sk, h_outer, h_inner)",
]


@pytest.mark.parametrize("case", range(24))
def test_backward_of_random_shapes_ranks_and_schedules(case):
    rng = np.random.default_rng(case)
    group = int(rng.choice([1, 1, 2, 3]))
    # Some axes are empty, some shards have no position.
    sq, sk = (int(x) for x in rng.integers(0 if case > 20 else 2, 70, 2))
    program = mc.programs.attention_backward(
        b=int(rng.integers(1, 4)),
        h=group * int(rng.integers(1, 4)),
        group=group,
        sq=sq,
        sk=sk,
        d=int(rng.integers(1, 20)),
        dv=int(rng.integers(1, 80)),
        mask=MASKS[case % len(MASKS)],
        dtype=str(rng.choice(["f32", "f32", "bf16", "f16", "f64"])),
    )
    recipe = BACKWARD_RECIPES[case % len(BACKWARD_RECIPES)]
    check(mc.Schedule(program, mc.Mesh(gpu=int(rng.integers(1, 7)))).apply(recipe), seed=case)


def test_reference_gradients_are_those_of_differences():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, n, h, 3)) for n, h in ((4, 4), (5, 2), (5, 2)))
    do = rng.standard_normal((1, 4, 4, 3))
    made = reference.attention_backward(q, k, v, do, mask="causal", scale=0.7)
    for operand, gradient in zip((q, k, v), made, strict=True):
        for at in np.ndindex(operand.shape):
            sides = []
            for step in (1e-6, -1e-6):
                operand[at] += step
                sides.append(
                    np.sum(do * reference.attention(q, k, v, mask="causal", scale=0.7)[0])
                )
                operand[at] -= step
            assert abs((sides[0] - sides[1]) / 2e-6 - gradient[at]) < 1e-8


@functools.cache
def forward_then_backward(strategy, ranks, dtype, mask, group=2, sq=48, sk=40):
    """Run both programs, the second on the results of the first."""
    sizes = {"h": 4, "group": group, "sq": sq, "sk": sk, "d": 16, "dv": 8, "dtype": dtype}
    rng = np.random.default_rng(7)
    forward = mc.programs.attention(mask=mask, **sizes)
    backward = mc.programs.attention_backward(mask=mask, **sizes)
    inputs = {b.name: rounded(rng.standard_normal(b.shape), b.dtype) for b in forward.inputs}
    method, mesh = mc.strategies.get(strategy), mc.Mesh(gpu=ranks)
    out = run(method.schedule(mesh, forward).compile(), inputs)
    do = rounded(rng.standard_normal(out["O"].shape), dtype)
    made = run(method.schedule(mesh, backward).compile(), {**inputs, **out, "dO": do})
    exact = reference.attention_backward(inputs["Q"], inputs["K"], inputs["V"], do, mask=mask)
    return {
        name: (made[name], value) for name, value in zip(("dQ", "dK", "dV"), exact, strict=True)
    }


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("mask", [None, mc.causal(-5), mc.window(7)])
def test_gradients_of_the_whole_operator(dtype, mask):
    for name, (made, exact) in forward_then_backward("ring", 3, dtype, mask).items():
        # The output that backward is given was rounded, too.
        assert reference.relative_error(made, exact) < 3 * LIMITS[dtype], name
        assert made.dtype == (np.float32 if dtype == "bf16" else dtypes.storage(dtype))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(
    "strategy", ["ring", "context-parallel", "shifted-reduction", "hybrid"]
)
def test_error_of_gradients_does_not_grow_with_the_ranks(strategy, dtype):
    errors = {
        ranks: {
            name: reference.relative_error(*pair)
            for name, pair in forward_then_backward(strategy, ranks, dtype, mc.causal()).items()
        }
        for ranks in (1, 3, 8)
    }
    for name, alone in errors[1].items():
        for ranks in (3, 8):
            assert errors[ranks][name] <= 1.25 * alone + ULP[dtype], (ranks, name, errors)


@pytest.mark.parametrize("strategy", ["ring", "shifted-reduction", "hybrid"])
def test_gradients_do_not_depend_on_when_messages_arrive(strategy):
    program = mc.programs.attention_backward(h=2, sq=21, sk=22, d=8, dtype="f32", mask="causal")
    plan = mc.strategies.get(strategy).schedule(mc.Mesh(gpu=4), program).compile()
    inputs = {
        buffer.name: rounded(reference.draw(program, 1)[buffer.name], buffer.dtype)
        for buffer in program.inputs
    }
    first = run(plan, inputs)
    for seed in range(1, 9):
        for name, array in run(plan, inputs, SimOptions(seed=seed)).items():
            np.testing.assert_array_equal(array, first[name])


def test_rows_that_see_nothing_have_no_gradient():
    program = mc.programs.attention_backward(
        h=2, sq=9, sk=12, d=4, mask=mc.causal(-4), dtype="f32"
    )
    plan = mc.strategies.get("ring").schedule(mc.Mesh(gpu=4), program).compile()
    inputs = reference.draw(program, 0)
    assert np.isneginf(inputs["LSE"][..., :4]).all()
    made = run(plan, {name: np.float32(value) for name, value in inputs.items()})
    assert not made["dQ"][:, :4].any()
    assert made["dQ"][:, 6:].any()
    # No query sees the last keys.
    assert not made["dK"][:, 5:].any()
    assert not made["dV"][:, 5:].any()
    assert all(np.isfinite(array).all() for array in made.values())


@pytest.mark.parametrize(("h", "group"), [(8, 4), (12, 2), (12, 3), (6, 6), (10, 5), (6, 1)])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_heads_of_a_group_are_summed_wherever_they_are(h, group, ranks):
    program = mc.programs.attention_backward(
        h=h, group=group, sq=9, sk=8, d=4, mask="causal", dtype="f32"
    )
    # Steps of one rank add to one sum; ranks that share a group add theirs.
    check(mc.Schedule(program, mc.Mesh(gpu=ranks)).tile("h", ranks))
    check(mc.Schedule(program, mc.Mesh(gpu=ranks)).parallelize("h", "gpu"))
    tokens = {
        buffer.name: {axis: "gpu"}
        for buffer in program.buffers
        for axis in ("sq", "sk")
        if axis in [dim.axis.name for dim in buffer.dims if dim.axis is not None]
    }
    check(mc.Schedule(program, mc.Mesh(gpu=ranks), tokens).parallelize("h", "gpu"))
    nested = mc.Schedule(program, mc.Mesh(node=2, gpu=ranks))
    check(nested.parallelize("h", "gpu").parallelize("sq", "node").shift("sk", by="sq"))
