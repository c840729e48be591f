"""What the plans that are worth it by hand launch on two GPUs: no more than an expert would."""

from collections import Counter

import mercury as mc
import pytest
from mercury.bench.ours import plans_of
from mercury.bench.workload import parse_workload


def work_of(workload: str, name: str, rank: int) -> list[str]:
    """Give the kernels, fills and copies of one plan, in order."""
    schedules = {p.name: p.schedule for p in plans_of(parse_workload(workload), mc.Mesh(gpu=2))}
    # As a machine with PyTorch picks it.
    plan = schedules[name].patch("attention_*", "cudnn").compile(target="cuda")
    kinds = {"launch", "fill", "copy", "accumulate"}
    return [e.kernel or e.kind for e in plan.events(rank) if e.kind in kinds]


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("workload", "name"),
    [
        ("attention-1x32x4096-full", "pull, merged once"),
        ("attention-1x32x4096-causal", "pull, merged once, zigzag"),
        ("attention-16x32x4096-causal", "pull, merged once, zigzag"),
        ("attention-1x32x4096-causal-gqa8", "pull, merged once, zigzag"),
    ],
)
def test_attention_is_two_calls_and_one_merge(workload, name, rank):
    assert work_of(workload, name, rank) == [*["attention_fwd"] * 2, "softmax_merge_all"]


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_gradients_are_two_calls_and_a_sum_each(mask, rank):
    name = "pull, own last, merged once" + (", zigzag" if mask == "causal" else "")
    work = work_of(f"attention-1x32x4096-{mask}-bwd", name, rank)
    # The last keys of the first rank are seen by none of the second's queries.
    fills = 2 if mask == "causal" and rank == 1 else 0
    assert Counter(work) == Counter(attention_bwd=2, sum_all=3, fill=fills)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_a_batch_in_slices_has_two_calls_a_slice_and_one_merge(mask, rank):
    name = "pull in 4 slices, merged once" + (", zigzag" if mask == "causal" else "")
    work = work_of(f"attention-16x32x4096-{mask}", name, rank)
    assert work == [*["attention_fwd"] * 8, "softmax_merge_all"]


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_gradients_of_a_batch_in_slices_are_summed_a_slice(mask):
    name = "pull, fetch in 4 slices, merged once" + (", zigzag" if mask == "causal" else "")
    work = Counter(work_of(f"attention-16x32x4096-{mask}-bwd", name, 0))
    # dK and dV of a slice are whole with it; dQ waits for all.
    assert (work["attention_bwd"], work["sum_all"]) == (8, 2 * 4 + 1)
    assert not work["copy"] + work["accumulate"]


@pytest.mark.parametrize(
    ("workload", "name", "work"),
    [
        ("attention-16x32x4096-causal-bwd", "exchanged in 8 slices", ["attention_bwd"] * 8),
        ("attention-16x32x4096-full-bwd", "exchanged in 4 slices", ["attention_bwd"] * 4),
        (
            "attention-1x32x4096-causal-bwd",
            "heads exchanged in 8 slices",
            ["attention_bwd"] * 8,
        ),
        ("attention-16x32x4096-full", "keys gathered in growing slices", ["attention_fwd"] * 4),
        # Two pieces of rows see different keys.
        ("attention-16x32x4096-causal", "keys gathered in 8 slices", ["attention_fwd"] * 16),
    ],
)
def test_what_is_exchanged_in_slices_needs_no_merge_and_no_copy(workload, name, work):
    name += ", zigzag" if "causal" in workload else ""
    for rank in range(2):
        assert work_of(workload, name, rank) == work
