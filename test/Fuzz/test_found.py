"""Small programs that random ones came down to: what once failed."""

import subprocess
import sys

import mercury as mc
import pytest
from mercury.runtime.trial import trial

SINK = {"sink": True, "d": 2, "dtype": "f32"}
PIECES = {"dtype": "f32", "layout": {"k": "zigzag"}}

FOUND = {
    "a sink on one rank": (
        lambda: mc.programs.attention(h=1, sq=2, sk=2, **SINK),
        mc.Mesh(gpu=1),
        "",
    ),
    "a sink beside heads that are shifted": (
        lambda: mc.programs.attention(h=2, sq=6, sk=8, **SINK),
        mc.Mesh(gpu=2),
        "parallelize(sq, gpu); shift(h, by=sq)",
    ),
    "ranks that share a group of heads": (
        lambda: mc.programs.attention_backward(h=2, group=2, sq=4, sk=4, d=3, dtype="f32"),
        mc.Mesh(gpu=2),
        "parallelize(h, gpu)",
    ),
    "steps that share a group of heads": (
        lambda: mc.programs.attention_backward(h=2, group=2, sq=4, sk=4, d=3, dtype="f32"),
        mc.Mesh(gpu=1),
        "tile(h, 2)",
    ),
    "chunks of results whose launches work in the same memory": (
        lambda: mc.programs.attention(b=2, h=6, group=2, sq=1, sk=11, d=4, dtype="bf16"),
        mc.Mesh(gpu=2),
        "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu); "
        "shift(sq, by=sk, offset=1, reads=pull, results=fetch, chunks=3)",
    ),
    "pieces of a tile in slots of uneven parts": (
        lambda: mc.programs.matmul(m=1, n=2, depth=4, **PIECES),
        mc.Mesh(gpu=2),
        "parallelize(j, gpu); shift(i, by=j); tile(k, 2)",
    ),
    "no queries to redistribute": (
        lambda: mc.programs.attention(h=2, sq=0, sk=4, d=2, dtype="f32"),
        mc.Mesh(gpu=2),
        "shard(Q, sq, gpu); parallelize(h, gpu)",
    ),
    "pieces of a tile of nothing": (
        lambda: mc.programs.matmul(m=0, n=3, depth=3, **PIECES),
        mc.Mesh(gpu=1),
        "tile(k, 2)",
    ),
    "no keys, and results that are redistributed in pieces": (
        lambda: mc.programs.attention(
            h=3, sq=4, sk=0, d=2, dtype="f32", layout={"sq": "zigzag"}
        ),
        mc.Mesh(gpu=2),
        "shard(O, sq, gpu); shard(LSE, sq, gpu); parallelize(h, gpu)",
    ),
    "zeros where a document has no queries here": (
        lambda: mc.programs.attention_backward(
            b=2, h=6, group=2, sq=23, sk=23, d=3, dtype="f32", mask=mc.full().packed([0, 8, 23])
        ),
        mc.Mesh(rack=4, node=3),
        "parallelize(sq, node); parallelize(h, rack); tile(b, 2)",
    ),
    "a sink without keys": (
        lambda: mc.programs.attention(h=1, sq=4, sk=0, **SINK),
        mc.Mesh(gpu=1),
        "",
    ),
    "two parts of heads that share a head of the keys, dealt at once": (
        lambda: mc.programs.attention(b=2, h=2, group=2, sq=2, sk=22, d=5, dtype="f32"),
        mc.Mesh(gpu=2),
        "parallelize(b, gpu)",
        {"V": {"h": [2, "gpu"]}},
    ),
    "tiles of a part, visited in an order of each rank's own": (
        lambda: mc.programs.matmul(m=5, n=3, depth=5, dtype="f32"),
        mc.Mesh(gpu=3),
        "parallelize(k, gpu); tile(i, 3); shift(i_outer, by=k); shift(i_inner, by=k)",
    ),
    "no columns to merge at the end": (
        lambda: mc.programs.matmul(m=2, n=0, depth=4, dtype="f32"),
        mc.Mesh(gpu=2),
        "parallelize(i, gpu); tile(k, 2); defer(C)",
    ),
    "no queries to merge at the end": (
        lambda: mc.programs.attention(h=2, sq=0, sk=3, d=2, dtype="f32"),
        mc.Mesh(gpu=2),
        "parallelize(h, gpu); tile(sk, 2); defer(O)",
    ),
    "counting on the host that a code generator took for vectors, and ended the process": (
        lambda: mc.programs.matmul(m=1, n=1, depth=11, **PIECES),
        mc.Mesh(gpu=2),
        "tile(k, 4); parallelize(k_inner, gpu)",
        {"A": {"k": "gpu"}},
    ),
    "rows and columns joined over one level, sums left in parts on another": (
        lambda: mc.programs.matmul(m=5, n=4, depth=6, dtype="f32"),
        mc.Mesh(node=2, gpu=2),
        "parallelize(k, gpu); shard(C, i, gpu); join(i, j); parallelize(i_j, node)",
    ),
    "slots that hold parts of several shapes, with what the last one left between": (
        lambda: mc.programs.attention(
            h=7, sq=5, sk=9, d=4, dtype="f32", layout={"sq": "bounds[0, 1, 2, 5, 5]"}
        ),
        mc.Mesh(gpu=4),
        "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu); "
        "shift(sq, by=sk, offset=1); shift(h, by=sk, offset=1, reads=pull)",
    ),
    "bounds that an outer level alone does not cut, where sums are shared out": (
        lambda: mc.programs.matmul(
            m=7, n=6, depth=9, dtype="f32", layout={"i": "bounds[0, 3, 7]"}
        ),
        mc.Mesh(node=3, gpu=2),
        "parallelize(k, [node, gpu]); shard(C, i, [node, gpu])",
    ),
    "a sink beside stripes that see nothing, of results that move to their owners": (
        lambda: mc.programs.attention(
            h=3,
            sq=18,
            sk=7,
            mask=mc.window(1, 3),
            layout={"sq": "striped(3)", "sk": "striped(1)"},
            **SINK,
        ),
        mc.Mesh(node=3, gpu=3),
        "parallelize(sk, node); shard(O, sq, node); shard(LSE, sq, node); "
        "shift(sq, by=sk, direction=-1, offset=-1, reads=pull, results=deliver)",
        {"O": {"h": "gpu"}},
    ),
    "a sink of several heads without keys": (
        lambda: mc.programs.attention(b=2, h=3, sq=5, sk=0, **SINK),
        mc.Mesh(gpu=2),
        "parallelize(sq, gpu)",
    ),
    "a sink of rows that see nothing, made in another order than they end in": (
        lambda: mc.programs.attention(
            h=1,
            sq=18,
            sk=10,
            mask=mc.window(2, 0),
            layout={"sq": "zigzag", "sk": "zigzag"},
            **SINK,
        ),
        mc.Mesh(node=6, gpu=2),
        "tile(sq, 6); tile(sk, 6); parallelize(sq_outer, node); parallelize(sk_inner, gpu); "
        "shift(sk_outer, by=sq_outer); shift(sq_inner, by=sk_inner, offset=1, reads=pull, "
        "results=fetch); shard(O, sq, gpu); shard(LSE, sq, gpu)",
    ),
    "a sink beside a piece of rows that see nothing": (
        lambda: mc.programs.attention(
            h=2, sq=7, sk=9, mask=mc.causal(offset=-3), layout={"sq": "zigzag"}, **SINK
        ),
        mc.Mesh(gpu=3),
        "parallelize(sq, gpu)",
    ),
    "two nests that have their buffers in different places": (
        lambda: mc.programs.attention_backward(h=2, sq=7, sk=9, mask="causal", **SINK),
        mc.Mesh(node=2, gpu=2),
        "parallelize(sq, gpu); parallelize(h_, node)",
    ),
    "a nest that is left alone, over a level that its inputs are broadcast on": (
        lambda: mc.programs.attention_backward(h=3, sq=7, sk=9, mask="causal", **SINK),
        mc.Mesh(node=2, gpu=3),
        "parallelize(sk, node); shard(LSE, sq, gpu, reads=broadcast); "
        "shard(O, sq, gpu, reads=broadcast); shard(dO, sq, gpu, reads=broadcast)",
    ),
    "bounds that do not name as many parts as a shard and the loops make": (
        lambda: mc.programs.matmul(
            m=7, n=5, depth=4, dtype="f32", layout={"i": "bounds[0, 1, 3, 4, 5, 6, 7]"}
        ),
        mc.Mesh(node=2, gpu=2),
        "shard(A, i, gpu); parallelize(i, node)",
    ),
}


@pytest.mark.parametrize("fault", FOUND)
def test_a_program_that_a_random_one_came_down_to(fault):
    program, mesh, recipe, *boundary = FOUND[fault]
    plan = mc.Schedule(program(), mesh, *boundary).apply(recipe).compile()
    assert trial(plan).right


# An assertion of the compiler ends the process.
def test_a_loop_that_is_shifted_by_its_own_inner_loop():
    text = """
import mercury as mc
program = mc.programs.matmul(m=4, n=3, depth=5, dtype="f32")
schedule = mc.Schedule(program, mc.Mesh(gpu=2)).tile("i", 2)
try:
    schedule.parallelize("i_inner", "gpu").shift("i_outer", by="i_inner").compile()
except mc.MercuryError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", text], check=False, capture_output=True)
    assert done.returncode == 0
