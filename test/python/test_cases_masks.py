"""What users of such systems suffer from, one named test for each kind: masks and layouts."""

import mercury as mc
import numpy as np
import pytest
from case_checks import BOTH, check, inputs_of, schedule_by
from mercury import reference
from mercury.runtime import dtypes


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("strategy", ["ring", "context-parallel"])
def test_c25_balanced_causal_attention_comes_back_in_order(program, strategy):
    """Zigzag over 8 ranks in bf16: the layout and its inverse come from one place."""
    length, ranks = 131, 8
    layout = {"sq": "zigzag", "sk": "zigzag"}
    made = program(h=2, sq=length, sk=length, d=16, mask="causal", dtype="bf16", layout=layout)
    plan, _ = check(schedule_by(strategy, f"gpu={ranks}", made))
    inputs = inputs_of(made)
    output = made.outputs[0].name
    shards = plan.run(plan.scatter(**inputs))
    joined = dtypes.decode(np.concatenate([s[output] for s in shards], axis=1), "bf16")
    found = joined[:, plan.layout(output).inverse("sq")]
    want = reference.evaluate(made, inputs)[output]
    assert reference.relative_error(found, want) < 4e-3
    # In the order of the ranks it is another result.
    assert reference.relative_error(joined, want) > 0.1


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("strategy", ["ring", "context-parallel", "hybrid"])
def test_c26_a_window_is_not_dropped(program, strategy):
    """A sliding window over 4 ranks; without it the result is another one."""
    sizes = {"h": 4, "sq": 256, "sk": 256, "d": 8, "dtype": "f32"}
    windowed = program(mask=mc.window(15), **sizes)
    plan, _ = check(schedule_by(strategy, "gpu=4", windowed))
    inputs = inputs_of(windowed)
    output = windowed.outputs[0].name
    made = plan.gather(plan.run(plan.scatter(**inputs)))[output]
    wide = reference.evaluate(program(mask="causal", **sizes), inputs)[output]
    assert reference.relative_error(made, wide) > 0.1


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("direction", [1, -1])
def test_c27_a_window_on_a_ring(program, direction):
    """A window that reaches one shard back, on a ring of 8 in both directions."""
    made = program(h=1, sq=264, sk=264, d=8, mask=mc.window(33), dtype="f32")
    schedule = mc.Schedule(made, mc.Mesh(gpu=8))
    plan, _ = check(schedule.parallelize("sq", "gpu").shift("sk", by="sq", direction=direction))
    if program is mc.programs.attention:
        # Far shards are not visited, where the near ones come first.
        assert plan.report.messages == {"gpu": 2 * 8 * (1 if direction == -1 else 7)}


def test_c30_a_table_of_booleans_is_refused():
    """A mask that cannot be said is refused with what can be said."""
    table = np.tril(np.ones((1, 1, 33, 33), bool))
    with pytest.raises(mc.ProgramError, match="expected a mask, 'full' or 'causal'"):
        mc.programs.attention(h=4, sq=33, sk=33, d=8, mask=table)


@pytest.mark.parametrize("mask", ["sliding", 5, [[True]]])
def test_c30_what_is_no_mask_is_refused(mask):
    """A mask that cannot be said is refused with what can be said."""
    with pytest.raises(mc.ProgramError, match="expected a mask, 'full' or 'causal'"):
        mc.programs.attention(h=4, sq=33, sk=33, d=8, mask=mask)


@pytest.mark.parametrize("strategy", ["usp", "hybrid", "double-ring", "split-reduction"])
def test_c30_hybrids_keep_a_mask(strategy):
    """A mask on two levels is part of the program, not of the method."""
    mask = mc.causal(3).packed([0, 12, 33])
    program = mc.programs.attention(h=4, sq=33, sk=33, d=8, mask=mask, dtype="f32")
    check(schedule_by(strategy, "u=2,r=2", program))


@pytest.mark.parametrize("steps", ["shift(sk, by=sq)", "shard(K, sk, gpu); shard(V, sk, gpu)"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_c31_replicated_beside_sharded(steps, ranks):
    """Keys of a text on every rank beside sharded ones of an image: they count once."""

    @mc.program
    def joint(p, h=2, image=41, text=7, d=8):
        b, heads, sq, sk = p.axes(b=1, h=h, sq=image, sk=image)
        q = p.input("Q", (b, sq, heads, d), "f32")
        k, v = (p.input(name, (b, sk, heads, d), "f32") for name in ("K", "V"))
        tk, tv = (p.input(name, (b, text, heads, d), "f32") for name in ("TK", "TV"))
        o = p.output("O", (b, sq, heads, d), "f32")
        lse = p.output("LSE", (b, heads, sq), "f32")
        with p.loops(b, heads, sq, sk):
            pair = p.attention(q[...], k[...], v[...], scale=d**-0.5)
            whole = p.attention(q[...], tk[...], tv[...], scale=d**-0.5)
            o[...], lse[...] = p.merged(pair, over=(sk,), merge="softmax", once=whole)

    program = joint()
    schedule = mc.Schedule(program, mc.Mesh(gpu=ranks)).parallelize("sq", "gpu").apply(steps)
    plan, _ = check(schedule)
    assert plan.layout("TK").shape(0) == (1, 7, 2, 8)
    assert plan.layout("K").shape(0)[1] < 41
    # Independent of the program's own reference: one sequence of both.
    inputs = inputs_of(program)
    keys, values = (np.concatenate([inputs[n], inputs[f"T{n}"]], axis=1) for n in ("K", "V"))
    want, _ = reference.attention(inputs["Q"], keys, values)
    made = plan.gather(plan.run(plan.scatter(**inputs)))["O"]
    assert reference.relative_error(made, want) < 2e-6


@pytest.mark.parametrize("strategy", ["ring", "ulysses", "hybrid"])
def test_c31_keys_on_every_rank_outside(strategy):
    """Replicated keys and sharded values outside, by type and not by guess."""
    program = mc.programs.attention(h=4, sq=31, sk=29, d=8, mask="causal", dtype="f32")
    recipe = "; ".join(mc.strategies.get(strategy).steps(mc.Mesh(gpu=4), program))
    # The split of a level renames it in the boundary, too.
    boundary = {"Q": {"sq": "gpu"}, "K": {}, "V": {"sk": "gpu"}}
    check(mc.Schedule(program, mc.Mesh(gpu=4), boundary).apply(recipe))
