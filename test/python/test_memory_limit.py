"""A memory limit that falls step by step: leaner plans, and in the end a clear no."""

import re

import mercury as mc
import numpy as np
import pytest
from click.testing import CliRunner
from mercury import reference
from mercury.cli.tune import tune as command
from mercury.tuner import SpaceOptions, Style, TuneError, TuneResult

TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}


def tune(memory):
    return mc.tune(
        mc.programs.attention(h=1, sq=125, sk=125, d=128, dtype="f32"),
        mc.Mesh(gpu=4),
        topology="h100-4x1",
        boundary=TOKENS,
        options=SpaceOptions(styles=(Style(),), max_levels=1, defer=False),
        memory=memory,
        top=1,
        cache=False,
    )


def outcome(memory):
    try:
        return tune(memory)
    except TuneError as error:
        return error


def used(plan, rank):
    """Bytes that a rank really has: its shards, and its arena."""
    buffers = plan.program.buffers
    shards = sum(
        4 * int(np.prod(plan.layout(buffer.name).shape(rank), dtype=np.int64))
        for buffer in buffers
    )
    return shards + plan.report.peak_arena_bytes


def test_each_step_is_leaner_and_never_above_its_limit():
    draw = np.random.default_rng(0).standard_normal
    q, k, v = (draw((1, 125, 1, 128), dtype=np.float32) for _ in range(3))
    wanted, _ = reference.attention(*(np.asarray(each, np.float64) for each in (q, k, v)))
    recipes, limit = [], 1 << 30
    while isinstance(best := outcome(limit), TuneResult):
        plan = best.compile()
        o = plan.gather(plan.run(plan.scatter(Q=q, K=k, V=v)))["O"]
        assert reference.relative_error(o, wanted) < 1e-5
        assert max(used(plan, rank) for rank in range(4)) <= best.chosen.peak_bytes <= limit
        recipes.append(best.chosen.recipe)
        limit = best.chosen.peak_bytes - 1
    assert "no plan fits into" in best.message
    assert "the smallest needs" in best.message
    # The whole of K and V first, a part of them at a time last.
    assert len(recipes) > 1
    assert len(set(recipes)) == len(recipes)
    assert "shift(sk, by=sq" not in recipes[0]
    assert "shift(sk, by=sq" in recipes[-1]


@pytest.mark.parametrize("limit", [1 << 10, 1 << 18])
def test_what_the_smallest_needs_is_enough_whatever_was_too_little(limit):
    """Less than the shards outside, or than the plan as well: the same is told."""
    told = outcome(limit)
    needed = int(
        re.search(r"the smallest needs ([\d,]+) bytes", told.message)[1].replace(",", "")
    )
    assert isinstance(outcome(needed - 1), TuneError)
    assert outcome(needed).chosen.peak_bytes == needed


def test_the_shell_ends_with_what_is_needed_and_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCURY_CACHE_DIR", str(tmp_path))
    arguments = [
        *("matmul", "--topology", "h200-2x1", "--set", "m=64,n=64,depth=64"),
        *("--max-levels", "1", "--memory", "1KiB"),
    ]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 1
    with pytest.raises(SystemExit):
        command(arguments)
    assert "no plan fits into 1.0 KiB; the smallest needs" in done.output
