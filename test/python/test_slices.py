"""Parts in pieces, and rings that move a slice: what every rank ends with is right.

Extents are odd, so that parts are uneven, and some are fewer than the parts they are cut
into, so that ranks have none. Every plan is proved by the checker before it runs.
"""

import mercury as mc
import numpy as np
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial

ONE_LEVEL = ("gpu=2", "gpu=3")
TWO_LEVELS = ("node=2,gpu=2", "node=2,gpu=3")
RING = (
    "tile(sk, node); parallelize(sq, [node, gpu]); "
    "shift(sk_outer, by=sq, over=node{}); shift(sk_inner, by=sq, over=gpu{})"
)


def attention(**options):
    return mc.programs.attention(
        **({"h": 4, "sq": 13, "sk": 11, "d": 3, "dtype": "f32", "mask": mc.causal()} | options)
    )


def backward(**options):
    sizes = {"h": 2, "sq": 13, "sk": 11, "d": 3, "dtype": "f32", "mask": mc.causal()}
    return mc.programs.attention_backward(**(sizes | options))


def matmul(**options):
    return mc.programs.matmul(**({"m": 13, "n": 11, "depth": 7, "dtype": "f32"} | options))


def check(program, mesh, recipe, boundary=None):
    schedule = mc.Schedule(program, mc.Mesh.parse(mesh), boundary).apply(recipe)
    result = trial(schedule.compile(), 1, SimOptions(seed=3, max_delay_us=100))
    assert result.right, (program, mesh, recipe, result.errors)
    return schedule


STRIDED = {
    "rows": (matmul, "tile(i, 2); parallelize(i_inner, gpu)"),
    "fewer rows than parts": (lambda: matmul(m=3), "tile(i, 2); parallelize(i_inner, gpu)"),
    "a sum": (matmul, "tile(k, 3); parallelize(k_inner, gpu)"),
    "blocks from both ends": (
        lambda: matmul(layout={"i": "zigzag"}),
        "tile(i, 2); parallelize(i_inner, gpu)",
    ),
    "chunks": (
        lambda: matmul(layout={"i": "striped(2)"}),
        "tile(i, 2); parallelize(i_inner, gpu)",
    ),
    "chunks of chunks": (
        lambda: matmul(layout={"i": "striped(1)"}),
        "tile(i, gpu); parallelize(i_outer, gpu); tile(i_inner, 2)",
    ),
    "bounds": (
        lambda: matmul(m=12, layout={"i": "bounds[0, 5, 12]"}),
        "tile(i, 2); parallelize(i_inner, gpu)",
    ),
    "queries under a mask": (attention, "tile(sq, 2); parallelize(sq_inner, gpu)"),
    "queries and keys from both ends": (
        lambda: attention(layout={"sq": "zigzag", "sk": "zigzag"}),
        "tile(sq, 2); parallelize(sq_inner, gpu); shift(sk, by=sq_inner)",
    ),
    "heads that share keys": (
        lambda: attention(h=6, group=3),
        "tile(h, 2); parallelize(h_inner, gpu)",
    ),
    "heads with a sink": (
        lambda: attention(sink=True),
        "tile(h, 2); parallelize(h_inner, gpu)",
    ),
    "queries with a sink": (
        lambda: attention(sink=True),
        "tile(sq, 2); parallelize(sq_inner, gpu)",
    ),
    "gradients": (backward, "tile(sq, 2); parallelize(sq_inner, gpu)"),
    "gradients that travel": (
        backward,
        "tile(sq, 2); parallelize(sq_inner, gpu); shift(sk, by=sq_inner)",
    ),
}


@pytest.mark.parametrize("mesh", ONE_LEVEL)
@pytest.mark.parametrize("case", STRIDED)
def test_a_parallel_inner_loop_gives_each_rank_several_parts(case, mesh):
    program, recipe = STRIDED[case]
    check(program(), mesh, recipe)


@pytest.mark.parametrize("layout", ["block", "zigzag", "striped(2)"])
@pytest.mark.parametrize("mesh", TWO_LEVELS)
def test_numbers_between_levels(layout, mesh):
    recipe = (
        "tile(i, 2, names=[a, r]); tile(r, node, names=[n, q]); parallelize(n, node); "
        "tile(q, 3, names=[c, d]); parallelize(d, gpu)"
    )
    check(matmul(m=29, layout={"i": layout}), mesh, recipe)


@pytest.mark.parametrize("mesh", ONE_LEVEL)
def test_a_strided_placement_is_redistributed_at_the_boundary(mesh):
    blocks = {"A": {"i": "gpu"}, "C": {"i": "gpu"}}
    check(matmul(), mesh, "tile(i, 2); parallelize(i_inner, gpu)", blocks)
    strided = {"A": {"i": [2, "gpu"]}, "C": {"i": [2, "gpu"]}}
    check(matmul(), mesh, "parallelize(i, gpu)", strided)
    check(matmul(), mesh, "parallelize(k, gpu); replicate(C, gpu)", strided)


def test_a_number_beside_a_level_of_one_rank_cuts_nothing():
    mesh = "node=1,gpu=2"
    check(backward(h=1), mesh, "tile(h, 2)", {"dO": {"sq": [3, "node"]}})
    check(matmul(), mesh, "parallelize(i, gpu)", {"A": {"i": ["node", 2, "gpu"]}})


def test_a_rank_stores_its_parts_side_by_side():
    schedule = mc.Schedule(matmul(m=10), mc.Mesh(gpu=3)).tile("i", 2)
    layout = schedule.parallelize("i_inner", "gpu").compile().layout("C")
    held = [layout.positions(rank, "i").tolist() for rank in range(3)]
    # Of 6 parts from ceil(10 p / 6): rank r has parts r and 3 + r.
    assert held == [[0, 1, 5, 6], [2, 3, 7, 8], [4, 9]]
    assert layout.permutation("i").tolist() == [*held[0], *held[1], *held[2]]
    assert layout.permutation("i")[layout.inverse("i")].tolist() == list(range(10))
    whole = np.arange(110, dtype=np.float32).reshape(10, 11)
    shards = layout.scatter(whole)
    assert shards[2].tolist() == whole[[4, 9]].tolist()
    assert (layout.gather(shards) == whole).all()


def test_the_text_of_a_strided_plan_does_not_grow_with_ranks_or_parts():
    def lines(ranks, parts):
        schedule = mc.Schedule(matmul(m=130), mc.Mesh(gpu=ranks), {"A": {"i": "gpu"}})
        schedule = schedule.tile("i", parts).parallelize("i_inner", "gpu")
        return len(str(schedule.compile().spmd).splitlines())

    few = lines(3, 2)
    assert few > 100
    assert {lines(7, 2) - few, lines(16, 2) - few, lines(3, 9) - few} <= {0, 1, 2}


SLICES = {
    "columns": (
        matmul,
        "tile(j, 2); reorder(j_outer, i); parallelize(i, gpu); {}(k, by=i)",
    ),
    "columns from both ends": (
        lambda: matmul(layout={"j": "zigzag"}),
        "tile(j, 2); reorder(j_outer, i); parallelize(i, gpu); {}(k, by=i)",
    ),
    "striped columns, and their sums": (
        lambda: matmul(layout={"j": "striped(2)", "k": "zigzag"}),
        "tile(j, 3); reorder(j_outer, i); parallelize(i, gpu); {}(k, by=i)",
    ),
    "heads": (attention, "tile(h, 2); parallelize(sq, gpu); {}(sk, by=sq)"),
    "heads of two batches": (
        lambda: attention(b=2),
        "tile(h, 3); parallelize(sq, gpu); {}(sk, by=sq)",
    ),
    "parts of parts of the keys": (
        lambda: attention(b=2),
        "tile(sk, 2); parallelize(sq, gpu); {}(sk_inner, by=sq)",
    ),
    "parts of parts from both ends": (
        lambda: attention(layout={"sk": "zigzag"}),
        "tile(sk, 2); parallelize(sq, gpu); {}(sk_inner, by=sq)",
    ),
    "heads, and results that travel": (
        backward,
        "tile(h, 2); parallelize(sq, gpu); {}(sk, by=sq)",
    ),
}


@pytest.mark.parametrize("shift", ["rotate", "pull"])
@pytest.mark.parametrize("mesh", ONE_LEVEL)
@pytest.mark.parametrize("case", SLICES)
def test_a_ring_under_a_loop_over_its_buffer_moves_a_slice(case, mesh, shift):
    program, recipe = SLICES[case]
    before, after = recipe.split("{}")
    recipe = f"{before}shift{after[:-1]}, reads={shift})"
    check(program(), mesh, recipe)


def test_a_slice_is_all_that_moves():
    """Of keys that two batches of loops use, each ring moves half: as much in all."""
    mesh = mc.Mesh(gpu=4)
    program = mc.programs.attention(h=4, sq=16, sk=16, d=4, dtype="f32")

    def moved(recipe):
        plan = mc.Schedule(program, mesh).apply(recipe).compile()
        return trial(plan).report.bytes_sent["gpu"]

    whole = moved("parallelize(sq, gpu); shift(sk, by=sq)")
    sliced = moved("tile(h, 2); parallelize(sq, gpu); shift(sk, by=sq)")
    assert whole == sliced > 0


@pytest.mark.parametrize("mesh", TWO_LEVELS)
@pytest.mark.parametrize("outer", ["rotate", "pull"])
@pytest.mark.parametrize("inner", ["rotate", "pull"])
@pytest.mark.parametrize("before", ["", "tile(h, 2); "])
def test_nested_rings_may_move_in_two_ways(mesh, outer, inner, before):
    recipe = RING.format(f", reads={outer}", f", reads={inner}")
    check(attention(b=2), mesh, before + recipe)


@pytest.mark.parametrize("mesh", TWO_LEVELS)
def test_gradients_beside_nested_rings_that_move_in_two_ways(mesh):
    check(backward(), mesh, RING.format(", reads=pull", ""))


TRAVELS = {
    "to other ranks": (
        attention,
        "shard(O, sq, node); shard(LSE, sq, node); tile(sk, node); "
        "parallelize(sk_outer, node); parallelize(sk_inner, gpu); "
        "shift(sq, by=sk_inner, offset=1)",
    ),
    "to ranks that have several parts": (
        attention,
        "tile(sq, 2); parallelize(sk, gpu); shift(sq_inner, by=sk, offset=1)",
    ),
    "to ranks that want blocks": (
        attention,
        "tile(sq, 2); parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu); "
        "shift(sq_inner, by=sk, offset=1)",
    ),
}


@pytest.mark.parametrize("mesh", TWO_LEVELS)
@pytest.mark.parametrize("results", ["travel", "deliver"])
@pytest.mark.parametrize("case", TRAVELS)
def test_results_that_travel_are_brought_where_they_live(case, mesh, results):
    program, recipe = TRAVELS[case]
    check(program(), mesh, f"{recipe[:-1]}, results={results})")


@pytest.mark.parametrize("chunks", [2, 3])
@pytest.mark.parametrize("mesh", ONE_LEVEL)
def test_zigzag_parts_are_pulled_in_chunks(mesh, chunks):
    program = attention(layout={"sq": "zigzag", "sk": "zigzag"})
    check(program, mesh, f"parallelize(sq, gpu); shift(sk, by=sq, reads=pull, chunks={chunks})")


CHUNKS_OF_SLICES = "shift({}, reads=pull, results=fetch, offset=1, chunks=2)"


# Chunks of a few positions, of one, and of none.
@pytest.mark.parametrize(("sk", "b"), [(14, 2), (5, 7), (4, 2), (2, 7)])
@pytest.mark.parametrize("layout", ["block", "zigzag"])
@pytest.mark.parametrize("mesh", ONE_LEVEL)
def test_chunks_of_slices_of_a_batch_are_pulled(mesh, layout, sk, b):
    program = attention(b=b, h=3, sq=5, sk=sk, layout={"sk": layout})
    ring = CHUNKS_OF_SLICES.format("sk, by=sq")
    check(program, mesh, f"tile(h, [1, 2]); parallelize(sq, gpu); {ring}")


@pytest.mark.parametrize("b", [2, 7])
@pytest.mark.parametrize("mesh", ONE_LEVEL)
def test_chunks_of_slices_of_results_are_fetched(mesh, b):
    ring = CHUNKS_OF_SLICES.format("sq, by=sk")
    recipe = f"tile(h, 2); parallelize(sk, gpu); shard(dQ, sq, gpu); {ring}"
    check(backward(b=b, group=2), mesh, recipe)


@pytest.mark.parametrize("mesh", ONE_LEVEL)
@pytest.mark.parametrize(
    "recipe",
    [
        "parallelize(i, gpu)",
        "parallelize(k, gpu)",
        "parallelize(j, gpu); shift(i, by=j)",
        "parallelize(j, gpu); shard(A, k, gpu); shift(i, by=j); reorder(i, k)",
    ],
)
@pytest.mark.parametrize("layout", ["zigzag", "striped(1)"])
def test_pieces_of_rows_of_nothing(layout, recipe, mesh):
    """A kernel takes the length of its rows from an operand that has no elements."""
    check(matmul(depth=0, layout={"i": layout}), mesh, recipe)


@pytest.mark.parametrize("layout", ["striped(1)", "striped(2)"])
@pytest.mark.parametrize("mesh", ONE_LEVEL)
@pytest.mark.parametrize("shift", ["", "; shift(k_inner, by=j, offset=1)"])
def test_no_slice_of_a_striped_axis_is_made_of_finer_parts(layout, mesh, shift):
    recipe = "tile(k, 2); tile(k_inner, 3); " if not shift else "tile(k, 2); "
    recipe += "reorder(k_outer, i); parallelize(j, gpu); shift(i, by=j, offset=1, reads=pull)"
    check(matmul(depth=21, layout={"k": layout}), mesh, recipe + shift)
