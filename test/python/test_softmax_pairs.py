"""Softmax pairs whose results lie along different axes, against float64."""

from __future__ import annotations

import itertools

import mercury as mc
import pytest
from mercury.runtime.trial import trial

AXES = ["b", "h", "sq"]
PLACES = [*(f"shard({{}}, {axis}, gpu)" for axis in AXES), "replicate({}, gpu)"]


def attention(**changes: object) -> mc.Program:
    """Attention of sizes that three ranks do not divide."""
    sizes = {
        "b": 4,
        "h": 5,
        "sq": 7,
        "sk": 8,
        "d": 3,
        "dv": 2,
        "dtype": "f32",
        "mask": "causal",
    }
    return mc.programs.attention(**{**sizes, **changes})


@pytest.mark.parametrize(("o", "lse"), list(itertools.permutations(PLACES, 2)))
@pytest.mark.parametrize(
    ("defer", "changes"),
    [
        ("", {}),
        ("", {"sink": True, "layout": {"sq": "zigzag"}}),
        ("; tile(sk_inner, 2); defer(O)", {"sink": True}),
    ],
    ids=["", "sink, zigzag", "sink, defer"],
)
def test_ranks_merge_pairs_that_lie_along_different_axes(o, lse, defer, changes):
    recipe = f"parallelize(sk, gpu); {o.format('O')}; {lse.format('LSE')}{defer}"
    if defer:
        recipe = recipe.replace("parallelize(sk", "tile(sk, 3); parallelize(sk_outer")
    found = trial(mc.Schedule(attention(**changes), mc.Mesh(gpu=3)).apply(recipe).compile())
    assert found.right, found.errors


# Every tile of O is as large as the one of LSE at its side, of other rows.
@pytest.mark.parametrize(("o", "lse"), list(itertools.permutations(PLACES[:3], 2)))
def test_axes_of_one_extent(o, lse):
    recipe = f"parallelize(sk, gpu); {o.format('O')}; {lse.format('LSE')}"
    schedule = mc.Schedule(attention(b=3, h=3, sq=3, mask=None), mc.Mesh(gpu=3))
    found = trial(schedule.apply(recipe).compile())
    assert found.right, found.errors


@pytest.mark.parametrize(
    "recipe",
    [
        "parallelize(sk, [node, gpu]); shard(O, h, node); shard(LSE, h, [node, gpu])",
        "parallelize(sk, [node, gpu]); shard(O, h, [node, gpu]); shard(LSE, sq, [node, gpu])",
        "parallelize(sk, gpu); parallelize(sq, node); shard(O, h, gpu); shard(LSE, b, gpu)",
        "parallelize(sk, gpu); parallelize(h, node); shard(O, sq, gpu); shard(LSE, sq, node)",
        "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, h, gpu); shift(sq, by=sk)",
    ],
)
def test_two_levels(recipe):
    found = trial(mc.Schedule(attention(), mc.Mesh(node=2, gpu=3)).apply(recipe).compile())
    assert found.right, found.errors


def test_the_output_goes_to_its_owners_alone():
    mesh, recipe = mc.Mesh(gpu=3), "parallelize(sk, gpu); shard(O, h, gpu); shard(LSE, sq, gpu)"
    apart = trial(mc.Schedule(attention(), mesh).apply(recipe).compile()).report
    recipe = recipe.replace("LSE, sq", "LSE, h")
    beside = trial(mc.Schedule(attention(), mesh).apply(recipe).compile()).report
    # The log-sum-exps move once more, at most all of them.
    assert apart.bytes_sent["gpu"] <= beside.bytes_sent["gpu"] + 4 * 4 * 5 * 7
