"""Rings in slices that read the next slice meanwhile: right, on time, and in less memory.

Extents are odd, and slices uneven or empty. Every plan is proved by the checker before it runs.
"""

import mercury as mc
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial

ZIGZAG = {"sq": "zigzag", "sk": "zigzag"}
PULL = "parallelize(sq, gpu); shift(sk, by=sq, reads=pull{})"
ONCE = "; defer(dQ); defer(dK); defer(dV)"


def program(backward=False, **options):
    sizes = {"b": 3, "h": 4, "sq": 13, "sk": 11, "d": 3, "dtype": "f32", "mask": "causal"}
    function = mc.programs.attention_backward if backward else mc.programs.attention
    return function(**(sizes | options))


def check(made, mesh, recipe):
    plan = mc.Schedule(made, mc.Mesh.parse(mesh)).apply(recipe).compile()
    result = trial(plan, 1, SimOptions(seed=5, max_delay_us=100))
    assert result.right, (made, mesh, recipe, result.errors)
    return plan


FORWARD = {
    "batches": ({}, "tile(b, 3); " + PULL.format("")),
    "batches that slices do not divide": ({"b": 5}, "tile(b, 2); " + PULL.format("")),
    "batches in growing slices": ({"b": 7}, "tile(b, [1, 2, 4]); " + PULL.format("")),
    "an empty slice": ({"b": 4}, "tile(b, [1, 0, 3]); " + PULL.format("")),
    "heads in growing slices": ({}, "tile(h, [1, 3]); " + PULL.format("") + "; defer(O)"),
    "fewer batches than slices": ({"b": 2}, "tile(b, 3); " + PULL.format("")),
    "no mask": ({"mask": "full"}, "tile(b, 2); " + PULL.format("")),
    "a window that ends early": (
        {"mask": mc.Mask(left=2, right=0)},
        "tile(b, 2); " + PULL.format(""),
    ),
    "grouped heads": ({"group": 2}, "tile(b, 2); " + PULL.format("")),
    "heads": ({}, "tile(h, 2); " + PULL.format("")),
    "heads within groups": ({"group": 4}, "tile(h, 2); " + PULL.format("")),
    "queries": (
        {},
        "tile(sq, 2); parallelize(sq_inner, gpu); shift(sk, by=sq_inner, reads=pull)",
    ),
    "own part last": ({}, "tile(b, 3); " + PULL.format(", offset=1")),
    "backwards": ({}, "tile(b, 2); " + PULL.format(", direction=-1")),
    "backwards, own part last": ({}, "tile(b, 2); " + PULL.format(", direction=-1, offset=-1")),
    "merged once": ({}, "tile(b, 2); " + PULL.format("") + "; defer(O)"),
    "both ends": ({"layout": ZIGZAG}, "tile(b, 3); " + PULL.format("")),
    "both ends, merged once": (
        {"layout": ZIGZAG, "sk": 13, "dtype": "bf16"},
        "tile(b, 2); " + PULL.format("") + "; defer(O, partial=bf16)",
    ),
    "a sink": ({"sink": True}, "tile(b, 2); " + PULL.format("")),
    "two loops of slices": ({}, "tile(b, 2); tile(h, 2); " + PULL.format("")),
}
BACKWARD = {
    "travel": PULL.format(""),
    "travel, own part last": PULL.format(", offset=1"),
    "deliver": PULL.format(", results=deliver"),
    "deliver, own part last": PULL.format(", offset=1, results=deliver"),
    "deliver, merged once": PULL.format(", offset=1, results=deliver") + ONCE,
    "fetch": PULL.format(", offset=1, results=fetch"),
    "fetch, merged once": PULL.format(", offset=1, results=fetch") + ONCE,
    "rotate, merged once": (
        "parallelize(sq, gpu); shift(sk, by=sq, offset=1, results=deliver)" + ONCE
    ),
}


@pytest.mark.parametrize("mesh", ["gpu=2", "gpu=3"])
@pytest.mark.parametrize("case", FORWARD)
def test_attention_in_slices(case, mesh):
    options, recipe = FORWARD[case]
    check(program(**options), mesh, recipe)


@pytest.mark.parametrize("slices", ["", "tile(b, 2); ", "tile(b, [1, 2]); "])
@pytest.mark.parametrize("mesh", ["gpu=2", "gpu=3"])
@pytest.mark.parametrize("case", BACKWARD)
def test_gradients_in_slices(case, mesh, slices):
    check(program(backward=True, group=2), mesh, slices + BACKWARD[case])


@pytest.mark.parametrize("case", ["deliver, merged once", "fetch, merged once"])
def test_gradients_of_both_ends_in_slices(case):
    made = program(backward=True, sk=13, layout=ZIGZAG)
    plan = check(made, "gpu=2", "tile(b, 3); " + BACKWARD[case])
    kernels = [e.kernel for e in plan.events(0) if e.kind == "launch"]
    assert kernels.count("attention_bwd") == 2 * 3  # one a step


@pytest.mark.parametrize("mesh", ["node=2,gpu=2"])
def test_slices_on_two_levels(mesh):
    heads = "tile(b, 2); parallelize(h, node); " + PULL.format("")
    check(program(), mesh, heads)
    rings = (
        "tile(b, 2); tile(sk, node); parallelize(sq, [node, gpu]); "
        "shift(sk_outer, by=sq, over=node, reads={}); "
        "shift(sk_inner, by=sq, over=gpu, reads=pull)"
    )
    for outer in ("rotate", "pull"):
        check(program(), mesh, rings.format(outer))


def test_a_narrow_link_rounds_what_is_read_alone():
    recipe = "tile(b, 2); " + PULL.format(", link=bf16")
    plan = mc.Schedule(program(), mc.Mesh(gpu=3)).apply(recipe).compile()
    assert all(0 < error < 0.01 for error in trial(plan).errors.values())


def test_the_next_slice_comes_under_the_work_on_one():
    plan = check(program(mask="full"), "gpu=3", "tile(b, 3); " + PULL.format(""))
    steps = [e.kind for e in plan.events(1) if e.kind in {"pull", "launch"} and e.happens]
    keys, work = ["pull", "pull"], ["launch"]
    # The own part of the next slice is worked on while its first part comes.
    one_slice = [*keys, *work, *keys, *work, *work]
    assert steps == [*keys, *work, *one_slice * 2, *keys, *work, *work]


def test_slices_move_as_much_in_less_memory():
    def plan(recipe):
        return mc.Schedule(program(b=8, mask="full"), mc.Mesh(gpu=2)).apply(recipe).compile()

    whole, sliced = plan(PULL.format("")), plan("tile(b, 4); " + PULL.format(""))
    moved = [trial(each).report.bytes_sent["gpu"] for each in (whole, sliced)]
    # Both ranks read the other's keys and values: all there are.
    assert moved == [8 * 11 * 4 * 3 * 4 * 2] * 2
    # Two slots of a quarter of what two slots of all took, of 6 of the 11 keys at most.
    saved = 2 * 2 * 6 * 4 * 3 * 4 * (8 - 2)
    assert whole.arena_bytes - sliced.arena_bytes == pytest.approx(saved, abs=1024)
