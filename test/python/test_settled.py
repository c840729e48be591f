"""What a schedule gets where the way that it asks for does not serve, against float64.

Extents are odd, so that parts are uneven, and some are empty. Every plan is proved by the
checker before it runs.
"""

from __future__ import annotations

import mercury as mc
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import Trial, trial


def matmul(**options: object) -> mc.Program:
    return mc.programs.matmul(**({"m": 13, "n": 7, "depth": 11, "dtype": "f32"} | options))


def backward(**options: object) -> mc.Program:
    sizes = {"h": 4, "group": 2, "sq": 13, "sk": 9, "d": 3, "dtype": "f32"}
    return mc.programs.attention_backward(**(sizes | options))


def run(program: mc.Program, mesh: str, recipe: str) -> Trial:
    schedule = mc.Schedule(program, mc.Mesh.parse(mesh)).apply(recipe)
    found = trial(schedule.compile(), 1, SimOptions(seed=5, max_delay_us=100))
    assert found.right, found.errors
    return found


def sums(more: str, tile: str = "") -> str:
    """Give a product whose sums move along i."""
    loop = "i_outer" if tile else "i"
    return f"{tile}parallelize(k, gpu); shard(C, i, gpu); shift({loop}, by=k, {more})"


@pytest.mark.parametrize("mesh", ["gpu=2", "gpu=3"])
@pytest.mark.parametrize(
    ("asked", "same"),
    [
        (
            "offset=1, results=deliver, chunks=2); defer(C",
            "offset=1, results=deliver); defer(C",
        ),
        ("offset=1, results=fetch, chunks=3); defer(C", "offset=1, results=fetch); defer(C"),
        ("results=deliver, chunks=2", "results=deliver"),
        ("direction=-1, results=fetch, chunks=2", "direction=-1, results=deliver"),
    ],
)
def test_as_many_bytes_move_in_one_chunk(mesh, asked, same):
    for program in (matmul(), matmul(layout={"i": "zigzag"}), matmul(m=1)):
        found, expected = (run(program, mesh, sums(each)) for each in (asked, same))
        assert found.report.bytes_sent == expected.report.bytes_sent


def test_bounds_for_chunks_of_which_none_moves():
    program = mc.programs.matmul(m=3, n=2, depth=5, layout={"i": "bounds[0, 1, 3]"})
    recipe = "parallelize(k, gpu); shard(C, j, gpu); shift(i, by=k, chunks=2)"
    with pytest.raises(mc.CompileError, match="nothing moves in chunks along 'i'"):
        mc.Schedule(program, mc.Mesh(gpu=3), {"A": {}, "C": {}}).apply(recipe).compile()


def test_bounds_for_chunks_that_name_no_parts():
    """Of 12 chunks there are bounds for 6; the 4 parts that results are made in have none."""
    program = mc.programs.matmul(
        m=5, n=23, depth=16, layout={"i": "bounds[0, 0, 1, 4, 5, 5, 5]"}
    )
    recipe = "parallelize(k, gpu); shard(C, i, gpu); tile(i, 2); "
    recipe += "shift(i_inner, by=k, direction=-1, offset=-1, reads=pull, chunks=3)"
    schedule = mc.Schedule(program, mc.Mesh(gpu=2), {"C": {"j": "gpu"}}).apply(recipe)
    with pytest.raises(mc.CompileError, match="multiple of 4; give 'i' bounds for these parts"):
        schedule.compile()


@pytest.mark.parametrize("layout", ["block", "striped(1)", "striped(2)"])
@pytest.mark.parametrize("outer", ["results=travel", "offset=1, results=deliver"])
@pytest.mark.parametrize("inner", ["offset=1, results=travel", "offset=1, results=fetch"])
def test_results_move_along_one_of_nested_loops(layout, outer, inner):
    """Over the same ranks: a part of stripes is in pieces to a loop inside of another."""
    program = mc.programs.attention(
        h=2, sq=23, sk=10, d=3, dtype="f32", layout=dict.fromkeys(("sq", "sk"), layout)
    )
    recipe = "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu); tile(sq, 2); "
    run(
        program,
        "gpu=2",
        f"{recipe}shift(sq_outer, by=sk, {outer}); shift(sq_inner, by=sk, {inner})",
    )


@pytest.mark.parametrize("mesh", ["gpu=2", "gpu=3"])
@pytest.mark.parametrize("layout", ["block", "zigzag", "striped(2)"])
@pytest.mark.parametrize("results", ["travel", "deliver", "fetch"])
@pytest.mark.parametrize("more", ["offset=1", "direction=-1", "direction=-1, offset=3"])
def test_sums_that_cannot_move_are_reduced_at_the_end(mesh, layout, results, more):
    tile = f"tile(i, {2 * mc.Mesh.parse(mesh).size}); "
    for rows in (13, 3):
        program = matmul(m=rows, layout={"i": layout})
        run(program, mesh, sums(f"{more}, results={results}", tile))


@pytest.mark.parametrize("results", ["deliver", "fetch"])
@pytest.mark.parametrize("window", [(1, 0), (2, 2)], ids=str)
def test_chunks_behind_a_window(results, window):
    program = backward(sq=19, sk=19, mask=mc.window(*window))
    for chunks in (1, 2):
        recipe = "parallelize(sk, gpu); shard(dQ, sq, gpu); shift(sq, by=sk, offset=1, "
        run(program, "gpu=4", f"{recipe}reads=pull, results={results}, chunks={chunks})")


@pytest.mark.parametrize("mesh", ["gpu=2", "gpu=3", "gpu=4"])
@pytest.mark.parametrize("mask", [None, "causal"])
def test_parts_of_heads_that_share_a_group(mesh, mask):
    program = backward(h=8, group=4, mask=mask)
    run(program, mesh, "parallelize(sq, gpu); shift(h, by=sq)")
    recipe = "parallelize(sk, gpu); shard(dQ, h, gpu); shift(h, by=sk, offset=1, reads=pull"
    for results in ("deliver", "fetch"):
        run(program, mesh, f"{recipe}, results={results}, chunks=2)")


@pytest.mark.parametrize("mesh", ["gpu=2", "gpu=3"])
@pytest.mark.parametrize("inner", ["offset=1", "offset=1, reads=pull, results=fetch"])
def test_chunks_around_a_ring_over_the_same_ranks(mesh, inner):
    ranks = mc.Mesh.parse(mesh).size
    for parts, chunks in ((ranks, 3), (2 * ranks, 1)):
        recipe = f"tile(i, {parts}); parallelize(k, gpu); shard(C, i, gpu); "
        recipe += f"tile(i_inner, {ranks}); "
        recipe += (
            f"shift(i_outer, by=k, offset={parts // ranks}, reads=pull, chunks={chunks}); "
        )
        run(matmul(m=23), mesh, recipe + f"shift(i_inner_outer, by=k, {inner})")


@pytest.mark.parametrize("mesh", ["node=2,gpu=2", "node=2,gpu=3"])
@pytest.mark.parametrize("layout", ["block", "zigzag"])
def test_what_rotates_along_nested_rings_comes_in_one_chunk(mesh, layout):
    recipe = "parallelize(i, [node, gpu]); shift(k, by=i"
    program = matmul(depth=25, layout={"k": layout})
    found = run(program, mesh, f"{recipe}, chunks=2)")
    assert found.report.bytes_sent == run(program, mesh, f"{recipe})").report.bytes_sent


@pytest.mark.parametrize("reads", ["rotate", "pull"])
def test_nested_rings_round_once_to_the_narrowest_link(reads):
    program = matmul(depth=25, dtype="f64")
    mesh = mc.Mesh.parse("node=2,gpu=3")
    found = {}
    for links in (("f32", None), (None, "f32"), ("f32", "f32")):
        schedule = mc.Schedule(program, mesh).apply(
            "tile(i, 2); tile(k, 2); parallelize(i_outer, node); parallelize(i_inner, gpu)"
        )
        schedule.shift("k_outer", by="i_outer", reads=reads, link=links[0])
        schedule.shift("k_inner", by="i_inner", reads=reads, link=links[1])
        found[links] = trial(schedule.compile(), 1)
    sent = [each.report.bytes_sent for each in found.values()]
    assert sent[0] == sent[1] == sent[2]
    errors = [each.errors for each in found.values()]
    assert errors[0] == errors[1] == errors[2]


@pytest.mark.parametrize("mesh", ["gpu=2", "gpu=3"])
@pytest.mark.parametrize("results", ["deliver", "fetch"])
@pytest.mark.parametrize("offset", [0, 1])
def test_what_is_deferred_is_rounded_on_its_way_alone(mesh, results, offset):
    found = {}
    for link in (None, "bf16"):
        steps = f"offset={offset}, results={results}"
        steps += f", link={link}); defer(C" if link else "); defer(C"
        found[link] = run(matmul(dtype="bf16"), mesh, sums(steps))
    whole, half = (found[link].report.bytes_sent["gpu"] for link in (None, "bf16"))
    assert half < whole


@pytest.mark.parametrize("layout", ["striped(1)", "striped(3)"])
@pytest.mark.parametrize("grid", ["row=2,col=3", "row=3,col=2", "row=2,col=4"])
@pytest.mark.parametrize("finer", [1, 2])
def test_striped_panels(layout, grid, finer):
    mesh = mc.Mesh.parse(grid)
    rows, cols = (mesh[name] for name in mesh.names)
    recipe = "parallelize(i, row); parallelize(j, col); "
    recipe += "shard(A, k, col, reads=broadcast); shard(B, k, row, reads=broadcast)"
    if finer > 1:
        recipe = f"tile(k, {finer * rows * cols}); {recipe}"
    found = run(matmul(depth=29, layout={"k": layout}), grid, recipe)
    assert found.report.bytes_sent == {
        "row": 29 * 7 * 4 * (rows - 1),
        "col": 13 * 29 * 4 * (cols - 1),
    }


@pytest.mark.parametrize("layout", ["block", "zigzag", "striped(2)"])
def test_what_does_not_come_in_panels_comes_whole(layout):
    program = matmul(layout={"k": layout})
    outside = "tile(k, 6); parallelize(k_outer, row); parallelize(j, col); "
    run(program, "row=6,col=3", f"{outside}shard(A, k, col, reads=broadcast)")
    run(program, "row=2,col=3", "shard(A, k, [col, row], reads=broadcast)")
    shifted = "parallelize(i, row); parallelize(j, col); shard(A, k, col, reads=broadcast); "
    run(program, "row=3,col=3", f"{shifted}shift(k, by=i, chunks=2)")
