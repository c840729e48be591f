"""Plans on the embedded ranks against float64 on one device."""

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.runtime import SimOptions, dtypes
from mercury.runtime.trial import LIMITS, trial


def inputs_of(program, seed):
    """Inputs of unit scale, as they are in their dtype."""
    rng = np.random.default_rng(seed)
    return {
        buffer.name: dtypes.decode(
            dtypes.encode(rng.standard_normal(buffer.shape), buffer.dtype), buffer.dtype
        )
        for buffer in program.inputs
    }


def check(schedule, seed=0):
    result = trial(schedule.compile(), seed)
    assert result.right, (schedule.recipe(), schedule.mesh, schedule.program, result.errors)
    return result


MATMUL_RECIPES = [
    "parallelize(j, gpu)",
    "parallelize(i, gpu)",
    "parallelize(j, gpu); shard(A, i, gpu)",
    "parallelize(i, gpu); shard(B, k, gpu)",
    "parallelize(j, gpu); shift(i, by=j)",
    "parallelize(j, gpu); shift(i, by=j, direction=-1, offset=1)",
    "parallelize(i, gpu); shift(k, by=i)",
    "parallelize(i, gpu); shift(k, by=i, direction=-1); tile(j, 3, names=[r, s]); "
    "reorder(k, r, s)",
    "parallelize(i, gpu); shift(k, by=i, offset=2); tile(j, 2, names=[r, s]); reorder(k, r, s)",
    "tile(k, 4); parallelize(j, gpu)",
    "parallelize(j, gpu); tile(i, 3, names=[r, s]); tile(k, 2, names=[u, v]); "
    "reorder(u, v, r, s)",
]

ATTENTION_RECIPES = [
    "parallelize(sq, gpu)",
    "parallelize(h, gpu)",
    "parallelize(b, gpu)",
    "parallelize(sq, gpu); shard(K, sk, gpu); shard(V, sk, gpu)",
    "parallelize(sq, gpu); shard(K, sk, gpu); shard(V, sk, gpu); tile(sk, 3)",
    "parallelize(sq, gpu); shift(sk, by=sq)",
    "parallelize(sq, gpu); shift(sk, by=sq, direction=-1)",
    "parallelize(sq, gpu); shift(sk, by=sq, offset=1)",
    "parallelize(sq, gpu); shift(sk, by=sq, direction=-1, offset=2)",
    "parallelize(h, gpu); shift(sk, by=h)",
    "parallelize(sq, gpu); shift(sk, by=sq); tile(h, 2); reorder(sk, h_outer, h_inner)",
    "parallelize(sq, gpu); shift(sk, by=sq, via=dict(V=rotate))",
]


@pytest.mark.parametrize("case", range(36))
def test_matmul_of_random_shapes_ranks_and_schedules(case):
    rng = np.random.default_rng(case)
    recipe = MATMUL_RECIPES[case % len(MATMUL_RECIPES)]
    m, n, depth = (int(x) for x in rng.integers(0 if case > 30 else 1, 40, 3))
    dtype = str(rng.choice(["f32", "f32", "bf16", "f16", "f64"]))
    program = mc.programs.matmul(m=m, n=n, depth=depth, dtype=dtype)
    schedule = mc.Schedule(program, mc.Mesh(gpu=int(rng.integers(1, 9)))).apply(recipe)
    check(schedule, seed=case)


@pytest.mark.parametrize("case", range(48))
def test_attention_of_random_shapes_ranks_and_schedules(case):
    rng = np.random.default_rng(1000 + case)
    recipe = ATTENTION_RECIPES[case % len(ATTENTION_RECIPES)]
    sq, sk = (int(x) for x in rng.integers(0 if case > 40 else 1, 70, 2))
    group = int(rng.choice([1, 1, 2, 3]))
    mask = [None, mc.causal(), mc.causal(sk - sq), mc.window(5), mc.window(9, 4)][case % 5]
    dtype = str(rng.choice(["f32", "f32", "bf16", "f16", "f64"]))
    program = mc.programs.attention(
        b=int(rng.integers(1, 4)),
        h=group * int(rng.integers(1, 5)),
        group=group,
        sq=sq,
        sk=sk,
        d=int(rng.integers(1, 20)),
        dv=int(rng.integers(1, 80)),
        mask=mask,
        dtype=dtype,
    )
    schedule = mc.Schedule(program, mc.Mesh(gpu=int(rng.integers(1, 9)))).apply(recipe)
    check(schedule, seed=case)


# What a strategy needs that is not lowered yet, on these meshes.
@pytest.mark.parametrize("mesh", ["gpu=1", "gpu=3", "gpu=4", "node=2,gpu=3", "node=3,gpu=2"])
@pytest.mark.parametrize("strategy", mc.strategies.names())
def test_strategies(strategy, mesh):
    method = mc.strategies.get(strategy)
    ranks = mc.Mesh.parse(mesh)
    sizes = {"b": 2, "h": 6, "group": 2, "sk": 23, "d": 8, "dtype": "bf16"}
    program = {
        "attention": lambda: mc.programs.attention(sq=19, dv=5, mask="causal", **sizes),
        "decode_attention": lambda: mc.programs.decode_attention(**sizes),
        "matmul": lambda: mc.programs.matmul(m=17, n=13, depth=11, dtype="bf16"),
    }[method.program.name]()
    schedule = method.schedule(ranks, program)
    check(schedule)


REDUCTIONS = [
    "parallelize(k, gpu); shard(C, i, gpu)",
    "parallelize(k, gpu); shard(C, j, gpu)",
    "parallelize(k, gpu)",
    "parallelize(k, gpu); shard(C, i, gpu); shift(i, by=k, offset=1)",
    "parallelize(k, gpu); shard(C, i, gpu); shift(i, by=k)",
    "parallelize(k, gpu); shard(C, j, gpu); shift(j, by=k, offset=2, direction=-1)",
    "parallelize(k, gpu); shard(C, j, gpu); shift(j, by=k, direction=-1, offset=-1)",
]


@pytest.mark.parametrize("recipe", REDUCTIONS)
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_results_that_ranks_merge(recipe, ranks):
    program = mc.programs.matmul(m=12, n=7, depth=9, dtype="f32")
    check(mc.Schedule(program, mc.Mesh(gpu=ranks)).apply(recipe))


@pytest.mark.parametrize("given", ["i", "k", ""])
@pytest.mark.parametrize("kept", ["i", "j", ""])
def test_boundaries_other_than_the_schedule_wants(given, kept):
    program = mc.programs.matmul(m=12, n=7, depth=9, dtype="bf16")
    boundary = {"A": {given: "gpu"} if given else {}, "C": {kept: "gpu"} if kept else {}}
    schedule = mc.Schedule(program, mc.Mesh(gpu=4), boundary).parallelize("i", "gpu")
    check(schedule)


def test_a_double_ring_sends_each_part_once_over_the_slow_level():
    nodes, gpus, m, depth = 3, 2, 23, 7
    program = mc.programs.matmul(m=m, n=10, depth=depth, dtype="f32")
    mesh = mc.Mesh(node=nodes, gpu=gpus)
    result = check(mc.strategies.get("ag-gemm-shifted").schedule(mesh, program))
    whole = m * depth * 4
    # Every part of A goes to every other node once, and there around the ring.
    assert result.report.bytes_sent == {
        "node": (nodes - 1) * whole,
        "gpu": nodes * (gpus - 1) * whole,
    }


def test_three_levels_nest():
    program = mc.programs.attention(b=2, h=4, group=2, sq=29, sk=23, d=8, mask="causal")
    mesh = mc.Mesh(rack=2, node=3, gpu=2)
    check(mc.strategies.get("double-ring").schedule(mesh, program))


def test_partial_results_move_as_often_as_they_must():
    ranks, m, n = 5, 23, 7
    program = mc.programs.matmul(m=m, n=n, depth=11, dtype="bf16")
    for strategy in ("gemm-rs", "gemm-rs-shifted"):
        schedule = mc.strategies.get(strategy).schedule(mc.Mesh(gpu=ranks), program)
        # Each part's sum comes from all ranks but its owner, in float32.
        assert check(schedule).report.bytes_sent == {"gpu": (ranks - 1) * m * n * 4}
    schedule = mc.strategies.get("row-parallel").schedule(mc.Mesh(gpu=ranks), program)
    assert check(schedule).report.bytes_sent == {"gpu": ranks * (ranks - 1) * m * n * 4}


@pytest.mark.parametrize("strategy", ["context-parallel", "ring"])
@pytest.mark.parametrize("length", [1, 2, 7, 65, 1000])
def test_lengths_that_ranks_do_not_divide(strategy, length):
    program = mc.programs.attention(h=2, sq=length, sk=length, d=16, mask="causal", dtype="f32")
    schedule = mc.strategies.get(strategy).schedule(mc.Mesh(gpu=3), program)
    check(schedule)


@pytest.mark.parametrize("layout", ["zigzag", "striped(3)", "bounds[0, 9, 9, 40]"])
def test_full_attention_in_any_layout(layout):
    program = mc.programs.attention(
        h=2, sq=40, sk=40, d=8, dtype="f32", layout={"sq": layout, "sk": layout}
    )
    schedule = mc.strategies.get("ring").schedule(mc.Mesh(gpu=3), program)
    check(schedule)


def test_causal_attention_in_explicit_bounds():
    layout = {"sq": "bounds[0, 9, 9, 40]", "sk": "bounds[0, 1, 30, 40]"}
    program = mc.programs.attention(
        h=2, sq=40, sk=40, d=8, dtype="f32", mask="causal", layout=layout
    )
    schedule = mc.strategies.get("ring").schedule(mc.Mesh(gpu=3), program)
    check(schedule)


def test_summa_on_two_levels():
    for mesh in (mc.Mesh(row=2, col=3), mc.Mesh(row=3, col=1), mc.Mesh(gpu=4)):
        program = mc.programs.matmul(m=17, n=11, depth=23, dtype="f32")
        schedule = mc.strategies.get("summa").schedule(mesh, program)
        check(schedule)


def test_error_does_not_grow_with_the_ranks():
    found = {}
    for ranks in (1, 2, 4, 8):
        program = mc.programs.attention(h=2, sq=256, sk=256, d=32, mask="causal", dtype="bf16")
        schedule = mc.strategies.get("ring").schedule(mc.Mesh(gpu=ranks), program)
        found[ranks] = check(schedule).errors["O"]
    assert max(found.values()) <= 1.25 * found[1], found


@pytest.mark.parametrize(
    "strategy",
    ["ring", "context-parallel", "ag-gemm-shifted", "gemm-rs-shifted", "hybrid", "usp"],
)
def test_delays_and_reordering_change_nothing(strategy):
    method = mc.strategies.get(strategy)
    if method.program.name == "matmul":
        program = mc.programs.matmul(m=13, n=9, depth=5, dtype="f32")
    else:
        program = mc.programs.attention(h=2, sq=21, sk=22, d=8, dtype="f32")
    plan = method.schedule(mc.Mesh(gpu=4), program).compile()
    shards = plan.scatter(**inputs_of(program, 0))
    expected = plan.run(shards)
    for seed in range(1, 26):
        result = plan.run(shards, SimOptions(seed=seed))
        for mine, first in zip(result, expected, strict=True):
            for name, array in first.items():
                np.testing.assert_array_equal(mine[name], array)


def test_a_ring_moves_all_but_one_part():
    ranks, m, depth = 5, 23, 7
    program = mc.programs.matmul(m=m, n=10, depth=depth, dtype="f32")
    plan = mc.strategies.get("ag-gemm-shifted").schedule(mc.Mesh(gpu=ranks), program).compile()
    plan.run(plan.scatter(**inputs_of(program, 0)))
    # Every part of A goes to every rank but its owner, once.
    assert plan.report.bytes_sent == {"gpu": (ranks - 1) * m * depth * 4}


def test_arena_is_two_slots_of_the_largest_part():
    program = mc.programs.matmul(m=10, n=6, depth=16, dtype="f32")
    plan = mc.strategies.get("ag-gemm-shifted").schedule(mc.Mesh(gpu=3), program).compile()
    assert plan.arena_bytes == 2 * 4 * 16 * 4
    plan.run(plan.scatter(**inputs_of(program, 0)))
    assert plan.report.peak_arena_bytes == plan.arena_bytes


def test_a_failing_rank_ends_the_run_with_its_name():
    program = mc.programs.matmul(m=13, n=9, depth=5, dtype="f32")
    plan = mc.strategies.get("ag-gemm-shifted").schedule(mc.Mesh(gpu=4), program).compile()
    shards = plan.scatter(**inputs_of(program, 0))
    with pytest.raises(mc.RunError, match=r"rank 2 \(gpu=2\)"):
        plan.run(shards, SimOptions(fail_rank=2, fail_after_ops=1))
    plan.run(shards)  # and the plan is as good as before


def test_user_program_runs_from_its_own_file():
    @mc.program
    def scores(p, rows=9, columns=8, depth=6):
        r, c, x = p.axes(r=rows, c=columns, x=depth)
        left, right = p.input("L", (r, x), "f32"), p.input("R", (x, c), "f32")
        out = p.output("S", (r, c), "f32")
        with p.loops(r, c):
            out[r, c] = p.reduce(x, merge="sum", body=lambda: p.matmul(left[r, x], right[x, c]))

    program = scores(rows=10)
    plan = mc.Schedule(program, mc.Mesh(gpu=3)).parallelize("r", "gpu").compile()
    given = inputs_of(program, 3)
    result = plan.gather(plan.run(plan.scatter(**given)))
    assert reference.relative_error(result, reference.matmul(given["L"], given["R"])) < 2e-6


def test_a_zero_output_and_a_lost_tile_are_wrong():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((40, 64)), rng.standard_normal((64, 30))
    whole = reference.matmul(a, b)
    assert reference.relative_error(np.zeros_like(whole), whole) == 1
    for tile in range(64):
        lost = whole - np.outer(a[:, tile], b[tile])
        assert reference.relative_error(lost, whole) > 10 * max(LIMITS.values())
    late = whole.copy()
    late[3, 3] = np.nan
    assert reference.relative_error(late, whole) == np.inf


def test_long_sums_are_judged_by_their_length():
    program = mc.programs.attention(h=1, sq=2, sk=16384, d=4, dtype="f32")
    check(mc.Schedule(program, mc.Mesh(gpu=2)))
    check(mc.strategies.get("tree").schedule(mc.Mesh(gpu=5), program))


def test_bfloat16_is_copied_as_bits():
    # LLVM cannot select code for the vectors that a copy of these shapes becomes.
    program = mc.programs.matmul(m=9, n=8, depth=3, dtype="bf16")
    schedule = mc.Schedule(program, mc.Mesh(node=2, gpu=4))
    check(schedule.tile("k", 2).shard("A", "i", "gpu"))


@pytest.mark.parametrize(("direction", "hops"), [(-1, 1), (1, 7)])
def test_a_ring_behind_a_window_does_not_visit_far_shards(direction, hops):
    program = mc.programs.attention(h=2, sq=64, sk=64, d=8, mask=mc.window(8), dtype="f32")
    schedule = mc.Schedule(program, mesh=mc.Mesh(gpu=8))
    schedule.parallelize("sq", "gpu").shift("sk", by="sq", direction=direction)
    # Keys and values, from each rank.
    assert check(schedule).report.messages == {"gpu": 2 * 8 * hops}


def test_a_part_is_pulled_by_every_rank_but_its_owner():
    program = mc.programs.ag_gemm(m=24, n=8, depth=4, dtype="f32")
    schedule = mc.Schedule(program, mesh=mc.Mesh(gpu=3), boundary={"A": {"i": "gpu"}})
    schedule.parallelize("j", "gpu").shift("i", by="j", reads="pull", chunks=2)
    report = check(schedule).report
    assert report.bytes_sent == {"gpu": 2 * 24 * 4 * 4}
    assert report.messages == {"gpu": 3 * 2 * 2}
