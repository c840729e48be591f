"""Exchanges in slices in the tuner's space: legal, each once, and chosen when fastest."""

import json
from pathlib import Path

import mercury as mc
import pytest
from mercury import bench
from mercury.runtime.trial import trial
from mercury.topology import load
from mercury.tuner import LowerBound, Simulated, Space, SpaceOptions, Style
from mercury.tuner.lower import lower
from mercury.tuner.needs import missing
from mercury.tuner.sentence import is_plain, sentence
from mercury.tuner.traffic import transfers

RESULTS = Path(bench.__file__).parent / "results"
ZIGZAG = {"sq": "zigzag", "sk": "zigzag"}
FEW = {"max_levels": 1, "styles": (Style(),), "defer": False}


def attention(backward=False, **more):
    made = mc.programs.attention_backward if backward else mc.programs.attention
    return made(**({"b": 8, "h": 8, "sq": 13, "sk": 11, "d": 4, "dtype": "f32"} | more))


def tokens(program, *levels):
    """The boundary of transformers: rows over all ranks."""
    over = {"K": "sk", "V": "sk", "dK": "sk", "dV": "sk"}
    return {
        buffer.name: {over.get(buffer.name, "sq"): list(levels)} for buffer in program.buffers
    }


def exchanged(program, mesh, boundary, **options):
    space = Space(program, mesh, boundary, options=SpaceOptions(**(FEW | options)))
    found = list(space)
    assert len({each.fingerprint for each in found}) == len(found) == space.made
    return [each for each in found if "overlap(" in each.recipe]


CASES = {
    "rows of two": (attention(), mc.Mesh(gpu=2)),
    "causal, dealt": (attention(mask="causal", layout=ZIGZAG), mc.Mesh(gpu=2)),
    "gradients": (attention(backward=True), mc.Mesh(gpu=2)),
    "gradients, causal, dealt": (
        attention(backward=True, mask="causal", layout=ZIGZAG, sk=13),
        mc.Mesh(gpu=2),
    ),
    "grouped heads": (attention(group=2, mask="causal"), mc.Mesh(gpu=2)),
    "three": (attention(b=12, h=6), mc.Mesh(gpu=3)),
    "two levels": (attention(h=1, mask="causal"), mc.Mesh(node=2, gpu=2)),
    "two by three": (attention(b=12, h=1), mc.Mesh(node=2, gpu=3)),
    "empty shards": (attention(sq=1, sk=2), mc.Mesh(gpu=2)),
}


@pytest.mark.parametrize("case", CASES)
def test_every_exchange_lowers_and_its_costs_are_those_of_a_run(case):
    program, mesh = CASES[case]
    machine = load(f"h200-{mesh.size}x1")
    found = exchanged(program, mesh, tokens(program, *mesh.names), slices=(2, 4))
    assert found
    ran = found[:: len(found) // 4 or 1]
    for each in found:
        lowered = lower(each, machine)
        simulated = Simulated()(lowered, machine)
        assert 0 < LowerBound()(lowered, machine).latency <= simulated.latency * (1 + 1e-9)
        assert not is_plain(each.placed)
        if each in ran:
            plan = each.schedule.compile()
            run = trial(plan)
            assert run.right, (each.recipe, run.errors)
            assert mc.simulate(plan, machine).bytes_by_level == run.report.bytes_sent


def test_even_slices_move_what_a_rank_lacks():
    program = attention(sq=12, sk=12)
    for each in exchanged(program, mc.Mesh(gpu=2), tokens(program, "gpu"))[::4]:
        moved = sum(transfer.bytes for transfer in transfers(each))
        assert {transfer.transport for transfer in transfers(each)} == {"pull"}, each.recipe
        sent = trial(each.schedule.compile()).report.bytes_sent
        assert 2 * moved == sent["gpu"], each.recipe


def test_slices_are_even_or_grow_or_have_half_of_one_at_either_end():
    program = attention(b=16, h=2)
    recipes = [
        each.recipe for each in exchanged(program, mc.Mesh(gpu=2), tokens(program, "gpu"))
    ]
    inner = "parallelize(b_inner, gpu); overlap(b_outer)"
    # Of whole shares of both ranks.
    sizes = [2, [4, 12], [4, 8, 4], 4, [2, 2, 4, 8], [2, 4, 4, 4, 2], 8]
    own = [recipe for recipe in recipes if recipe.endswith(inner)]
    assert own == [f"tile(b, {each}); {inner}" for each in sizes]
    assert "tile(b, [1, 2, 4, 9]); parallelize(sq, gpu); overlap(b_outer)" in recipes
    assert "tile(h, 2); parallelize(b, gpu); overlap(h_outer)" in recipes
    # Each rank works on some of every slice: two heads are one slice for two ranks.
    assert not any("h_inner" in recipe for recipe in recipes)


def test_exchanges_are_left_out_where_nothing_is_exchanged():
    program = attention()
    assert not exchanged(program, mc.Mesh(gpu=2), None)
    assert not exchanged(program, mc.Mesh(gpu=2), tokens(program, "gpu"), slices=())
    assert not exchanged(program, mc.Mesh(gpu=1), tokens(program, "gpu"))
    by_batch = {buffer.name: {"b": "gpu"} for buffer in program.buffers}
    kept = exchanged(program, mc.Mesh(gpu=2), by_batch)
    assert kept
    assert not any("(b" in each.recipe for each in kept)
    wide = attention(b=18, h=1, sq=9, sk=9)
    assert not exchanged(wide, mc.Mesh(gpu=9), tokens(wide, "gpu"))
    product = mc.programs.matmul(m=8, n=8, depth=8)
    assert not exchanged(product, mc.Mesh(gpu=2), {"A": {"i": "gpu"}, "C": {"i": "gpu"}})


def test_gradients_that_ranks_reduce_together_are_not_exchanged():
    program = attention(backward=True)
    for each in exchanged(program, mc.Mesh(gpu=2), tokens(program, "gpu")):
        assert "(sq" not in each.recipe
        assert "(sk" not in each.recipe


def test_exchanges_need_what_reads_a_peers_memory():
    program = attention()
    (first, *_) = exchanged(program, mc.Mesh(gpu=2), tokens(program, "gpu"))
    links = load("l4-2x1").links_of(mc.Mesh(gpu=2))
    assert "no transport 'pull'" in missing(first.placed, links)
    assert not missing(first.placed, load("h200-2x1").links_of(mc.Mesh(gpu=2)))
    assert "slices of b are exchanged under the work on others" in sentence(first.placed)


def measured(workload):
    """What each plan of a workload took on two H200, by its schedule."""
    found = json.loads((RESULTS / "h200x2.json").read_text())
    return {
        each["plan"]: each["ours_ms"] / 1000
        for each in found
        if each["workload"] == workload and each["ours_ms"]
    }


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_a_search_chooses_what_was_measured_fastest(mask):
    times = measured(f"attention-16x32x4096-{mask}-bwd")
    program = mc.programs.attention_backward(
        b=16,
        h=32,
        sq=4096,
        sk=4096,
        mask=mask,
        layout=ZIGZAG if mask == "causal" else None,
        dtype="bf16",
    )
    found = mc.tune(
        program,
        mc.Mesh(gpu=2),
        topology=RESULTS / "h200x2.toml",
        boundary=tokens(program, "gpu"),
        target="cuda",
        options=SpaceOptions(**FEW, overlap=True, slices=(4, 8)),
        measure=lambda schedules: [times.get(each.recipe(), 1.0) for each in schedules],
        cache=False,
    )
    assert found.chosen.recipe == min(times, key=lambda recipe: times[recipe])
    assert "overlap(b_outer)" in found.chosen.recipe
