"""Partial results in chunks, fetched, and on narrower links, against float64."""

from __future__ import annotations

import mercury as mc
import numpy as np
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import LIMITS, trial

MESHES = [mc.Mesh(gpu=2), mc.Mesh(gpu=3), mc.Mesh(node=2, gpu=2), mc.Mesh(node=2, gpu=3)]


def gemm_rs(mesh: mc.Mesh, **shift: object) -> mc.Schedule:
    """C = A B, k over the last level, rows of C to their owners."""
    program = mc.programs.gemm_rs(m=23, n=9, depth=17, dtype="f32")
    level = mesh.names[-1]
    boundary = {"A": {"k": level}, "B": {"k": level}, "C": {"i": level}}
    schedule = mc.Schedule(program, mesh=mesh, boundary=boundary)
    return schedule.parallelize("k", level).shift("i", by="k", **{"offset": 1, **shift})


def attention(mesh: mc.Mesh, **shift: object) -> mc.Schedule:
    """Keys over the last level, queries shifted: partial results of softmax go home."""
    program = mc.programs.attention(h=4, group=2, sq=23, sk=19, d=8, dtype="f32", mask="causal")
    level = mesh.names[-1]
    cut = {"Q": {"sq": level}, "K": {"sk": level}, "V": {"sk": level}, "O": {"sq": level}}
    schedule = mc.Schedule(program, mesh=mesh, boundary={**cut, "LSE": {"sq": level}})
    schedule.parallelize("sk", level)
    return schedule.shift("sq", by="sk", **{"offset": 1, "reads": "pull", **shift})


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("results", ["deliver", "fetch"])
@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("make", [gemm_rs, attention])
def test_results_in_chunks_are_right_and_move_once(make, mesh, results, chunks):
    found = trial(make(mesh, results=results, chunks=chunks).compile())
    assert found.right, found.errors
    whole = trial(make(mesh, results="deliver").compile())
    assert found.report.bytes_sent == whole.report.bytes_sent
    if make is gemm_rs:
        # Each rank sends all parts of float32 but its own, once.
        ranks = mesh.size // mesh[mesh.names[-1]]
        sent = 23 * 9 * 4 * (mesh[mesh.names[-1]] - 1) * ranks
        assert found.report.bytes_sent[mesh.names[-1]] == sent


@pytest.mark.parametrize("mesh", MESHES[1:3], ids=str)
@pytest.mark.parametrize("way", [{}, {"offset": 0}, {"direction": -1}, {"offset": 2}], ids=str)
@pytest.mark.parametrize("chunks", [2, 30])
@pytest.mark.parametrize("make", [gemm_rs, attention])
def test_accumulators_travel_in_chunks(make, mesh, way, chunks):
    found = trial(make(mesh, chunks=chunks, **way).compile(), 0, SimOptions(seed=chunks))
    assert found.right, found.errors
    whole = trial(make(mesh, **way).compile())
    assert found.report.bytes_sent == whole.report.bytes_sent


@pytest.mark.parametrize("mesh", MESHES[1:3], ids=str)
@pytest.mark.parametrize("mask", ["full", "causal", mc.window(4, 1)], ids=str)
@pytest.mark.parametrize("layout", ["block", "zigzag"])
@pytest.mark.parametrize("shift", [{}, {"direction": -1}, {"offset": 1}], ids=str)
def test_gradients_travel_in_the_chunks_that_keys_come_in(mesh, mask, layout, shift):
    program = mc.programs.attention_backward(
        h=4, group=2, sq=23, sk=29, d=4, dtype="f32", mask=mask, layout={"sk": layout}
    )
    level = mesh.names[-1]
    schedule = mc.Schedule(program, mesh).parallelize("sq", level)
    schedule.shift("sk", by="sq", reads="pull", chunks=3, **shift)
    found = trial(schedule.compile(), 0, SimOptions(seed=1))
    assert found.right, found.errors


def test_the_other_way_round_is_right():
    for results in ("deliver", "fetch"):
        schedule = gemm_rs(mc.Mesh(gpu=3), results=results, chunks=2, direction=-1, offset=-1)
        assert trial(schedule.compile()).right


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize(
    "shift",
    [
        {},
        {"results": "deliver"},
        {"results": "deliver", "chunks": 2},
        {"results": "fetch", "chunks": 2},
        {"offset": 0},
        {"chunks": 2},
        {"chunks": 2, "offset": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [gemm_rs, attention])
def test_a_narrow_link_moves_half_the_bytes_and_rounds_to_its_type(make, mesh, shift):
    reads = {"reads": "rotate"} if make is attention and "chunks" not in shift else {}
    narrow = trial(make(mesh, link="bf16", **shift, **reads).compile())
    wide = trial(make(mesh, **shift, **reads).compile())
    worst = max(narrow.errors.values())
    # Rounded, but by no more than bf16 is; a zero result has error 1.
    assert LIMITS["f32"] < worst < 2 * LIMITS["bf16"]
    for level, sent in wide.report.bytes_sent.items():
        got = narrow.report.bytes_sent[level]
        if make is gemm_rs:
            assert got == sent // 2
        else:
            # The log-sum-exp stays in float32.
            assert sent // 2 <= got < 0.6 * sent or sent == 0


@pytest.mark.parametrize("results", ["deliver", "fetch"])
@pytest.mark.parametrize("chunks", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_products_leave_in_the_type_of_the_result(mesh, dtype, chunks, results):
    program = mc.programs.gemm_rs(m=41, n=9, depth=17, dtype=dtype)
    level = mesh.names[-1]
    boundary = {"A": {"k": level}, "B": {"k": level}, "C": {"i": level}}
    schedule = mc.Schedule(program, mesh=mesh, boundary=boundary).parallelize("k", level)
    schedule.shift("i", by="k", offset=1, results=results, chunks=chunks, link=dtype)
    plan = schedule.compile()
    found = trial(plan)
    assert found.right, found.errors
    size = mesh[level]
    sent = 41 * 9 * 2 * (size - 1) * (mesh.size // size)
    assert found.report.bytes_sent[level] == sent
    if size == 2 and chunks > 1:
        # The result is where all of it is summed: what waits to leave is all there is beside.
        largest = max(-(-41 // (2 * chunks)) * chunks, 0) * 9 * 2
        assert plan.arena_bytes < 2 * largest


@pytest.mark.parametrize("reads", ["rotate", "pull"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_keys_and_values_on_a_narrow_link(mesh, reads):
    program = mc.programs.attention(
        h=2, sq=21, sk=26, d=8, dtype="f32", layout={"sk": "zigzag"}
    )
    method = mc.strategies.get("double-ring" if len(mesh.names) > 1 else "ring")

    def schedule(**more: object) -> mc.Schedule:
        cut = {name: {"sq": list(mesh.names)} for name in ("Q", "O", "LSE")}
        cut |= {name: {"sk": list(mesh.names)} for name in ("K", "V")}
        made = mc.Schedule(program, mesh=mesh, boundary=cut)
        made.parallelize("sq", list(mesh.names))
        return made.shift("sk", by="sq", over=list(mesh.names), reads=reads, **more)

    assert method
    narrow, wide = (trial(schedule(**link).compile()) for link in ({"link": "f16"}, {}))
    assert LIMITS["f32"] < narrow.errors["O"] < 4 * LIMITS["f16"]
    for level, sent in wide.report.bytes_sent.items():
        assert narrow.report.bytes_sent[level] == sent // 2


def test_every_rank_works_on_the_same_rounded_keys():
    # One query on each of three ranks, all alike: so are the results.
    program = mc.programs.attention(h=1, sq=3, sk=7, d=4, dtype="f32")
    cut = {"Q": {"sq": "gpu"}, "O": {"sq": "gpu"}, "LSE": {"sq": "gpu"}}
    cut |= {"K": {"sk": "gpu"}, "V": {"sk": "gpu"}}
    schedule = mc.Schedule(program, mesh=mc.Mesh(gpu=3), boundary=cut)
    plan = schedule.parallelize("sq", "gpu").shift("sk", by="sq", link="bf16").compile()
    drawn = np.random.default_rng(0)
    inputs = {name: drawn.standard_normal((1, 7, 1, 4), np.float32) for name in ("K", "V")}
    inputs["Q"] = np.repeat(drawn.standard_normal((1, 1, 1, 4), np.float32), 3, axis=1)
    out = plan.gather(plan.run(plan.scatter(**inputs)))["O"]
    assert np.abs(out - out[:, :1]).max() < 1e-6 < np.abs(out).max()


@pytest.mark.parametrize("results", ["deliver", "fetch"])
def test_chunks_that_cut_a_group_of_heads_do_not_move(results):
    program = mc.programs.attention_backward(h=4, group=2, sq=5, sk=6, d=2, dtype="f32")
    schedule = mc.Schedule(program, mc.Mesh(gpu=2)).parallelize("sk", "gpu")
    schedule.shard("dQ", "h", "gpu").shift(
        "h", by="sk", offset=1, reads="pull", results=results, chunks=2
    )
    plan = schedule.compile()
    assert trial(plan).right
