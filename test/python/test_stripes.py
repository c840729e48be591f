"""Masked attention on striped axes: few launches, and right ones."""

import mercury as mc
import pytest
from mercury._mlir import ir
from mercury._mlir._mlir_libs import _mercury
from mercury.runtime.trial import trial

RANKS = 3
MASKS = {
    "causal": mc.causal(),
    "later": mc.causal(5),
    "earlier": mc.causal(-4),
    "window": mc.window(21, 0),
    "both sides": mc.window(9, 4),
    "itself": mc.window(0, 0),
    "behind": mc.window(-2, 3),
}


def striped(program, chunk, mask, sq, sk=None, **sizes):
    """Make a program whose queries and keys are dealt to the ranks in turn."""
    layout = dict.fromkeys(("sq", "sk"), f"striped({chunk})")
    sizes = {"h": 2, "d": 8, "dtype": "f32", **sizes}
    return program(sq=sq, sk=sk or sq, mask=mask, layout=layout, **sizes)


def compiled(program, strategy="ring", mesh=None, deferred=()):
    schedule = mc.strategies.get(strategy).schedule(mesh or mc.Mesh(gpu=RANKS), program)
    for name in deferred:
        schedule.defer(name)
    return schedule.compile()


def launches(plan):
    """Count the launches of all ranks."""
    return _mercury.check_plans(ir.Module.parse(plan.spmd, ir.Context()))[0][0][2]


def check(plan):
    result = trial(plan)
    assert result.right, (plan.program, result.errors)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize(
    "program", [mc.programs.attention, mc.programs.attention_backward], ids=["fwd", "bwd"]
)
def test_every_mask_is_of_positions(program, chunk, mask):
    check(compiled(striped(program, chunk, MASKS[mask], 65)))


@pytest.mark.parametrize("mask", ["causal", "window"])
@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize(
    "program", [mc.programs.attention, mc.programs.attention_backward], ids=["fwd", "bwd"]
)
def test_a_thousand_positions(program, chunk, mask):
    check(compiled(striped(program, chunk, MASKS[mask], 1000)))


@pytest.mark.parametrize("mask", ["causal", "both sides", "itself"])
@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize(("sq", "sk"), [(23, 50), (50, 23), (2, 40), (40, 2)])
def test_queries_and_keys_of_two_lengths(sq, sk, chunk, mask):
    for program in (mc.programs.attention, mc.programs.attention_backward):
        check(compiled(striped(program, chunk, MASKS[mask], sq, sk)))


@pytest.mark.parametrize("chunk", [1, 2])
@pytest.mark.parametrize("mask", ["causal", "window", "itself"])
def test_partial_results_that_wait(mask, chunk):
    # What a step does not see is the merge's identity in its slot.
    check(compiled(striped(mc.programs.attention, chunk, MASKS[mask], 41), deferred=["O"]))


@pytest.mark.parametrize("chunk", [1, 2])
@pytest.mark.parametrize("documents", [[0, 5, 5, 17, 41], [0, 1, 40, 41]])
@pytest.mark.parametrize("mask", [mc.Mask(), mc.causal(), mc.window(3, 2)])
def test_packed_documents(mask, documents, chunk):
    for program in (mc.programs.attention, mc.programs.attention_backward):
        check(compiled(striped(program, chunk, mask.packed(documents), 41)))


@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize("strategy", ["usp", "double-ring", "hybrid"])
def test_other_methods(strategy, chunk):
    mesh = mc.Mesh(node=2, gpu=2)
    for program in (mc.programs.attention, mc.programs.attention_backward):
        made = striped(program, chunk, mc.window(21, 0), 65, h=4, group=2)
        check(compiled(made, strategy, mesh))


@pytest.mark.parametrize("cuts", [("striped(2)", "striped(5)"), ("zigzag", "striped(2)")])
def test_queries_cut_otherwise(cuts):
    for program in (mc.programs.attention, mc.programs.attention_backward):
        for mask in ("causal", "both sides", "later"):
            layout = dict(zip(("sq", "sk"), cuts, strict=True))
            made = program(h=2, sq=65, sk=65, d=8, mask=MASKS[mask], layout=layout, dtype="f32")
            check(compiled(made))


@pytest.mark.parametrize("chunk", [1, 2])
@pytest.mark.parametrize("whole", ["sq", "sk"])
@pytest.mark.parametrize("mask", [mc.causal(), mc.window(9, 4), mc.Mask(documents=[0, 5, 41])])
def test_stripes_beside_a_whole_axis(mask, whole, chunk):
    """All queries of a rank, or all keys, lie in one piece."""
    for program in (mc.programs.attention, mc.programs.attention_backward):
        made = striped(program, chunk, mask, 41)
        schedule = mc.Schedule(made, mc.Mesh(gpu=RANKS))
        check(schedule.parallelize("sk" if whole == "sq" else "sq", "gpu").compile())


@pytest.mark.parametrize("mask", ["causal", "later", "window", "both sides"])
def test_one_by_one_takes_a_launch_a_step(mask):
    for program in (mc.programs.attention, mc.programs.attention_backward):
        assert launches(compiled(striped(program, 1, MASKS[mask], 65))) == RANKS * RANKS


def test_launches_grow_as_the_stripes():
    for mask, most in (("causal", 2), ("both sides", 3)):
        for length in (120, 240, 480):
            plan = compiled(striped(mc.programs.attention, 4, MASKS[mask], length))
            stripes = length // 4 // RANKS
            assert launches(plan) <= most * stripes * RANKS * RANKS


def test_gradients_of_keys_are_merged_few_times():
    # Once for each stripe of the queries, they would be rounded twice as far.
    program = striped(mc.programs.attention_backward, 2, mc.causal(), 600, group=2, d=4)
    whole, dealt = (trial(compiled(program, mesh=mc.Mesh(gpu=n))).errors for n in (1, 2))
    for name in dealt:
        assert dealt[name] <= 1.25 * whole[name] + 2**-24, name


def test_gradients_take_no_more_launches():
    for mask, most in (("causal", 2), ("both sides", 4)):
        plan = compiled(striped(mc.programs.attention_backward, 4, MASKS[mask], 480))
        assert launches(plan) <= most * (480 // 4 // RANKS) * RANKS * RANKS
