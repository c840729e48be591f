"""Steps that compute beside each other: right in lanes, and where they run in turn."""

import re

import mercury as mc
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial
from mercury.tuner import Space, SpaceOptions

ZIGZAG = {"sq": "zigzag", "sk": "zigzag"}
PULL = "parallelize(sq, gpu); shift(sk, by=sq, reads=pull{}); "
MATMUL = "parallelize(j, gpu); shift(i, by=j{}); overlap(i)"


def attention(**options):
    sizes = {"b": 2, "h": 4, "sq": 13, "sk": 13, "d": 4, "dtype": "bf16", "mask": "causal"}
    return mc.programs.attention(**(sizes | options))


CASES = {
    "products, pulled": (lambda: mc.programs.matmul(m=9, n=7, depth=5), MATMUL, ", reads=pull"),
    "products, sent": (lambda: mc.programs.matmul(m=9, n=7, depth=5), MATMUL, ""),
    "own part last": (
        lambda: mc.programs.matmul(m=9, n=7, depth=5, dtype="f32"),
        MATMUL,
        ", reads=pull, offset=1",
    ),
    "an empty part": (lambda: mc.programs.matmul(m=1, n=7, depth=5), MATMUL, ", reads=pull"),
    "attention merged once": (
        lambda: attention(mask="full"),
        PULL + "defer(O, partial=bf16); overlap(sk)",
        "",
    ),
    "in float32": (attention, PULL + "defer(O); overlap(sk)", ""),
    "grouped heads": (lambda: attention(group=2), PULL + "defer(O); overlap(sk)", ", offset=1"),
    "both ends": (
        lambda: attention(layout=ZIGZAG),
        PULL + "defer(O, partial=bf16); overlap(sk)",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_in_lanes_are_right(case):
    """The checker proves that the lanes do not race; ranks that are late change nothing."""
    program, recipe, more = CASES[case]
    schedule = mc.Schedule(program(), mc.Mesh(gpu=2)).apply(recipe.format(more))
    plan = schedule.compile()
    result = trial(plan, 2, SimOptions(seed=3, max_delay_us=100))
    assert result.right, result.errors
    used = re.findall(r"commir\.lane\.use (\d)", plan.spmd)
    assert used == ["1", "0"], used
    assert "commir.lane.order 1 before 0" in plan.spmd


def test_one_rank_has_nothing_to_overlap():
    schedule = mc.Schedule(mc.programs.matmul(m=9, n=7, depth=5), mc.Mesh(gpu=1))
    plan = schedule.apply(MATMUL.format("")).compile()
    assert "commir.lane" not in plan.spmd.partition("func.func")[2]
    assert trial(plan, 0).right


SHAPES = {
    "three ranks": (mc.Mesh(gpu=3), "sk", PULL),
    "five ranks, some empty": (mc.Mesh(gpu=5), "sk", PULL.replace(", reads=pull", "")),
    "two parts a rank": (
        mc.Mesh(gpu=3),
        "sk_outer",
        "tile(sk, 6); parallelize(sq, gpu); shift(sk_outer, by=sq{}); ",
    ),
}


@pytest.mark.parametrize("layout", ["block", "zigzag", "striped(1)", "striped(2)"])
@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("shape", SHAPES)
def test_many_steps_take_turns_in_two_lanes(shape, mask, layout):
    """As many slots as two steps and one more; pieces of a part are all in its lane."""
    mesh, loop, recipe = SHAPES[shape]
    parts = {"b": 1, "h": 2, "sq": 5, "sk": 13} if "empty" in shape else {}
    program = attention(mask=mask, layout={"sq": layout, "sk": layout}, **parts)
    made = recipe.format("") + f"defer(O); overlap({loop})"
    plan = mc.Schedule(program, mesh).apply(made).compile()
    used = re.findall(r"commir\.lane\.use (\d)", plan.spmd)
    assert used == ["1", "0"] * (len(used) // 2), used
    assert len(used) >= 2
    result = trial(plan, 2, SimOptions(seed=3, max_delay_us=100))
    assert result.right, result.errors


def test_overlap_changes_no_result_over_a_narrow_link():
    """What is widened has memory for each lane."""
    program = attention(mask="full", dtype="f32")
    ring = "parallelize(sq, gpu); shift(sk, by=sq, link=bf16); defer(O)"
    plain, laned = (
        trial(mc.Schedule(program, mc.Mesh(gpu=3)).apply(each).compile(), 2).errors
        for each in (ring, ring + "; overlap(sk)")
    )
    assert plain == laned


IN_TURN = {
    "merged": PULL + "overlap(sk)",
    "chunks": PULL.format(", chunks=2") + "defer(O); overlap(sk)",
    "repeated": "tile(b, 2); " + PULL + "defer(O); overlap(sk)",
    "results move": "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu); "
    "shift(sq, by=sk, offset=1); overlap(sq)",
}


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("case", IN_TURN)
def test_steps_that_cannot_overlap_run_in_turn(case, ranks):
    schedule = mc.Schedule(attention(), mc.Mesh(gpu=ranks)).apply(IN_TURN[case].format(""))
    plan = schedule.compile()
    assert "commir.lane" not in plan.spmd.partition("func.func")[2]
    result = trial(plan, 2, SimOptions(seed=3, max_delay_us=100))
    assert result.right, result.errors


TWO_LEVELS = mc.Mesh(node=2, gpu=3)
AROUND = {
    "sums over the ranks of another level": (
        lambda: mc.programs.matmul(m=13, n=7, depth=5),
        TWO_LEVELS,
        "parallelize(k, node); shard(C, i, node); tile(i, 4); shift(i_outer, by=k, offset=2); "
        "tile(j, 3); shard(B, k, gpu); parallelize(i_inner, gpu); overlap(i_outer)",
    ),
    "gradients that all ranks get": (
        lambda: mc.programs.attention_backward(b=4, sq=9, sk=7, d=3),
        mc.Mesh(gpu=2),
        "parallelize(sk, gpu); replicate(dQ, gpu); shift(b, by=sk); overlap(b)",
    ),
    "steps that share rows of a group": (
        lambda: mc.programs.attention_backward(b=2, h=6, group=2, sq=9, sk=7, d=3),
        mc.Mesh(gpu=2),
        "parallelize(b, gpu); shift(h, by=b); replicate(Q, gpu); overlap(h); "
        "defer(dQ); defer(dK); defer(dV)",
    ),
    "parts from ranks further than the next": (
        lambda: mc.programs.matmul(m=13, n=11, depth=3),
        mc.Mesh(gpu=5),
        "parallelize(j, gpu); shift(i, by=j, offset=2); overlap(i); defer(C)",
    ),
    "rings of unlike lengths": (
        lambda: mc.programs.matmul(m=22, n=10, depth=19),
        TWO_LEVELS,
        "parallelize(i, node); parallelize(j, gpu); shift(k, by=[i, j]); overlap(k); defer(C)",
    ),
    "panels": (
        lambda: mc.programs.matmul(m=7, n=5, depth=22, dtype="f32"),
        mc.Mesh(node=4, gpu=2),
        "shard(A, k, gpu, reads=broadcast); parallelize(i, node); shift(k, by=i); overlap(k); "
        "defer(C)",
    ),
}


@pytest.mark.parametrize("case", AROUND)
def test_what_steps_in_lanes_share_is_in_order(case):
    """The checker would tell what a launch of one lane and what is behind it both touch."""
    program, mesh, recipe = AROUND[case]
    result = trial(mc.Schedule(program(), mesh).apply(recipe).compile(), 2)
    assert result.right, result.errors


def test_a_recipe_says_that_steps_overlap():
    made = mc.Schedule(mc.programs.matmul(m=9, n=7, depth=5), mc.Mesh(gpu=2))
    recipe = made.parallelize("j", "gpu").shift("i", by="j").overlap("i").recipe()
    assert recipe == "parallelize(j, gpu); shift(i, by=j); overlap(i)"
    again = mc.Schedule(mc.programs.matmul(m=9, n=7, depth=5), mc.Mesh(gpu=2)).apply(recipe)
    assert again.recipe() == recipe


@pytest.mark.parametrize(
    ("program", "loop"),
    [(mc.programs.matmul(m=8, n=8, depth=8), "i"), (attention(b=1, mask="full"), "sk")],
)
def test_the_space_has_what_can_overlap_and_all_of_it_lowers(program, loop):
    mesh = mc.Mesh(gpu=2)
    plain = {each.recipe for each in Space(program, mesh)}
    wide = {each.recipe for each in Space(program, mesh, options=SpaceOptions(overlap=True))}
    fresh = wide - plain
    assert plain < wide
    assert all("overlap(" in recipe for recipe in fresh)
    along = [recipe for recipe in fresh if f"overlap({loop})" in recipe]
    assert along
    assert all("defer(" in recipe for recipe in along) == (loop == "sk")
    for recipe in fresh:
        plan = mc.Schedule(program, mesh).apply(recipe).compile()
        assert "commir.lane.use 1" in plan.spmd, recipe
