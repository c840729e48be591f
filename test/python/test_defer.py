"""Results that a schedule merges once, at the end."""

import mercury as mc
import pytest
from mercury.runtime.trial import trial
from mercury.tuner.canonical import fingerprint
from mercury.tuner.placed import read_placed


def ring(**options):
    program = mc.programs.attention(h=2, sq=10, sk=13, d=4, dtype="bf16", **options)
    return mc.strategies.get("ring").schedule(mc.Mesh(gpu=3), program)


@pytest.mark.parametrize("partial", [None, "bf16"])
def test_each_step_writes_and_one_kernel_merges(partial):
    plan = ring().defer("O", partial=partial).compile()
    events = [e for e in plan.events(1) if e.kind in {"launch", "fill", "copy", "accumulate"}]
    assert [e.kernel for e in events] == [*["attention_fwd"] * 3, "softmax_merge_all"]
    assert all(e.overwrites == (True, True) for e in events[:3])
    assert [box.dtype for box in events[0].outputs] == [partial or "f32", "f32"]
    # What is of the output's type already is merged into the one that is there.
    assert events[3].overwrites == ((False, False) if partial else (True, True))
    assert events[0].outputs[0].memory == ("O" if partial else "local arena")
    assert [box.memory for box in events[-1].outputs] == ["O", "LSE"]
    assert trial(plan).right


def test_the_recipe_says_so_and_reads_back():
    schedule = ring().defer("O", partial="bf16")
    assert schedule.recipe().endswith("; defer(O, partial=bf16)")
    assert ring().apply("defer(O, partial=bf16)").ir() == schedule.ir()
    forms = {
        fingerprint(read_placed(each))
        for each in (ring(), ring().defer("O"), ring().defer("LSE"), schedule)
    }
    assert len(forms) == 3  # a pair is deferred together


def test_what_travels_is_not_deferred_but_what_is_delivered_is():
    program = mc.programs.matmul(m=7, n=5, depth=6, dtype="bf16")
    shifted = (
        mc.Schedule(program, mc.Mesh(gpu=3)).parallelize("k", "gpu").shard("C", "i", "gpu")
    )
    travels = shifted.copy().shift("i", by="k", offset=1).defer("C")
    with pytest.raises(mc.CompileError, match="travels from rank to rank"):
        travels.compile()
    plan = shifted.shift("i", by="k", offset=1, results="deliver").defer("C").compile()
    kinds = [e.kernel or e.kind for e in plan.events(0) if e.kind in {"launch", "accumulate"}]
    assert kinds == [*["matmul"] * 3, "sum_all"]
    assert trial(plan).right


def test_an_input_is_not_deferred():
    with pytest.raises(mc.ScheduleError, match="'Q' is an input"):
        ring().defer("Q")


def zigzag(program, ranks, shift="", **options):
    layout = {"sq": "zigzag", "sk": "zigzag"}
    program = program(b=1, h=4, group=2, d=4, mask="causal", layout=layout, **options)
    schedule = mc.Schedule(program, mc.Mesh(gpu=ranks)).parallelize("sq", "gpu")
    return schedule.apply(f"shift(sk, by=sq, reads=pull{shift})")


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("size", [40, 37])
def test_a_causal_step_of_zigzag_parts_is_one_launch(ranks, size):
    plan = zigzag(mc.programs.attention, ranks, sq=size, sk=size).defer("O", partial="bf16")
    plan = plan.compile()
    for rank in range(ranks):
        events = [e for e in plan.events(rank) if e.kind == "launch"]
        kernels = [e.kernel for e in events]
        assert kernels[:ranks] == ["attention_fwd"] * ranks
        # The first rank's early rows are whole at once, and all of the last are of all.
        assert kernels[ranks:] == ["softmax_merge_all"] * (2 if 0 < rank < ranks - 1 else 1)
        assert not [e for e in plan.events(rank) if e.kind in {"fill", "copy"}]
    assert trial(plan).right


@pytest.mark.parametrize("shift", ["", ", offset=1", ", direction=-1, offset=2"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_partial_gradients_of_zigzag_parts_wait_where_the_result_is(shift, dtype):
    results = ", results=deliver" if dtype == "f32" else ""
    program = mc.programs.attention_backward
    schedule = zigzag(program, 4, shift + results, sq=37, sk=37, dtype=dtype).defer("dQ")
    if results:
        schedule.defer("dK").defer("dV")
    plan = schedule.compile()
    for rank in range(4):
        kernels = [e.kernel for e in plan.events(rank) if e.kind == "launch"]
        assert kernels.count("attention_bwd") == 4
    assert trial(plan).right


@pytest.mark.parametrize(
    ("sq", "sk", "mask"), [(12, 17, "causal"), (24, 24, mc.Mask(left=5, right=0))]
)
def test_pieces_that_a_mask_sees_in_part_stay_apart(sq, sk, mask):
    layout = {"sq": "zigzag", "sk": "zigzag"}
    program = mc.programs.attention(h=2, sq=sq, sk=sk, d=4, mask=mask, layout=layout)
    schedule = mc.Schedule(program, mc.Mesh(gpu=3)).parallelize("sq", "gpu")
    schedule.shift("sk", by="sq", reads="pull")
    assert trial(schedule.copy().defer("O").compile()).right
    with pytest.raises(mc.CompileError, match="several launches merge into one of them"):
        schedule.defer("O", partial="bf16").compile()
