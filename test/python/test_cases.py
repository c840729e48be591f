"""What users of such systems suffer from, one named test for each kind.

Sizes are smaller than where the kind was met, and as odd. Every result is compared with
float64 on one device, which no zero output and no lost tile passes.
"""

import functools
import itertools

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury._mlir import ir
from mercury._mlir._mlir_libs import _mercury
from mercury.runtime import SimOptions, dtypes
from mercury.runtime.trial import trial

ULP = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
BOTH = [mc.programs.attention, mc.programs.attention_backward]


def each(strategies):
    """Every pair of a program and a strategy."""
    return pytest.mark.parametrize(
        ("program", "strategy"), list(itertools.product(BOTH, strategies))
    )


def check(schedule, seed=0, options=None):
    """Compile, run and compare; gives the plan and the trial."""
    plan = schedule.compile()
    result = trial(plan, seed, options)
    assert result.right, (schedule.recipe(), schedule.mesh, schedule.program, result.errors)
    return plan, result


def schedule_by(strategy, mesh, program):
    mesh = mc.Mesh.parse(mesh) if isinstance(mesh, str) else mesh
    return mc.strategies.get(strategy).schedule(mesh, program)


def inputs_of(program, seed=0):
    """Inputs of unit scale, as they are in their dtype."""
    drawn = reference.draw(program, seed)
    return {
        buffer.name: dtypes.decode(
            dtypes.encode(drawn[buffer.name], buffer.dtype), buffer.dtype
        )
        for buffer in program.inputs
    }


def same_for_every_delay(plan, seeds, **options):
    """Whatever comes when, all bits of all outputs are the same; gives the outputs."""
    shards = plan.scatter(**inputs_of(plan.program))
    expected = plan.run(shards)
    for seed in seeds:
        result = plan.run(shards, SimOptions(seed=seed, **options))
        for mine, first in zip(result, expected, strict=True):
            for name, array in first.items():
                np.testing.assert_array_equal(mine[name], array)
    return plan.gather(expected)


# --- Shapes -------------------------------------------------------------------------


@each(["ring", "ulysses", "hybrid"])
@pytest.mark.parametrize(("length", "ranks"), [(257, 8), (125, 3)])
def test_c01_a_length_that_ranks_do_not_divide(program, strategy, length, ranks):
    """A length that no rank count divides, forward and backward: no one sees padding."""
    made = program(h=8, group=2, sq=length, sk=length, d=8, mask="causal", dtype="f32")
    plan, _ = check(schedule_by(strategy, f"gpu={ranks}", made))
    shards = plan.scatter(**inputs_of(made))
    assert sum(shard["Q"].shape[1] for shard in shards) == length
    assert sum(shard["K"].shape[1] for shard in shards) == length


def test_c01_a_thousand_positions_on_three_ranks():
    """A length that no rank count divides, as it was met."""
    program = mc.programs.attention(h=1, sq=1000, sk=1000, d=16, mask="causal", dtype="f32")
    check(schedule_by("ring", "gpu=3", program))


@pytest.mark.parametrize("strategy", ["ring", "context-parallel", "ulysses"])
def test_c02_tokens_of_image_and_text_together(strategy):
    """Two odd parts in one sequence, not causal: 302 and 47 tokens on 2 ranks."""
    program = mc.programs.attention(h=3, sq=349, sk=349, d=8, dtype="f32")
    check(schedule_by(strategy, "gpu=2", program))


@pytest.mark.parametrize("strategy", ["ring", "ulysses", "usp"])
def test_c03_tokens_of_an_odd_image(strategy):
    """The square of an odd number of tokens in bf16, not causal, on 2 ranks."""
    program = mc.programs.attention(h=2, sq=17 * 17, sk=17 * 17, d=16, dtype="bf16")
    check(schedule_by(strategy, "gpu=2", program))


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("strategy", ["ring", "context-parallel", "hybrid"])
def test_c08_queries_and_keys_of_other_lengths(program, strategy):
    """Cross-attention: neither length is a multiple of the ranks, nor of the other."""
    made = program(h=4, sq=251, sk=194, d=8, dtype="f32")
    check(schedule_by(strategy, "gpu=4", made))


@pytest.mark.parametrize("strategy", ["ring", "context-parallel", "ulysses"])
def test_c08_padding_is_a_mask(strategy):
    """What is padding at the end is a document of its own, and adds nothing to the rest."""
    length, real = 61, 50
    mask = mc.Mask(documents=(0, real, length))
    sizes = {"h": 4, "sq": length, "sk": length, "d": 8, "dtype": "f32"}
    program = mc.programs.attention(mask=mask, **sizes)
    plan, _ = check(schedule_by(strategy, "gpu=4", program))
    inputs = inputs_of(program)
    first = plan.gather(plan.run(plan.scatter(**inputs)))["O"][:, :real]
    for name in ("K", "V"):
        inputs[name][:, real:] = 1e30
    other = plan.gather(plan.run(plan.scatter(**inputs)))["O"][:, :real]
    np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("strategy", ["ring", "shifted-reduction", "hybrid"])
@pytest.mark.parametrize("ranks", [2, 5])
def test_c09_neighbours_in_documents_of_odd_length(strategy, ranks):
    """A token meets the one before it across ranks, and never that of another document."""
    mask = mc.window(1).packed([0, 5, 14, 17])
    program = mc.programs.attention(h=3, sq=17, sk=17, d=8, mask=mask, dtype="f32")
    plan, _ = check(schedule_by(strategy, f"gpu={ranks}", program))
    inputs = inputs_of(program)
    made = plan.gather(plan.run(plan.scatter(**inputs)))["O"]
    # The first of a document sees itself alone.
    for first in (0, 5, 14):
        np.testing.assert_allclose(made[:, first], inputs["V"][:, first], rtol=1e-6)


@pytest.mark.parametrize("program", BOTH)
def test_c12_two_tokens(program):
    """Fewer tokens than anything is aligned to, on 4 x 2 ranks."""
    made = program(h=4, sq=2, sk=2, d=8, mask="causal", dtype="f32")
    schedule = mc.Schedule(made, mc.Mesh(tp=4, cp=2))
    check(schedule.parallelize("h", "tp").parallelize("sq", "cp").shift("sk", by="sq"))
    for strategy in ("ring", "hybrid"):
        check(schedule_by(strategy, "gpu=8", made))


# --- Heads --------------------------------------------------------------------------


@each(["hybrid", "usp", "ulysses"])
def test_c17_heads_that_ranks_do_not_divide(program, strategy):
    """28 query heads on 4 key heads over 8 ranks: a hybrid, or uneven heads."""
    made = program(h=28, group=7, sq=33, sk=33, d=8, mask="causal", dtype="f32")
    check(schedule_by(strategy, "gpu=8", made))


@each(["ulysses", "usp"])
def test_c19_a_group_of_heads_on_two_ranks(program, strategy):
    """28 query heads on 7 key heads over 2 ranks: both ranks need the middle key head."""
    made = program(h=28, group=4, sq=21, sk=21, d=8, dtype="f32")
    check(schedule_by(strategy, "gpu=2", made))
    check(mc.Schedule(made, mc.Mesh(gpu=2)).parallelize("h", "gpu"))


@pytest.mark.parametrize("program", BOTH)
def test_c20_uneven_heads(program):
    """30 heads over 4 ranks and an odd length: 8, 7, 8 and 7 heads."""
    made = program(h=30, sq=37, sk=37, d=4, mask="causal", dtype="f32")
    check(schedule_by("ulysses", "gpu=4", made))
    plan, _ = check(mc.Schedule(made, mc.Mesh(gpu=4)).parallelize("h", "gpu"))
    heads = [plan.layout("Q").shape(rank)[2] for rank in range(4)]
    assert sum(heads) == 30
    assert max(heads) - min(heads) <= 1


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_c22_decoding_over_long_keys(dtype):
    """One query over 30000 keys with grouped heads, heads and keys both over ranks."""
    program = mc.programs.decode_attention(h=16, group=4, sk=30_000, d=16, dtype=dtype)
    mesh = mc.Mesh(tp=4, dcp=2)
    schedule = mc.Schedule(program, mesh, {"K": {"sk": "dcp", "h": "tp"}})
    schedule.parallelize("h", "tp").parallelize("sk", "dcp")
    plan, _ = check(schedule.replicate("O", "dcp").replicate("LSE", "dcp"))
    assert plan.layout("K").shape(3) == (1, 15_000, 1, 16)
    check(schedule_by("tree", "gpu=8", program))


# --- Masks, layouts -----------------------------------------------------------------


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("strategy", ["ring", "context-parallel"])
def test_c25_balanced_causal_attention_comes_back_in_order(program, strategy):
    """Zigzag over 8 ranks in bf16: the layout and its inverse come from one place."""
    length, ranks = 131, 8
    layout = {"sq": "zigzag", "sk": "zigzag"}
    made = program(h=2, sq=length, sk=length, d=16, mask="causal", dtype="bf16", layout=layout)
    plan, _ = check(schedule_by(strategy, f"gpu={ranks}", made))
    inputs = inputs_of(made)
    output = made.outputs[0].name
    shards = plan.run(plan.scatter(**inputs))
    joined = dtypes.decode(np.concatenate([s[output] for s in shards], axis=1), "bf16")
    found = joined[:, plan.layout(output).inverse("sq")]
    want = reference.evaluate(made, inputs)[output]
    assert reference.relative_error(found, want) < 4e-3
    # In the order of the ranks it is another result.
    assert reference.relative_error(joined, want) > 0.1


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("strategy", ["ring", "context-parallel", "hybrid"])
def test_c26_a_window_is_not_dropped(program, strategy):
    """A sliding window over 4 ranks; without it the result is another one."""
    sizes = {"h": 4, "sq": 256, "sk": 256, "d": 8, "dtype": "f32"}
    windowed = program(mask=mc.window(15), **sizes)
    plan, _ = check(schedule_by(strategy, "gpu=4", windowed))
    inputs = inputs_of(windowed)
    output = windowed.outputs[0].name
    made = plan.gather(plan.run(plan.scatter(**inputs)))[output]
    wide = reference.evaluate(program(mask="causal", **sizes), inputs)[output]
    assert reference.relative_error(made, wide) > 0.1


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("direction", [1, -1])
def test_c27_a_window_on_a_ring(program, direction):
    """A window that reaches one shard back, on a ring of 8 in both directions."""
    made = program(h=1, sq=264, sk=264, d=8, mask=mc.window(33), dtype="f32")
    schedule = mc.Schedule(made, mc.Mesh(gpu=8))
    plan, _ = check(schedule.parallelize("sq", "gpu").shift("sk", by="sq", direction=direction))
    if program is mc.programs.attention:
        # Far shards are not visited, where the near ones come first.
        assert plan.report.messages == {"gpu": 2 * 8 * (1 if direction == -1 else 7)}


def test_c30_a_table_of_booleans_is_refused():
    """A mask that cannot be said is refused with what can be said."""
    table = np.tril(np.ones((1, 1, 33, 33), bool))
    with pytest.raises(mc.ProgramError, match="expected a mask, 'full' or 'causal'"):
        mc.programs.attention(h=4, sq=33, sk=33, d=8, mask=table)


@pytest.mark.parametrize("mask", ["sliding", 5, [[True]]])
def test_c30_what_is_no_mask_is_refused(mask):
    """A mask that cannot be said is refused with what can be said."""
    with pytest.raises(mc.ProgramError, match="expected a mask, 'full' or 'causal'"):
        mc.programs.attention(h=4, sq=33, sk=33, d=8, mask=mask)


@pytest.mark.parametrize("strategy", ["usp", "hybrid", "double-ring", "split-reduction"])
def test_c30_hybrids_keep_a_mask(strategy):
    """A mask on two levels is part of the program, not of the method."""
    mask = mc.causal(3).packed([0, 12, 33])
    program = mc.programs.attention(h=4, sq=33, sk=33, d=8, mask=mask, dtype="f32")
    check(schedule_by(strategy, "u=2,r=2", program))


@pytest.mark.parametrize("steps", ["shift(sk, by=sq)", "shard(K, sk, gpu); shard(V, sk, gpu)"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_c31_replicated_beside_sharded(steps, ranks):
    """Keys of a text on every rank beside sharded ones of an image: they count once."""

    @mc.program
    def joint(p, h=2, image=41, text=7, d=8):
        b, heads, sq, sk = p.axes(b=1, h=h, sq=image, sk=image)
        q = p.input("Q", (b, sq, heads, d), "f32")
        k, v = (p.input(name, (b, sk, heads, d), "f32") for name in ("K", "V"))
        tk, tv = (p.input(name, (b, text, heads, d), "f32") for name in ("TK", "TV"))
        o = p.output("O", (b, sq, heads, d), "f32")
        lse = p.output("LSE", (b, heads, sq), "f32")
        with p.loops(b, heads, sq, sk):
            pair = p.attention(q[...], k[...], v[...], scale=d**-0.5)
            whole = p.attention(q[...], tk[...], tv[...], scale=d**-0.5)
            o[...], lse[...] = p.merged(pair, over=(sk,), merge="softmax", once=whole)

    program = joint()
    schedule = mc.Schedule(program, mc.Mesh(gpu=ranks)).parallelize("sq", "gpu").apply(steps)
    plan, _ = check(schedule)
    assert plan.layout("TK").shape(0) == (1, 7, 2, 8)
    assert plan.layout("K").shape(0)[1] < 41
    # Independent of the program's own reference: one sequence of both.
    inputs = inputs_of(program)
    keys, values = (np.concatenate([inputs[n], inputs[f"T{n}"]], axis=1) for n in ("K", "V"))
    want, _ = reference.attention(inputs["Q"], keys, values)
    made = plan.gather(plan.run(plan.scatter(**inputs)))["O"]
    assert reference.relative_error(made, want) < 2e-6


@pytest.mark.parametrize("strategy", ["ring", "ulysses", "hybrid"])
def test_c31_keys_on_every_rank_outside(strategy):
    """Replicated keys and sharded values outside, by type and not by guess."""
    program = mc.programs.attention(h=4, sq=31, sk=29, d=8, mask="causal", dtype="f32")
    recipe = "; ".join(mc.strategies.get(strategy).steps(mc.Mesh(gpu=4), program))
    # The split of a level renames it in the boundary, too.
    boundary = {"Q": {"sq": "gpu"}, "K": {}, "V": {"sk": "gpu"}}
    check(mc.Schedule(program, mc.Mesh(gpu=4), boundary).apply(recipe))


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
