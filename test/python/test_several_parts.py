"""Rings that move several parts a rank, or parts in chunks, in all layouts, as they are due.

Extents are odd, so that parts are uneven, and some are empty. Every plan is proved by the
checker before it runs.
"""

import mercury as mc
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial

SHIFTS = (
    "",
    ", direction=-1",
    ", offset=1",
    ", offset=3",
    ", direction=-1, offset=2",
    ", link=bf16",
)


def attention(**options):
    # Two batches, so that a part is no run of its owner's memory.
    sizes = {"b": 2, "h": 2, "sq": 13, "sk": 19, "d": 3, "dtype": "f32", "mask": mc.causal(5)}
    return mc.programs.attention(**(sizes | options))


def matmul(**options):
    return mc.programs.matmul(**({"m": 13, "n": 5, "depth": 23, "dtype": "f32"} | options))


PROGRAMS = {
    "runs of memory": (matmul, "i", "k"),
    "slices of memory": (attention, "sq", "sk"),
}


def run(program, mesh, recipe, boundary=None):
    schedule = mc.Schedule(program, mc.Mesh.parse(mesh), boundary).apply(recipe)
    return trial(schedule.compile(), 1, SimOptions(seed=5, max_delay_us=100))


@pytest.mark.parametrize(("mesh", "each"), [("gpu=2", 3), ("gpu=3", 2)])
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("case", PROGRAMS)
def test_parts_rotate_as_they_are_pulled(case, shift, mesh, each):
    make, rows, axis = PROGRAMS[case]
    parts = each * mc.Mesh.parse(mesh).size
    found = {}
    for reads in ("rotate", "pull"):
        recipe = f"tile({axis}, {parts}); parallelize({rows}, gpu); "
        recipe += f"shift({axis}_outer, by={rows}, reads={reads}{shift})"
        found[reads] = run(make(), mesh, recipe)
        if "link" not in shift:
            assert found[reads].right, found[reads].errors
    # What is rounded for a link is so alike, wherever it is worked on.
    assert found["rotate"].errors == pytest.approx(found["pull"].errors, rel=1e-3)


@pytest.mark.parametrize("shift", SHIFTS[:-1])
def test_parts_that_are_given_explicitly_rotate(shift):
    program = matmul(layout={"k": "bounds[0, 1, 1, 4, 9, 10, 23]"})
    recipe = f"tile(k, 6); parallelize(i, gpu); shift(k_outer, by=i{shift})"
    assert run(program, "gpu=3", recipe).right


@pytest.mark.parametrize("shift", SHIFTS[:-1])
def test_each_part_comes_once_to_each_rank(shift):
    program = matmul()
    recipe = f"tile(k, 9); parallelize(i, gpu); shift(k_outer, by=i{shift})"
    sent = run(program, "gpu=3", recipe).report.bytes_sent["gpu"]
    # All of B, but for what a rank owns.
    assert sent == 2 * 23 * 5 * 4


@pytest.mark.parametrize("mesh", ["node=2,gpu=2", "node=2,gpu=3", "node=3,gpu=2"])
@pytest.mark.parametrize("shift", ["", ", direction=-1", ", offset=1"])
@pytest.mark.parametrize("program", [matmul(), attention()], ids=["matmul", "attention"])
def test_several_parts_beside_other_levels(program, mesh, shift):
    rows, axis = ("i", "k") if program.name == "matmul" else ("sq", "sk")
    # Rings of a node each.
    levels = dict(mc.Mesh.parse(mesh).levels)
    recipe = f"tile({axis}, {2 * levels['gpu']}); parallelize({rows}, gpu); "
    assert run(program, mesh, recipe + f"shift({axis}_outer, by={rows}{shift})").right
    # The inner of two rings.
    recipe = f"tile({axis}, node); parallelize({rows}, [node, gpu]); "
    recipe += f"tile({axis}_inner, {2 * levels['gpu']}, names=[x, y]); "
    recipe += f"shift({axis}_outer, by={rows}, over=node); shift(x, by={rows}, over=gpu{shift})"
    assert run(program, mesh, recipe).right


@pytest.mark.parametrize("mesh", ["row=2,col=3", "row=3,col=2", "row=2,col=4", "row=2,col=2"])
@pytest.mark.parametrize("shift", ["", ", direction=-1", ", offset=1"])
def test_cannon_rotates_on_any_grid(mesh, shift):
    """As many parts as the least common multiple of both sides of the grid."""
    recipe = f"parallelize(i, row); parallelize(j, col); shift(k, by=[i, j]{shift})"
    assert run(matmul(), mesh, recipe).right


@pytest.mark.parametrize("shift", SHIFTS[:-1])
@pytest.mark.parametrize("program", [matmul(), attention()], ids=["matmul", "attention"])
@pytest.mark.parametrize("each", [1, 2])
def test_parts_rotate_in_chunks(program, shift, each):
    rows, axis = ("i", "k") if program.name == "matmul" else ("sq", "sk")
    recipe = f"tile({axis}, {3 * each}); parallelize({rows}, gpu); "
    recipe += f"shift({axis}_outer, by={rows}{shift}"
    found = {n: run(program, "gpu=3", f"{recipe}, chunks={n})") for n in (1, 3)}
    assert found[3].right, found[3].errors
    assert found[3].report.bytes_sent == found[1].report.bytes_sent


IN_PIECES = ("zigzag", "striped(1)", "striped(3)")
HOW = (
    (2, 1, ""),
    (3, 1, ", direction=-1, offset=2"),
    (1, 2, ", offset=1"),
    (1, 3, ", direction=-1"),
    (2, 2, ", offset=3"),
    (2, 2, ", link=bf16"),
)


@pytest.mark.parametrize(("each", "chunks", "shift"), HOW)
@pytest.mark.parametrize("layout", IN_PIECES)
def test_parts_in_pieces_rotate_as_they_are_pulled(layout, each, chunks, shift):
    program = attention(layout={"sq": layout, "sk": layout})
    found = {}
    for reads in ("rotate", "pull"):
        recipe = f"tile(sk, {3 * each}); parallelize(sq, gpu); "
        recipe += f"shift(sk_outer, by=sq, reads={reads}, chunks={chunks}{shift})"
        found[reads] = run(program, "gpu=3", recipe)
        if "link" not in shift:
            assert found[reads].right, found[reads].errors
    if "link" in shift:
        assert found["rotate"].errors == pytest.approx(found["pull"].errors, rel=0.01)


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("layout", ["block", *IN_PIECES])
def test_parts_in_pieces_come_once_to_each_rank(layout, chunks):
    program = matmul(layout={"k": layout})
    for reads in ("rotate", "pull"):
        recipe = "tile(k, 6); parallelize(i, gpu); "
        recipe += f"shift(k_outer, by=i, reads={reads}, chunks={chunks})"
        found = run(program, "gpu=3", recipe)
        assert found.right, found.errors
        # All of B, but for what a rank owns.
        assert found.report.bytes_sent["gpu"] == 2 * 23 * 5 * 4


@pytest.mark.parametrize("sk", [1, 5, 24])
@pytest.mark.parametrize("layout", IN_PIECES)
def test_parts_in_pieces_may_be_empty(layout, sk):
    program = attention(sk=sk, layout={"sk": layout}, mask=mc.causal(3), h=4, group=2)
    recipe = "tile(sk, 6); parallelize(sq, gpu); shift(sk_outer, by=sq, chunks=2)"
    assert run(program, "gpu=3", recipe).right


@pytest.mark.parametrize("reads", ["rotate", "pull"])
@pytest.mark.parametrize("layout", IN_PIECES)
def test_slices_of_parts_in_pieces_move(layout, reads):
    program = attention(b=3, h=4, layout={"sq": layout, "sk": layout})
    recipe = "tile(sk, 6); tile(h, 2); tile(b, 3); parallelize(sq, gpu); "
    recipe += f"shift(sk_outer, by=sq, reads={reads}, chunks=2); "
    recipe += "reorder(h_outer, sk_outer); reorder(b_outer, sk_outer)"
    assert run(program, "gpu=3", recipe).right


@pytest.mark.parametrize("reads", ["rotate", "pull"])
@pytest.mark.parametrize(
    ("mesh", "shift"), [("node=2,gpu=3", ", direction=-1"), ("node=3,gpu=2", ", offset=1")]
)
@pytest.mark.parametrize("layout", IN_PIECES)
def test_inner_rings_move_parts_in_pieces(layout, mesh, shift, reads):
    levels = dict(mc.Mesh.parse(mesh).levels)
    program = attention(layout={"sq": layout, "sk": layout})
    recipe = "tile(sk, node); parallelize(sq, [node, gpu]); "
    recipe += f"tile(sk_inner, {2 * levels['gpu']}, names=[x, y]); "
    recipe += "shift(sk_outer, by=sq, over=node); "
    recipe += f"shift(x, by=sq, over=gpu, reads={reads}, chunks=2{shift})"
    assert run(program, mesh, recipe).right


@pytest.mark.parametrize("reads", ["rotate", "pull"])
@pytest.mark.parametrize("layout", IN_PIECES)
def test_gradients_travel_while_chunks_in_pieces_come(layout, reads):
    program = mc.programs.attention_backward(
        b=2,
        h=4,
        group=2,
        sq=13,
        sk=17,
        d=3,
        dtype="f32",
        mask=mc.causal(5),
        layout={"sq": layout, "sk": layout},
    )
    recipe = f"parallelize(sq, gpu); shift(sk, by=sq, reads={reads}, chunks=2)"
    assert run(program, "gpu=3", recipe).right


@pytest.mark.parametrize("reads", ["rotate", "pull"])
@pytest.mark.parametrize(
    ("mesh", "parts", "shift"),
    [("node=2,gpu=2", 4, ", direction=-1"), ("node=2,gpu=3", 12, ", offset=3")],
)
@pytest.mark.parametrize("layout", ["block", *IN_PIECES])
def test_two_terms_that_cut_one_axis(layout, mesh, parts, shift, reads):
    recipe = f"tile(k, {parts}); tile(i, 2); parallelize(i_outer, node); "
    recipe += "parallelize(i_inner, gpu); "
    recipe += f"shift(k_outer, by=[i_outer, i_inner], reads={reads}{shift})"
    assert run(matmul(layout={"k": layout}), mesh, recipe).right


@pytest.mark.parametrize("reads", ["rotate", "pull"])
@pytest.mark.parametrize(
    ("mesh", "shift"), [("node=2,gpu=3", ""), ("node=3,gpu=2", ", offset=1")]
)
def test_a_level_that_cuts_the_axis_already_adds_to_the_start(mesh, shift, reads):
    """One of two levels that a loop is shifted over is that of another loop over its axis."""
    recipe = "tile(k, node); parallelize(k_outer, node); parallelize(i, gpu); "
    recipe += f"shift(k_inner, by=[k_outer, i], reads={reads}{shift}); replicate(C, node)"
    assert run(matmul(), mesh, recipe).right


@pytest.mark.parametrize(
    ("mesh", "shift"), [("node=2,gpu=2", ""), ("node=2,gpu=3", ", offset=1")]
)
@pytest.mark.parametrize("layout", ["block", "zigzag"])
def test_parts_are_pulled_along_levels_in_any_order(layout, mesh, shift):
    recipe = "tile(sk, gpu); parallelize(sq, [node, gpu]); "
    recipe += f"shift(sk_outer, by=sq, over=gpu, reads=pull{shift}); "
    recipe += f"shift(sk_inner, by=sq, over=node, reads=pull{shift})"
    program = attention(layout={"sq": layout, "sk": layout})
    assert run(program, mesh, recipe).right


def test_the_last_part_of_one_rank_may_be_empty():
    recipe = "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu); "
    recipe += "shift(sq, by=sk, offset=1, reads=pull, results=deliver, chunks=2); tile(b, 2); "
    recipe += "shift(b_outer, by=sk, reads=pull, results=deliver)"
    assert run(attention(b=1), "gpu=1", recipe).right


@pytest.mark.parametrize("shift", ["", ", direction=-1, offset=1", ", reads=pull"])
@pytest.mark.parametrize(("ranks", "parts"), [(2, 4), (3, 6)])
@pytest.mark.parametrize("layout", IN_PIECES)
def test_parts_of_a_part_that_a_rank_has(layout, ranks, parts, shift):
    """A loop is shifted over the level of an outer loop over its axis: nothing moves."""
    recipe = f"tile(k, {ranks}); parallelize(k_outer, gpu); tile(k_inner, {parts}); "
    recipe += f"shift(k_inner_outer, by=k_outer{shift})"
    assert run(matmul(layout={"k": layout}), f"gpu={ranks}", recipe).right


@pytest.mark.parametrize("layout", IN_PIECES)
def test_parts_of_a_part_beside_a_ring(layout):
    """B moves along the ring; A is exchanged before, for what its ranks visit."""
    recipe = "parallelize(i, node); tile(k, gpu); parallelize(k_outer, gpu); "
    recipe += "tile(k_inner, 4); tile(k_inner_inner, 3); shift(k_inner_outer, by=i)"
    assert run(matmul(layout={"k": layout}), "gpu=3,node=2", recipe).right


@pytest.mark.parametrize("results", ["travel", "deliver", "fetch"])
@pytest.mark.parametrize("kept", ["", "shard(dQ, b, gpu); "])
def test_results_that_stay_beside_several_parts_of_one_that_travels(kept, results):
    """The parts of a rank are the chunks of one, within what 'b_inner' shares out."""
    program = mc.programs.attention_backward(b=3, h=2, sq=7, sk=5, d=3, dtype="f32")
    recipe = f"parallelize(sk, gpu); {kept}tile(b, 4); parallelize(b_inner, node); "
    recipe += f"shift(b_outer, by=sk, offset=2, reads=pull, results={results})"
    assert run(program, "node=2,gpu=2", recipe).right


# What a rank works on at its first step is not its own: parts of a loop that is staggered over
# a level that cuts the axis within them, or over a level of one rank.
STAGGERED = {
    "over the level of a loop inside": (
        attention,
        "gpu=3",
        "tile(sq, 3); shard(Q, sq, gpu); parallelize(sq_inner, gpu); "
        "shift(sq_outer, by=sq_inner, offset=1, reads=pull, results=deliver)",
    ),
    "over the level of a loop around": (
        attention,
        "gpu=3",
        "tile(sk, 3); shard(K, sk, gpu); parallelize(sk_outer, gpu); "
        "shift(sk_inner, by=sk_outer, offset=1)",
    ),
    "over that level and another": (
        matmul,
        "node=2,gpu=2",
        "tile(k, 4); parallelize(i, node); parallelize(k_inner, gpu); "
        "shard(A, k, [node, gpu]); shift(k_outer, by=[i, k_inner])",
    ),
    "over one rank": (
        matmul,
        "node=3,gpu=1",
        "parallelize(j, gpu); parallelize(k, node); shard(C, i, node); tile(i, 2); "
        "shift(i_inner, by=k, offset=1, results=fetch, chunks=2); "
        "shift(i_outer, by=j, direction=-1, offset=-1)",
    ),
}


@pytest.mark.parametrize("case", STAGGERED)
def test_a_staggered_loop_is_no_cut_of_memory(case):
    make, mesh, recipe = STAGGERED[case]
    result = run(make(), mesh, recipe)
    assert result.right, result.errors
