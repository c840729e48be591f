"""Schedules of the space as plans: lowered, run, and what memory they take."""

import itertools

import mercury as mc
import numpy as np
import pytest
from mercury.runtime.trial import trial
from mercury.tuner import Space, SpaceOptions, Style
from mercury.tuner.lower import lower
from mercury.tuner.memory import boundary_bytes
from mercury.tuner.space import PULL_CHUNKS
from mercury.tuner.traffic import transfers
from small_spaces import ROTATE, attention, matmul


def test_schedules_that_are_one_lower_to_the_same_memory_and_traffic():
    program = matmul(m=16, n=16, depth=16)
    options = SpaceOptions(styles=(Style(),), max_levels=3)
    known, checked = {}, 0
    for each in itertools.islice(
        Space(program, mc.Mesh(gpu=8), options=options).with_repeats(), 4500
    ):
        first = known.setdefault(each.fingerprint, each)
        if first is each or checked == 40:
            continue
        checked += 1
        plans = []
        for schedule in (first, each):
            moved = sum(transfer.bytes for transfer in transfers(schedule))
            plans.append((lower(schedule).peak_bytes, round(moved)))
        assert plans[0] == plans[1], (first.recipe, each.recipe)
    assert checked == 40


@mc.program
def two_products(p, m=8, n=8, depth=8):
    i, j, k = p.axes(i=m, j=n, k=depth)
    a, b = p.input("A", (i, k), "f32"), p.input("B", (k, j), "f32")
    e = p.input("E", (k, j), "f32")
    c, d = p.output("C", (i, j), "f32"), p.output("D", (i, j), "f32")
    for right, result in ((b, c), (e, d)):
        with p.loops(i, j):
            result[i, j] = p.reduce(
                k, merge="sum", body=lambda right=right: p.matmul(a[i, k], right[k, j])
            )


def runs_right(candidates, count, seed):
    """Run some candidates; compare with float64."""
    for number in np.random.default_rng(seed).permutation(len(candidates))[:count]:
        result = trial(candidates[number].schedule.compile(), seed)
        assert result.right, (candidates[number].recipe, result.errors)


@pytest.mark.parametrize(
    ("program", "options"),
    [
        (matmul(m=32, n=32, depth=32), SpaceOptions()),
        (matmul(m=32, n=32, depth=32), SpaceOptions(max_levels=1, blocks=(2, 4))),
        (attention(sq=32, sk=32), SpaceOptions(max_levels=1, blocks=(2, 4))),
        (attention(sq=32, sk=32), SpaceOptions(styles=(Style(), PULL_CHUNKS), defer=False)),
    ],
    ids=["product", "product in tiles", "attention in tiles", "attention"],
)
def test_no_schedule_of_the_space_is_refused(program, options):
    """Each is lowered, and proved by that; `tools/bench-compiler space` takes more ranks."""
    for each in Space(program, mc.Mesh(gpu=4), links={"gpu": "gpu"}, options=options):
        try:
            lower(each)
        except mc.CompileError as error:
            pytest.fail(f"{each.recipe}: {error}")


def test_schedules_of_the_space_compute_the_right_result():
    program = attention(h=3, sq=13, sk=11, mask="causal")
    runs_right(list(Space(program, mc.Mesh(gpu=4), options=ROTATE)), 5, seed=1)
    boundary = {"A": {"i": "gpu"}, "C": {"j": "gpu"}}
    runs_right(list(Space(matmul(m=13), mc.Mesh(gpu=3), boundary, options=ROTATE)), 4, seed=2)


def test_a_result_that_travels_may_be_shared_out_on_another_level():
    schedule = mc.Schedule(matmul(), mc.Mesh(x=2, y=2)).apply(
        "parallelize(k, [x, y]); shard(C, j, x); shift(i, by=k, over=y, offset=1)"
    )
    assert trial(schedule.compile()).right


def test_nests_that_share_axes_are_cut_alike():
    candidates = list(Space(two_products(), mc.Mesh(gpu=2), options=ROTATE))
    assert len(candidates) > 10
    for each in candidates:
        first, second = ([loop.parts for loop in nest] for nest in each.placed.nests)
        assert first == second
    runs_right(candidates, 3, seed=3)


# -- memory -------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        attention(sq=13, sk=17),
        attention(h=6, group=3, layout={"sq": "zigzag", "sk": "striped(3)"}),
        matmul(m=5, n=7),
    ],
    ids=["uneven", "grouped", "matmul"],
)
def test_memory_is_that_of_the_plan(program):
    candidates = list(Space(program, mc.Mesh(gpu=3), options=ROTATE))[::7]
    checked = 0
    for each in candidates:
        lowered = lower(each)
        plan = each.schedule.compile()
        shards = [
            sum(
                int(np.prod(plan.layout(buffer.name).shape(rank))) * 4
                for buffer in program.buffers
            )
            for rank in range(3)
        ]
        assert lowered.boundary_bytes == boundary_bytes(each) == max(shards)
        assert lowered.arena_bytes == plan.arena_bytes
        checked += 1
        if checked == 3:
            break
    assert checked == 3
