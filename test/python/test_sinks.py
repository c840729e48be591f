"""Attention sinks and their gradients against float64, on many schedules."""

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.runtime.trial import LIMITS
from program_checks import ATTENTION, check, run

# --- The gradient by the sink --------------------------------------------------------


@pytest.mark.parametrize("mesh", ["gpu=1", "gpu=3", "node=2,gpu=2"])
@pytest.mark.parametrize("strategy", ATTENTION)
def test_gradient_by_the_sink_by_every_attention_strategy(strategy, mesh):
    program = mc.programs.attention_backward(
        b=2, h=24, group=2, sq=19, sk=23, d=8, dv=5, mask="causal", sink=True, dtype="f32"
    )
    result = check(mc.strategies.get(strategy).schedule(mc.Mesh.parse(mesh), program))
    assert "dSINK" in result.errors


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_gradient_by_the_sink_of_a_balanced_causal_mask(ranks, dtype):
    program = mc.programs.attention_backward(
        h=6,
        group=3,
        sq=29,
        sk=29,
        d=8,
        mask="causal",
        sink=True,
        dtype=dtype,
        layout={"sq": "zigzag", "sk": "zigzag"},
    )
    check(mc.strategies.get("ring").schedule(mc.Mesh(gpu=ranks), program))


def test_reference_gradient_by_the_sink_is_that_of_differences():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, n, h, 3)) for n, h in ((4, 4), (5, 2), (5, 2)))
    do, sink = rng.standard_normal((2, 4, 4, 3)), rng.standard_normal(4)
    o, lse = reference.attention(q, k, v, mask=mc.causal(-1), sink=sink)
    made = reference.attention_sink_backward(o, do, lse, sink)
    assert made.all()
    for head in range(4):
        sides = []
        for step in (1e-6, -1e-6):
            moved = sink + step * (np.arange(4) == head)
            sides.append(
                np.sum(do * reference.attention(q, k, v, mask=mc.causal(-1), sink=moved)[0])
            )
        assert abs((sides[0] - sides[1]) / 2e-6 - made[head]) < 1e-8


def test_the_nest_of_the_sink_runs_where_the_rows_lie():
    """Its own nest moves one number a head: O, dO and LSE stay where they are."""
    sizes = {"h": 4, "sq": 64, "sk": 64, "d": 8, "mask": "causal", "dtype": "f32"}
    mesh, moved = mc.Mesh(gpu=4), {}
    for sink in (False, True):
        program = mc.programs.attention_backward(sink=sink, **sizes)
        schedule = mc.strategies.get("ring").schedule(mesh, program)
        moved[sink] = check(schedule).report.bytes_sent["gpu"]
    # Each rank gathers the others' partial sums.
    assert moved[True] - moved[False] == 4 * 3 * 4 * 4
    # From tokens to heads, what both nests take moves once; each rank then has one head's
    # gradient, which lives whole outside.
    program = mc.programs.attention_backward(sink=True, **sizes)
    ulysses = mc.strategies.get("ulysses")
    whole = check(ulysses.schedule(mesh, program)).report.bytes_sent["gpu"]
    plain = mc.programs.attention_backward(**sizes)
    apart = check(ulysses.schedule(mesh, plain)).report.bytes_sent["gpu"]
    assert whole - apart == 4 * 3 * 1 * 4


@pytest.mark.parametrize("name", ["sq", "h"])
def test_a_schedule_may_spread_the_nest_of_the_sink_itself(name):
    program = mc.programs.attention_backward(h=6, sq=13, sk=11, d=4, sink=True, dtype="f32")
    schedule = mc.Schedule(program, mc.Mesh(gpu=3))
    check(schedule.parallelize(name, "gpu").parallelize(f"{name}_", "gpu"))


def test_parts_that_share_a_group_do_not_travel():
    program = mc.programs.attention_backward(h=8, group=4, sq=9, sk=8, d=4, dtype="f32")
    check(mc.Schedule(program, mc.Mesh(gpu=4)).parallelize("sq", "gpu").shift("h", by="sq"))
    aligned = mc.programs.attention_backward(h=8, group=2, sq=9, sk=8, d=4, dtype="f32")
    check(mc.Schedule(aligned, mc.Mesh(gpu=4)).parallelize("sq", "gpu").shift("h", by="sq"))


def test_over_names_the_heads_that_a_result_has_only_divided():
    @mc.program
    def wrong(p):
        b, h, sq, sk = p.axes(b=1, h=4, sq=4, sk=4)
        q, k = p.input("Q", (b, sq, h, 2), "f32"), p.input("K", (b, sk, h / 2, 2), "f32")
        lse = p.input("L", (b, h, sq), "f32")
        dq, dk = p.output("dQ", (b, sq, h, 2), "f32"), p.output("dK", (b, sk, h / 2, 2), "f32")
        dv = p.output("dV", (b, sk, h / 2, 2), "f32")
        with p.loops(b, h, sq, sk):
            tiles = (q[...], k[...], k[...], q[...], q[...], lse[...])
            made = p.attention_backward(*tiles, scale=1.0)
            dq[...] = p.merged(made[0], over=(sk,), merge="sum")
            dk[...], dv[...] = p.merged(made[1:], over=(sq,), merge="sum")

    with pytest.raises(
        mc.ProgramError, match="the kernel takes 'h', the buffer has 'h/2' of it"
    ):
        mc.Schedule(wrong(), mc.Mesh(gpu=2))


def test_the_log_sum_exp_is_as_wide_as_the_sums():
    @mc.program
    def narrow(p):
        b, h, sq, sk = p.axes(b=1, h=2, sq=4, sk=4)
        q, k = p.input("Q", (b, sq, h, 2), "bf16"), p.input("K", (b, sk, h, 2), "bf16")
        lse = p.input("L", (b, h, sq), "bf16")
        outputs = [p.output(n, t.dims, "bf16") for n, t in (("dQ", q), ("dK", k), ("dV", k))]
        with p.loops(b, h, sq, sk):
            tiles = (q[...], k[...], k[...], q[...], q[...], lse[...])
            made = p.attention_backward(*tiles, scale=1.0)
            for buffer, tile, axis in zip(outputs, made, (sk, sq, sq), strict=True):
                buffer[...] = p.merged(tile, over=(axis,), merge="sum")

    schedule = mc.Schedule(narrow(), mc.Mesh(gpu=2))
    with pytest.raises(mc.CompileError, match="must have elements of 'f32' in operand 5"):
        schedule.compile()


# --- Attention sinks ----------------------------------------------------------------

SINK_RECIPES = [
    "parallelize(sq, gpu); shift(sk, by=sq)",
    "parallelize(sk, gpu); replicate(O, gpu); replicate(LSE, gpu)",
    "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu)",
    "parallelize(sk, gpu); shard(O, h, gpu); shard(LSE, h, gpu)",
    "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu); shift(sq, by=sk, offset=1)",
    "parallelize(h, gpu)",
    "parallelize(h, gpu); shift(sk, by=h)",
    "parallelize(sq, gpu); shard(SINK, h, gpu); tile(sk, 3)",
    "tile(sk, 4); tile(sq, 2); parallelize(b, gpu)",
]


@pytest.mark.parametrize("recipe", SINK_RECIPES)
@pytest.mark.parametrize("ranks", [1, 4])
def test_a_sink_enters_once_whatever_the_schedule(recipe, ranks):
    program = mc.programs.attention(
        b=2, h=6, group=2, sq=13, sk=15, d=8, dv=5, mask=mc.causal(-4), sink=True, dtype="f32"
    )
    rng = np.random.default_rng(ranks)
    inputs = {b.name: np.float32(rng.standard_normal(b.shape)) for b in program.inputs}
    schedule = mc.Schedule(program, mc.Mesh(gpu=ranks)).apply(recipe)
    made = run(schedule.compile(), inputs)
    q, k, v, sink = (inputs[name] for name in ("Q", "K", "V", "SINK"))
    want = dict(
        zip(
            ("O", "LSE"),
            reference.attention(q, k, v, mask=mc.causal(-4), sink=sink),
            strict=True,
        )
    )
    for name, value in want.items():
        assert reference.relative_error(made[name], value) < LIMITS["f32"]
    # A query that sees no key has the sink alone.
    assert not made["O"][:, :4].any()
    np.testing.assert_array_equal(made["LSE"][..., :4], np.tile(sink[None, :, None], (2, 1, 4)))
    # Without it, or with it twice, the result is another one.
    for wrong in (None, sink + np.log(2)):
        other = reference.attention(q, k, v, mask=mc.causal(-4), sink=wrong)
        assert reference.relative_error(made["O"], other[0]) > 1e-2
        assert reference.relative_error(made["LSE"], other[1]) > 1e-2


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
@pytest.mark.parametrize("strategy", ["ring", "hybrid", "ulysses", "split-reduction"])
def test_sinks_in_every_dtype(strategy, dtype):
    program = mc.programs.attention(
        h=8, group=2, sq=17, sk=19, d=8, mask="causal", sink=True, dtype=dtype
    )
    check(mc.strategies.get(strategy).schedule(mc.Mesh(gpu=4), program))


def test_decoding_with_a_sink():
    program = mc.programs.decode_attention(h=8, group=4, sk=33, d=8, sink=True)
    check(mc.strategies.get("tree").schedule(mc.Mesh(node=2, gpu=2), program))


def test_a_sink_of_minus_infinity_changes_no_bit():
    sizes = {"h": 2, "sq": 9, "sk": 11, "d": 4, "mask": mc.causal(-2), "dtype": "f32"}
    plain = mc.strategies.get("ring").schedule(mc.Mesh(gpu=3), mc.programs.attention(**sizes))
    sunk = mc.programs.attention(sink=True, **sizes)
    inputs = {
        name: np.float32(value) for name, value in reference.draw(plain.program, 0).items()
    }
    first = run(plain.compile(), inputs)
    plan = mc.strategies.get("ring").schedule(mc.Mesh(gpu=3), sunk).compile()
    second = run(plan, {**inputs, "SINK": np.full(2, -np.inf, np.float32)})
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value)


def test_gradients_beside_a_sink_come_of_what_it_has_entered():
    rng = np.random.default_rng(3)
    sizes = {"h": 4, "group": 2, "sq": 6, "sk": 7, "d": 3, "dtype": "f64"}
    program = mc.programs.attention_backward(mask="causal", **sizes)
    inputs = reference.draw(program, 3)
    q, k, v, do = (inputs[name] for name in ("Q", "K", "V", "dO"))
    sink = rng.standard_normal(4)
    options = {"mask": "causal", "sink": sink}
    inputs["O"], inputs["LSE"] = reference.attention(q, k, v, **options)
    plan = mc.strategies.get("ring").schedule(mc.Mesh(gpu=3), program).compile()
    made = run(plan, inputs)
    for operand, gradient in ((q, made["dQ"]), (k, made["dK"]), (v, made["dV"])):
        for at in [tuple(rng.integers(0, operand.shape)) for _ in range(20)]:
            sides = []
            for step in (1e-6, -1e-6):
                operand[at] += step
                sides.append(np.sum(do * reference.attention(q, k, v, **options)[0]))
                operand[at] -= step
            assert abs((sides[0] - sides[1]) / 2e-6 - gradient[at]) < 1e-7


def test_what_enters_once_is_a_partial_result_of_the_merge():
    @mc.program
    def biased(p):
        i, j, k = p.axes(i=8, j=6, k=5)
        a, b = p.input("A", (i, k), "f32"), p.input("B", (k, j), "f32")
        left, right = p.input("L", (i, 1), "f32"), p.input("R", (1, j), "f32")
        c = p.output("C", (i, j), "f32")
        with p.loops(i, j, k):
            c[i, j] = p.merged(
                p.matmul(a[i, k], b[k, j]),
                over=(k,),
                merge="sum",
                once=p.matmul(left[i, :], right[:, j]),
            )

    for recipe in (
        "parallelize(k, gpu)",
        "parallelize(k, gpu); shard(C, i, gpu)",
        "parallelize(k, gpu); shard(C, j, gpu); shift(j, by=k)",
        "parallelize(i, gpu); shift(k, by=i)",
        "tile(k, 3); parallelize(j, gpu)",
    ):
        check(mc.Schedule(biased(), mc.Mesh(gpu=3)).apply(recipe))
