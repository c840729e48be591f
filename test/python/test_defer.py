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
    assert all(e.overwrites == (True, True) for e in events)
    assert [box.dtype for box in events[0].outputs] == [partial or "f32", "f32"]
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
