"""Results in chunks, or fetched, beside other loops over their axis and along nested loops."""

from __future__ import annotations

import mercury as mc
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import LIMITS, trial

MESHES = [mc.Mesh(x=2, y=2), mc.Mesh(x=2, y=3), mc.Mesh(x=3, y=2)]

# How results move: all of them as many bytes as the first.
WAYS = [
    "offset=1, results=deliver",
    "offset=1, reads=pull, results=deliver, chunks=2",
    "offset=1, results=fetch",
    "offset=1, reads=pull, results=fetch, chunks=2",
    "offset=1, reads=pull, chunks=3",
]

# Loops over rows {r}, over another axis {o} of the result, and over the axis {k} that is
# summed; {X} and {Y} are the ranks of the levels.
LOOPS = {
    "parallel outside": "tile({r}, {X}); parallelize({r}_outer, x); parallelize({k}, y); "
    "shift({r}_inner, by={k}, {way})",
    "parallel inside": "tile({r}, {Y}); parallelize({r}_inner, x); parallelize({k}, y); "
    "shift({r}_outer, by={k}, {way})",
    "in sequence outside": "tile({r}, 2); parallelize({k}, y); shift({r}_inner, by={k}, {way})",
    "in sequence inside": "tile({r}, {Y}); tile({r}_inner, 2); parallelize({k}, y); "
    "shift({r}_outer, by={k}, {way})",
    "slices": "tile({o}, 2); parallelize({k}, y); reorder({o}_outer, {r}, {k}); "
    "shift({r}, by={k}, {way})",
    "nested": "parallelize({k}, [x, y]); reorder({r}, {o}, {k}); "
    "shift({r}, by={k}, over=x, {way}); shift({o}, by={k}, over=y, {way})",
    "nested along one axis": "tile({r}, {X}); parallelize({k}, [x, y]); "
    "shift({r}_outer, by={k}, over=x, {way}); shift({r}_inner, by={k}, over=y, {way})",
    "a ring outside": "tile({r}, {X}); parallelize({k}, [x, y]); {whole_x}"
    "shift({r}_outer, by={k}, over=x, reads=pull, chunks=2); "
    "shift({r}_inner, by={k}, over=y, {way})",
    "a ring inside": "tile({r}, {X}); parallelize({k}, [x, y]); {whole_y}"
    "shift({r}_outer, by={k}, over=x, {way}); "
    "shift({r}_inner, by={k}, over=y, reads=pull, chunks=2)",
}
PRODUCT = {"r": "i", "o": "j", "k": "k"}
QUERIES = {"r": "sq", "o": "h", "k": "sk"}
HEADS = {"r": "h", "o": "sq", "k": "sk"}


def attention(**settings: object) -> mc.Program:
    return mc.programs.attention(
        **{"h": 12, "group": 2, "sq": 29, "sk": 23, "d": 4, "dtype": "f64"} | settings
    )


def matmul(dtype: str = "f64") -> mc.Program:
    return mc.programs.matmul(m=29, n=23, depth=17, dtype=dtype)


def run(program: mc.Program, mesh: mc.Mesh, recipe: str, seed: int = 1) -> dict[str, int]:
    """Run a schedule on embedded ranks, compare with float64; give the bytes of each level."""
    plan = mc.Schedule(program, mesh).apply(recipe).compile()
    found = trial(plan, seed, SimOptions(seed=seed, max_delay_us=20))
    assert found.right, (recipe, found.errors)
    return dict(found.report.bytes_sent)


def recipe(loops: str, axes: dict[str, str], way: str, mesh: mc.Mesh) -> str:
    outputs = ("C",) if axes is PRODUCT else ("O", "LSE")
    whole = {
        f"whole_{level}": "".join(f"replicate({name}, {level}); " for name in outputs)
        for level in mesh.names
    }
    return LOOPS[loops].format(**axes, X=mesh["x"], Y=mesh["y"], way=way, **whole)


@pytest.mark.parametrize("loops", LOOPS)
def test_results_move_in_any_way_beside_any_loops(loops):
    for number, way in enumerate(WAYS, list(LOOPS).index(loops)):
        mesh = MESHES[number % len(MESHES)]
        if number % 2:
            run(attention(mask="causal"), mesh, recipe(loops, QUERIES, way, mesh))
        else:
            run(attention(h=13, group=1), mesh, recipe(loops, HEADS, way, mesh))


@pytest.mark.parametrize("loops", LOOPS)
def test_chunks_are_as_many_bytes_as_what_moves_whole(loops):
    mesh = mc.Mesh(x=2, y=3)
    sent = [run(matmul(), mesh, recipe(loops, PRODUCT, way, mesh)) for way in WAYS]
    assert sent == sent[:1] * len(WAYS)


def test_many_tiles_of_a_chunk_come_one_after_the_other():
    mesh = mc.Mesh(x=2, y=5)
    for way in (WAYS[1], WAYS[3]):
        run(attention(), mesh, recipe("a ring inside", QUERIES, way, mesh))


@pytest.mark.parametrize("way", [WAYS[1], WAYS[3], WAYS[4]])
def test_gradients_move_in_chunks_beside_other_loops(way):
    settings = {
        "h": 4,
        "group": 2,
        "sq": 13,
        "sk": 17,
        "d": 3,
        "dtype": "f64",
        "mask": "causal",
    }
    program = mc.programs.attention_backward(**settings, layout={"sk": "zigzag"})
    for loops in (
        "tile(sk, 2); parallelize(sk_outer, x); parallelize(sq, y); shift(sk_inner, by=sq, {})",
        "tile(sk, 2); parallelize(sk_inner, x); parallelize(sq, y); shift(sk_outer, by=sq, {})",
        "tile(sk, 2); parallelize(sq, [x, y]); shift(sk_outer, by=sq, over=x, {0}); "
        "shift(sk_inner, by=sq, over=y, {0})",
    ):
        run(program, mc.Mesh(x=2, y=2), loops.format(way))


@pytest.mark.parametrize("loops", ["nested along one axis", "a ring inside"])
def test_tiles_of_a_chunk_are_rounded_as_they_leave(loops):
    mesh = mc.Mesh(x=2, y=2)
    for way in (WAYS[3], WAYS[4]):
        steps = recipe(loops, PRODUCT, f"{way}, link=bf16", mesh)
        found = trial(mc.Schedule(matmul(dtype="f32"), mesh).apply(steps).compile())
        assert LIMITS["f32"] < found.errors["C"] < 4 * LIMITS["bf16"]


@pytest.mark.parametrize(("ranks", "parts"), [(2, 3), (3, 2)])
def test_results_have_several_parts_a_rank(ranks, parts):
    """The parts of a rank are chunks of one: as many bytes, and results."""
    mesh = mc.Mesh(gpu=ranks)
    for program, axes in ((matmul(), PRODUCT), (attention(), QUERIES), (attention(), HEADS)):
        reads = "" if axes is PRODUCT else ", reads=pull"
        spread = f"parallelize({axes['k']}, gpu); "
        ring = f"by={axes['k']}{reads}, offset="
        whole = run(program, mesh, f"{spread}shift({axes['r']}, {ring}1, results=deliver)")
        tiled = f"{spread}tile({axes['r']}, {parts * ranks}); shift({axes['r']}_outer, {ring}"
        for way in ("deliver", "fetch", "travel"):
            assert run(program, mesh, f"{tiled}{parts}, results={way})") == whole
        run(program, mesh, f"{tiled}0)")  # the own parts first, and a closing hop
