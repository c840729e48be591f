"""Sums over several levels: the fast ones first, and what then goes over the slow ones."""

from __future__ import annotations

import mercury as mc
import pytest
from mercury.runtime.trial import trial

MESHES = [mc.Mesh(node=2, gpu=4), mc.Mesh(node=3, gpu=2), mc.Mesh(node=2, gpu=3)]


def run(program: mc.Program, mesh: mc.Mesh, recipe: str) -> dict[str, int]:
    """Bytes of all ranks by level, of a run that is right."""
    found = trial(mc.Schedule(program, mesh).apply(recipe).compile())
    assert found.right, found.errors
    return found.report.bytes_sent


def matmul(**changes: object) -> mc.Program:
    sizes = {"m": 7, "n": 5, "depth": 11, "dtype": "f64"}
    return mc.programs.matmul(**{**sizes, **changes})


def attention(**changes: object) -> mc.Program:
    sizes = {"b": 1, "h": 2, "sq": 7, "sk": 17, "d": 4, "dtype": "f32", "mask": "causal"}
    return mc.programs.attention(**{**sizes, **changes})


# -- bytes --------------------------------------------------------------------


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("defer", ["", "; defer(C)"])
@pytest.mark.parametrize("m", [2, 7, 24])
def test_a_scattered_sum_goes_over_the_nodes_once_for_all_ranks_of_one(mesh, defer, m):
    recipe = f"parallelize(k, [node, gpu]); shard(C, i, [node, gpu]){defer}"
    whole = m * 5 * 8
    nodes, gpus = (size for _, size in mesh.levels)
    # Each of the gpus has its share alone to send, not all of the sum.
    assert run(matmul(m=m), mesh, recipe) == {
        "node": (nodes - 1) * whole,
        "gpu": nodes * (gpus - 1) * whole,
    }


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_a_scattered_pair_goes_over_the_nodes_once_for_all_ranks_of_one(mesh):
    recipe = (
        "parallelize(sk, [node, gpu]); shard(O, sq, [node, gpu]); shard(LSE, sq, [node, gpu])"
    )
    whole = 2 * 7 * (4 + 1) * 4
    nodes, gpus = (size for _, size in mesh.levels)
    assert run(attention(), mesh, recipe) == {
        "node": (nodes - 1) * whole,
        "gpu": nodes * (gpus - 1) * whole,
    }


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("kind", ["sum", "deferred", "pair"])
def test_a_replicated_sum_goes_over_the_nodes_in_shares(mesh, kind):
    if kind == "pair":
        program, whole = attention(), 2 * 7 * (4 + 1) * 4
        recipe = "parallelize(sk, [node, gpu])"
    else:
        program, whole = matmul(), 7 * 5 * 8
        recipe = "parallelize(k, [node, gpu])" + ("; defer(C)" if kind == "deferred" else "")
    nodes, gpus = (size for _, size in mesh.levels)
    # Within a node shares are summed, and gathered at the end.
    assert run(program, mesh, recipe) == {
        "node": nodes * (nodes - 1) * whole,
        "gpu": 2 * nodes * (gpus - 1) * whole,
    }


def test_a_sum_on_the_nodes_alone_goes_over_them_in_shares():
    sent = run(
        matmul(), mc.Mesh(node=2, gpu=4), "parallelize(k, [node, gpu]); shard(C, i, node)"
    )
    whole = 7 * 5 * 8
    assert sent == {"node": whole, "gpu": 2 * 3 * whole + 3 * whole}


def test_one_position_goes_over_all_levels_whole():
    program = matmul(m=1, n=1)
    assert run(program, mc.Mesh(node=2, gpu=4), "parallelize(k, [node, gpu])") == {
        "node": 4 * 2 * 8,
        "gpu": 2 * 4 * 3 * 8,
    }


# -- results ------------------------------------------------------------------

LEVELS = ["a", "b", "c"]


@pytest.mark.parametrize(
    "place",
    [
        "shard(C, i, [a, b, c])",
        "shard(C, i, [a, c]); shard(C, j, b)",
        "shard(C, i, b); shard(C, j, [a, c])",
        "shard(C, i, [a, b])",
        "shard(C, i, [a, c])",
        "shard(C, j, [b, c])",
        "shard(C, j, c)",
        "shard(C, i, [c, a])",
        "",
    ],
)
@pytest.mark.parametrize("defer", ["", "defer(C)"])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 2)], ids=str)
def test_three_levels(place, defer, sizes):
    mesh = mc.Mesh(**dict(zip(LEVELS, sizes, strict=True)))
    run(matmul(), mesh, "; ".join(s for s in ["parallelize(k, [a, b, c])", place, defer] if s))


@pytest.mark.parametrize(
    "place",
    [
        "shard({0}, sq, [a, b, c])",
        "shard({0}, sq, [a, c]); shard({0}, h, b)",
        "shard({0}, h, [b, c])",
        "",
    ],
)
@pytest.mark.parametrize("changes", [{}, {"sink": True}, {"h": 6, "group": 3}], ids=str)
def test_pairs_over_three_levels(place, changes):
    places = [place.format(name) for name in ("O", "LSE") if place]
    program = attention(**changes)
    run(program, mc.Mesh(a=2, b=2, c=2), "; ".join(["parallelize(sk, [a, b, c])", *places]))


@pytest.mark.parametrize("layout", ["zigzag", "striped(2)", "bounds[0, 2, 2, 9, 10, 17, 23]"])
@pytest.mark.parametrize("place", ["shard(C, i, [node, gpu])", "shard(C, i, [gpu, node])", ""])
def test_layouts(layout, place):
    program = matmul(m=23, layout={"i": layout})
    recipe = "parallelize(k, [node, gpu])" + (f"; {place}" if place else "")
    for mesh in (mc.Mesh(node=2, gpu=3), mc.Mesh(node=3, gpu=2)):
        run(program, mesh, recipe)


def test_a_level_in_parallel_around_those_that_sum():
    mesh = mc.Mesh(a=2, b=2, c=3)
    for layout in ("block", "zigzag", "striped(2)"):
        recipe = "parallelize(i, a); parallelize(k, [b, c]); shard(C, i, [a, b, c])"
        run(matmul(m=25, layout={"i": layout}), mesh, recipe)


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_gradients(mesh):
    """dQ is summed over the keys' ranks, in shares of the queries and for all."""
    program = mc.programs.attention_backward(b=1, h=2, sq=7, sk=17, d=4, dtype="f32")
    for place in ("; shard(dQ, sq, [node, gpu])", ""):
        run(program, mesh, "parallelize(sk, [node, gpu])" + place)
    for place in ("; shard(dK, sk, [node, gpu]); shard(dV, sk, [node, gpu])", ""):
        run(program, mesh, "parallelize(sq, [node, gpu])" + place)
