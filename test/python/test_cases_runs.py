"""What users of such systems suffer from, one named test for each kind: runs and errors."""

import functools
import itertools

import mercury as mc
import numpy as np
import pytest
from case_checks import BOTH, ULP, check, inputs_of, same_for_every_delay, schedule_by
from mercury._mlir import ir
from mercury._mlir._mlir_libs import _mercury
from mercury.runtime import dtypes

# --- Numerics -----------------------------------------------------------------------


@functools.cache
def errors_by_ranks(program, strategy):
    made = program(h=2, sq=160, sk=160, d=32, mask="causal", dtype="bf16")
    return {
        ranks: check(schedule_by(strategy, f"gpu={ranks}", made))[1].errors
        for ranks in (1, 2, 8)
    }


@pytest.mark.parametrize("strategy", ["ring", "shifted-reduction", "usp"])
def test_c34_the_error_of_gradients_is_flat(strategy):
    """Gradients in bf16 on 1, 2 and 8 ranks: as near to float64 as on one."""
    errors = errors_by_ranks(mc.programs.attention_backward, strategy)
    for ranks, name in itertools.product((2, 8), ("dQ", "dK", "dV")):
        assert errors[ranks][name] <= 1.25 * errors[1][name] + ULP["bf16"] / 16, errors


@pytest.mark.parametrize("strategy", ["ring", "shifted-reduction", "hybrid"])
def test_c35_partial_results_are_wide(strategy):
    """Outputs in bf16 on 1, 2 and 8 ranks: partial results are not rounded."""
    errors = errors_by_ranks(mc.programs.attention, strategy)
    for ranks in (2, 8):
        assert errors[ranks]["O"] <= 1.05 * errors[1]["O"], errors
        assert errors[ranks]["LSE"] < 1e-5


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_c38_gradients_have_the_dtype_of_their_tensors(dtype):
    """A gradient has its tensor's dtype, and a plan allocates nothing while it runs."""
    program = mc.programs.attention_backward(h=2, sq=19, sk=23, d=8, dtype=dtype)
    plan, _ = check(schedule_by("ring", "gpu=3", program))
    shards = plan.run(plan.scatter(**inputs_of(program)))
    for shard in shards:
        assert {shard[name].dtype for name in ("dQ", "dK", "dV")} == {
            np.dtype(dtypes.storage(dtype))
        }
    assert "memref.alloc" not in plan.spmd
    assert plan.report.peak_arena_bytes <= plan.arena_bytes


# --- Hangs and races ----------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["ulysses", "ring"])
def test_c40_hundreds_of_messages(strategy):
    """Hundreds of messages among 8 ranks at once, delayed and reordered: none is lost."""
    program = mc.programs.attention_backward(h=8, sq=67, sk=65, d=4, dtype="f32")
    plan, _ = check(schedule_by(strategy, "gpu=8", program))
    # Each of 9 tensors from each rank to each other one, or 4 of them around.
    least = {"ulysses": 9 * 8 * 7, "ring": 4 * 8 * 7}[strategy]
    assert sum(plan.report.messages.values()) >= least
    same_for_every_delay(plan, range(1, 7), deadline_ms=10_000)


def test_c41_a_collective_beside_a_ring():
    """Values are gathered while keys rotate on 4 ranks."""
    program = mc.programs.attention(h=2, sq=21, sk=22, d=8, dtype="f32", mask="causal")
    boundary = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}}
    schedule = mc.Schedule(program, mc.Mesh(gpu=4), boundary).parallelize("sq", "gpu")
    plan, _ = check(schedule.replicate("V", "gpu").shift("sk", by="sq"))
    assert "commir.exchange.start" in plan.spmd
    same_for_every_delay(plan, range(1, 17))


@pytest.mark.parametrize("strategy", ["summa", "usp", "gemm-rs"])
def test_c42_collectives_of_two_groups(strategy):
    """Collectives along the rows and the columns of a mesh: one order on every rank."""
    if mc.strategies.get(strategy).program.name == "matmul":
        program = mc.programs.matmul(m=13, n=11, depth=9, dtype="f32")
    else:
        program = mc.programs.attention(h=4, sq=13, sk=11, d=4, dtype="f32")
    plan, _ = check(schedule_by(strategy, "row=2,col=3", program))
    assert all(count > 0 for count in plan.report.messages.values())
    same_for_every_delay(plan, range(1, 13))


@pytest.mark.parametrize("strategy", mc.strategies.names())
def test_c45_ranks_without_work_take_part(strategy):
    """An uneven 4 x 3 grid with fewer positions than ranks: no decision is local."""
    method = mc.strategies.get(strategy)
    sizes = {"m": 5, "n": 2, "depth": 3, "dtype": "f32"}
    if method.program.name != "matmul":
        sizes = {"h": 2, "sq": 5, "sk": 3, "d": 4, "dtype": "f32"}
        sizes = {
            name: value for name, value in sizes.items() if name in method.program.parameters
        }
    plan, _ = check(method.schedule(mc.Mesh(node=4, gpu=3), method.program(**sizes)))
    same_for_every_delay(plan, (1, 2), deadline_ms=10_000)


@pytest.mark.parametrize("strategy", ["gemm-rs-shifted", "gemm-rs", "async-tp"])
def test_c48_a_plan_runs_a_hundred_times(strategy):
    """The same plan again and again: nothing of one run is left for the next."""
    program = mc.programs.matmul(m=13, n=9, depth=7, dtype="f32")
    plan, _ = check(schedule_by(strategy, "gpu=3", program))
    same_for_every_delay(plan, range(100), max_delay_us=20)


@pytest.mark.parametrize(
    "strategy", ["ag-gemm-shifted", "ag-gemm", "async-tp", "gemm-rs-shifted"]
)
def test_c52_a_slow_rank_keeps_what_it_reads(strategy):
    """A rank that is late by far more than a step still reads what it should."""
    program = mc.programs.matmul(m=13, n=9, depth=5, dtype="f32")
    plan, _ = check(schedule_by(strategy, "gpu=4", program))
    same_for_every_delay(plan, range(1, 7), max_delay_us=20_000)


def problem_of(spmd):
    proofs, messages = _mercury.check_plans(ir.Module.parse(spmd, ir.Context()))
    assert bool(proofs) != bool(messages)
    return messages[0][0][1] if messages else ""


def test_c52_an_order_that_races_is_refused():
    """A slot that is read while it is filled, or a message without its wait: refused."""
    program = mc.programs.matmul(m=13, n=9, depth=5, dtype="f32")
    plan, _ = check(schedule_by("ag-gemm-shifted", "gpu=4", program))
    assert not problem_of(plan.spmd)
    lines = plan.spmd.splitlines()
    wait = next(n for n, line in enumerate(lines) if "commir.wait" in line)
    # The part that the next step works on may not have come.
    assert problem_of("\n".join(lines[:wait] + lines[wait + 1 :]))
    # One slot instead of two: a part comes into what is being read.
    swapped = plan.spmd.replace("arith.remui %arg2, %c2", "arith.remui %arg2, %c1")
    assert swapped != plan.spmd
    assert problem_of(swapped)
    # Sends first, and receives from a rank that has not sent yet: no order at all.
    launch = next(n for n, line in enumerate(lines) if "commir.launch" in line)
    start = next(n for n, line in enumerate(lines) if "exchange.start" in line)
    assert start < launch < wait
    late = [*lines[:launch], *lines[wait : wait + 1], *lines[launch:wait], *lines[wait + 1 :]]
    # Waiting earlier is slow, and right.
    assert not problem_of("\n".join(late))


# --- No entry, no fit, no neighbour -------------------------------------------------


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_c57_shapes_that_no_one_tuned(dtype):
    """Odd shapes in every dtype run by default, with nothing tuned and nothing given."""
    check(mc.Schedule(mc.programs.matmul(m=31, n=1, depth=67, dtype=dtype), mc.Mesh(gpu=3)))
    odd = mc.programs.attention(h=3, sq=13, sk=29, d=7, dv=3, dtype=dtype)
    check(mc.Schedule(odd, mc.Mesh(gpu=3)))


@pytest.mark.parametrize("strategy", ["ag-gemm-shifted", "gemm-rs-shifted", "ag-gemm"])
def test_c65_memory_is_sized_by_the_plan(strategy):
    """A tensor 3.5 times as large: the plan has the memory that it needs."""
    small, large = (
        check(
            schedule_by(
                strategy,
                "gpu=4",
                mc.programs.matmul(m=rows, n=24, depth=64, dtype="f32"),
            )
        )[0]
        for rows in (64, 224)
    )
    assert 3 * small.arena_bytes < large.arena_bytes < 4 * small.arena_bytes
    assert large.report.peak_arena_bytes <= large.arena_bytes


@pytest.mark.parametrize(
    ("program", "order"),
    [(BOTH[0], order) for order in itertools.permutations(["tp", "u", "r"])]
    + [(BOTH[1], ("u", "tp", "r"))],
)
def test_c66_groups_come_from_the_mesh(program, order):
    """Tensor parallel x heads x ring, in every order: no group is of consecutive ranks."""
    made = program(h=8, group=2, sq=19, sk=17, d=4, mask="causal", dtype="f32")
    mesh = mc.Mesh(**dict.fromkeys(order, 2))
    tokens = {"sq": ("r", "u"), "sk": ("r", "u"), "h": ("tp",)}
    boundary = {
        buffer.name: {
            dim.axis.name: tokens[dim.axis.name]
            for dim in buffer.dims
            if dim.axis is not None and dim.axis.name in tokens
        }
        for buffer in made.buffers
    }
    schedule = mc.Schedule(made, mesh, boundary).parallelize("h", ["tp", "u"])
    plan, _ = check(schedule.parallelize("sq", "r").shift("sk", by="sq"))
    # Heads move among u alone, keys along r alone.
    assert plan.report.bytes_sent["tp"] == 0
    assert plan.report.bytes_sent["u"] > 0
    assert plan.report.bytes_sent["r"] > 0


@pytest.mark.parametrize("mesh", [mc.Mesh(dp=4, tp=2), mc.Mesh(dp=2, tp=3)])
def test_c69_one_axis_of_a_mesh_overlaps(mesh):
    """Rows over both levels, of which only the inner one rotates."""
    program = mc.programs.matmul(m=37, n=11, depth=9, dtype="f32")
    schedule = mc.Schedule(program, mesh, {"A": {"i": ["dp", "tp"]}}).tile("i", "dp")
    schedule.parallelize("i_outer", "dp").parallelize("j", "tp")
    plan, _ = check(schedule.shift("i_inner", by="j"))
    assert plan.report.bytes_sent["dp"] == 0
    assert plan.report.bytes_sent["tp"] > 0
