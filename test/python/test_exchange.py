"""Exchanges in slices, under the work on others: right, with no collective, or whole.

Extents are odd, and slices uneven or empty. Every plan is proved by the checker before it runs.
"""

import re

import mercury as mc
import pytest
from mercury import strategies
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial

ZIGZAG = {"sq": "zigzag", "sk": "zigzag"}
BATCHES = "tile(b, 2); parallelize(b_inner, {0}); overlap(b_outer)"
HEADS = "tile(h, 2); parallelize(h_inner, {0}); overlap(h_outer)"
HEADS_OF_BATCHES = "tile(b, [1, 3]); parallelize(h, {0}); overlap(b_outer)"
GATHERED = "tile(b, [1, 3]); parallelize(sq, {0}); {1}; overlap(b_outer)"
MESHES = {
    "two": (mc.Mesh(gpu=2), "gpu"),
    "three": (mc.Mesh(gpu=3), "gpu"),
    "two levels": (mc.Mesh(node=2, gpu=2), "[node, gpu]"),
    "the inner level": (mc.Mesh(node=2, gpu=2), "gpu"),
}


def program(backward=False, **options):
    sizes = {"b": 4, "h": 4, "sq": 13, "sk": 13, "d": 4, "dtype": "bf16", "mask": "causal"}
    made = mc.programs.attention_backward if backward else mc.programs.attention
    return made(**(sizes | options))


def schedule(made, mesh, recipe, levels="gpu", boundary="ring"):
    base = strategies.get(boundary).start(mesh, made)
    return base.apply(recipe.format(levels))


def check(made, mesh, recipe, levels="gpu"):
    plan = schedule(made, mesh, recipe, levels).compile()
    result = trial(plan, 2, SimOptions(seed=3, max_delay_us=100))
    assert result.right, result.errors
    return plan


@pytest.mark.parametrize("layout", [None, ZIGZAG])
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("recipe", [BATCHES, HEADS, HEADS_OF_BATCHES])
@pytest.mark.parametrize("backward", [False, True])
def test_attention_of_whole_rows(backward, recipe, mesh, layout):
    over, levels = MESHES[mesh]
    plan = check(program(backward, layout=layout), over, recipe, levels)
    assert "all_to_all" not in plan.spmd


@pytest.mark.parametrize("layout", [None, ZIGZAG])
@pytest.mark.parametrize("mesh", ["two", "three", "two levels"])
def test_keys_are_gathered_and_rows_need_no_merge(mesh, layout):
    over, levels = MESHES[mesh]
    whole = "; ".join(f"replicate({name}, {level})" for name in "KV" for level in over.names)
    plan = check(program(layout=layout), over, GATHERED.format(levels, whole))
    assert "softmax_merge" not in plan.spmd
    assert "all_gather" not in plan.spmd


@pytest.mark.parametrize("options", [{"h": 8, "group": 2}, {"b": 1, "h": 6}, {"b": 1, "h": 2}])
def test_grouped_heads_and_slices_without_some_ranks(options):
    check(program(backward=True, **options), mc.Mesh(gpu=2), HEADS)


def test_products_in_slices_of_rows():
    made = mc.programs.matmul(m=9, n=7, depth=5)
    recipe = "tile(i, 3); parallelize(j, gpu); overlap(i_outer)"
    given = {"A": {"k": "gpu"}, "B": {"j": "gpu"}, "C": {"i": "gpu"}}
    plan = mc.Schedule(made, mc.Mesh(gpu=2), given).apply(recipe).compile()
    assert trial(plan, 2, SimOptions(seed=1, max_delay_us=100)).right
    given["C"] = {"j": "gpu"}
    plan = mc.Schedule(made, mc.Mesh(gpu=2), given).apply(recipe).compile()
    assert trial(plan, 2, SimOptions(seed=1, max_delay_us=100)).right


def test_a_slice_is_worked_on_while_two_move():
    """Reads of the next slice and of the last results start before a launch, and end behind."""
    plan = schedule(program(), mc.Mesh(gpu=2), BATCHES).compile()
    loop = plan.spmd.partition("func.func")[2].partition("scf.for")[2]
    ops = re.findall(r"commir\.(pull\.start|launch|wait|lease\.close)", loop)
    assert ops.index("launch") > ops.index("pull.start")
    before = ops[: ops.index("launch")]
    assert before.count("pull.start") == 10, before  # of Q, K, V, O and LSE by both ranks
    assert "wait" not in before


def test_one_rank_takes_slices_in_turn():
    plan = schedule(program(), mc.Mesh(gpu=1), "tile(b, 2)").compile()
    assert trial(plan, 2).right
    plan = schedule(program(), mc.Mesh(gpu=1), "tile(b, 2); overlap(b_outer)").compile()
    assert trial(plan, 2).right
    assert "pull.start" not in plan.spmd


IN_TURN = {
    "inside of another": "tile(b, 2); tile(h, 2); parallelize(h_inner, gpu); overlap(h_outer)",
    "nothing moves": "tile(b, 2); parallelize(sq, gpu); shift(sk, by=sq); overlap(b_outer)",
    "results of several steps": "tile(b, 2); parallelize(b_inner, gpu); tile(sk, 2); "
    "overlap(b_outer)",
    "panels": "parallelize(sq, gpu); tile(sk, 6); shard(K, sk, gpu, reads=broadcast); "
    "shard(V, sk, gpu, reads=broadcast); overlap(sk_outer)",
}


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("case", IN_TURN)
def test_what_has_no_slices_moves_whole(case, ranks):
    check(program(), mc.Mesh(gpu=ranks), IN_TURN[case])


def test_a_slice_of_one_batch_is_exchanged_alone():
    recipe = "tile(b, 3); parallelize(h, gpu); overlap(b_outer)"
    plan = check(program(b=3, h=4), mc.Mesh(gpu=2), recipe)
    assert "all_to_all" not in plan.spmd


def test_a_slice_of_no_heads_has_no_pieces():
    made = mc.programs.attention_backward(
        b=4, h=2, sq=5, sk=13, d=3, layout={"sq": "zigzag", "sk": "zigzag"}
    )
    base = mc.Schedule(made, mc.Mesh(gpu=8), {"dV": {}})
    plan = base.apply("tile(h, 3); parallelize(sk, gpu); overlap(h_outer)").compile()
    assert trial(plan, 2).right


def test_shards_that_meet_no_slice_move_whole():
    made = mc.programs.matmul(m=9, n=5, depth=4, dtype="f32")
    base = mc.Schedule(made, mc.Mesh(gpu=2), {"A": {"k": "gpu"}})
    recipe = "tile(i, 2); replicate(A, gpu); parallelize(k, gpu); overlap(i_outer)"
    assert trial(base.apply(recipe).compile(), 2).right
    shared = mc.Schedule(program(group=2), mc.Mesh(gpu=3), {"V": {"h": "gpu"}})
    assert trial(shared.apply("tile(b, 2); overlap(b_outer)").compile(), 2).right


def test_at_most_eight_ranks_read_each_other_at_once():
    plan = check(program(b=18, h=1, sq=9, sk=9), mc.Mesh(gpu=9), BATCHES)
    assert "pull.start" not in plan.spmd


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_a_pull_of_planes_has_all_rows(mask):
    """Chunks of keys and slices of heads, of several batches: rows at two distances."""
    recipe = "tile(h, 2); parallelize(sq, gpu); shift(sk, by=sq, reads=pull, chunks=2)"
    check(program(b=3, mask=mask, sq=16, sk=16), mc.Mesh(gpu=2), recipe)
