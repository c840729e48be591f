"""The search: what it chooses, and what it leaves out and why."""

import json
from dataclasses import replace

import mercury as mc
import pytest
from mercury.topology import load
from mercury.tuner import Space, SpaceOptions, TuneError, TuneResult
from small_searches import ROTATE, TOKENS, WHOLE, Fake, attention, matmul, tune

# -- what it chooses ----------------------------------------------------------


def test_a_matmul_without_a_boundary_moves_nothing():
    best = tune()
    assert best.chosen.costs.exposed == 0
    assert best.chosen.plain
    assert best.plain == best.chosen
    assert best.counts.seen == sum(1 for _ in Space(matmul(), mc.Mesh(gpu=2), options=ROTATE))
    assert best.counts.tried >= 2
    plan = best.compile()
    assert plan.mesh == mc.Mesh(gpu=2)
    assert best.schedule.recipe() == best.chosen.recipe


def test_long_sequences_hide_a_ring_and_short_ones_do_not():
    """Traffic grows with the sequence, work with its square."""
    settings = {
        "topology": "h100-4x1",
        "boundary": TOKENS,
        "mesh": mc.Mesh(gpu=4),
        "options": WHOLE,
    }
    long = tune(attention(h=2, d=128, sq=1 << 19, sk=1 << 19, dtype="bf16"), **settings)
    assert "shift(sk, by=sq" in long.chosen.recipe
    assert long.plain is not None
    assert long.plain.costs.latency > long.chosen.costs.latency
    short = tune(attention(h=2, d=128, sq=512, sk=512, dtype="bf16"), **settings)
    assert long.chosen.costs.exposed < 0.05 * long.chosen.costs.latency
    assert short.chosen.costs.exposed > 0.05 * short.chosen.costs.latency


def test_pruning_never_changes_the_result():
    """The same winner, runner-up and Pareto set as when every schedule is simulated."""
    spared = 0
    gpus, whole = mc.Mesh(gpu=4), SpaceOptions(max_levels=1)
    product = matmul(m=8192, n=8192, depth=8192, dtype="bf16")
    long = attention(h=8, d=128, sq=65536, sk=65536, dtype="bf16")
    masked = attention(h=4, d=128, sq=8192, sk=8192, mask="causal")
    for program, mesh, topology, options in (
        (long, gpus, "h200-4x1", whole),
        (masked, gpus, "h100-4x1", whole),
        (product, mc.Mesh(node=2, gpu=2), "h100-2x2", whole),
        # With the level split, as 2 x 2.
        (long, gpus, "h200-4x1", ROTATE),
        (product, gpus, "h100-4x1", ROTATE),
    ):
        settings = {"topology": topology, "options": options}
        pruned = tune(program, mesh, **settings)
        every = tune(program, mesh, prune=False, **settings)
        assert pruned.chosen == every.chosen
        assert pruned.runner_up == every.runner_up
        assert pruned.plain == every.plain
        assert pruned.pareto == every.pareto
        assert every.counts.pruned == 0
        assert every.counts.costed == pruned.counts.costed + pruned.counts.pruned
        spared += pruned.counts.pruned
    assert spared > 20


def test_less_memory_gives_more_sharded_plans_until_none_fits():
    program = attention(h=4, d=64, sq=2048, sk=2048, dtype="bf16")
    settings = {"topology": "h200-4x1", "options": WHOLE, "boundary": TOKENS, "top": 1}
    limit, peaks = "40GiB", []
    while True:
        try:
            best = tune(program, mc.Mesh(gpu=4), memory=limit, **settings)
        except TuneError as error:
            refused = str(error)
            break
        peaks.append(best.chosen.peak_bytes)
        found = mc.simulate(best.schedule, "h200-4x1")
        assert max(found.peak_bytes) == best.chosen.peak_bytes
        assert found.time_s == best.chosen.costs.latency
        limit = best.chosen.peak_bytes - 1
    assert "the smallest" in refused
    assert len(peaks) >= 2
    assert peaks == sorted(peaks, reverse=True)


def test_the_table_says_what_was_found():
    settings = {"topology": "h100-4x1", "boundary": TOKENS, "options": WHOLE}
    best = tune(attention(), mc.Mesh(gpu=4), **settings)
    printed = str(best)
    for part in (
        "*predicted*, not measured (simulation-1)",
        "chosen",
        "plain",
        "exposed",
        best.chosen.sentence,
        best.chosen.recipe,
        "not lowered yet",
        "tried on embedded ranks",
    ):
        assert part in printed
    assert "transform.commir.parallelize" in best.script
    again = TuneResult.from_json(
        json.loads(json.dumps(best.to_json())), best.program, best.mesh, best.boundary
    )
    assert again == best
    assert str(again) == printed


def test_the_pareto_set_trades_latency_for_memory():
    best = tune(
        attention(h=4, d=64, sq=2048, sk=2048, dtype="bf16"),
        mc.Mesh(gpu=4),
        topology="h200-4x1",
        boundary=TOKENS,
        options=WHOLE,
    )
    assert len(best.pareto) > 1
    assert best.chosen in best.pareto
    for one in best.pareto:
        for other in best.pareto:
            worse = [a > b for a, b in zip(other.values, one.values, strict=True)]
            assert one is other or any(worse)
    peaks = [each.peak_bytes for each in best.pareto]
    assert min(peaks) < best.chosen.peak_bytes


def test_a_slower_link_is_felt():
    best = tune(
        attention(h=2, d=128, sq=1 << 19, sk=1 << 19, dtype="bf16"),
        mc.Mesh(node=2, gpu=2),
        topology="h100-2x2",
        boundary={"K": {"sk": ["node", "gpu"]}, "V": {"sk": ["node", "gpu"]}},
    )
    assert best.plain is not None
    assert best.plain.slow_link == "node"
    # Nothing hides what the slow link brings, so half its bandwidth adds as much again, and
    # more where ranks wait for each other.
    costs = best.plain.costs
    added = best.plain.slow_latency - costs.latency
    assert 0.95 * costs.seconds_by_link["node"] < added < 2 * costs.seconds_by_link["node"]
    assert added > 0.05 * costs.latency


# -- what it leaves out -------------------------------------------------------


def test_memory_decides_and_too_little_says_how_much():
    program = attention(h=2, d=128, sq=8192, sk=8192, dtype="bf16")
    settings = {"topology": "h100-4x1", "options": WHOLE, "boundary": TOKENS}
    free = tune(program, mc.Mesh(gpu=4), **settings)
    smallest = min(each.peak_bytes for each in free.pareto)
    tight = tune(program, mc.Mesh(gpu=4), memory=smallest, **settings)
    assert tight.chosen.peak_bytes <= smallest
    assert tight.counts.too_large > 0
    assert tight.chosen.costs.latency >= free.chosen.costs.latency
    with pytest.raises(
        TuneError, match=r"no plan fits into 1000 B; the smallest needs(.|\n)*than 1,000"
    ):
        tune(program, mc.Mesh(gpu=4), memory="1KB", **settings)


def test_a_machine_without_peer_access_has_plans_still():
    """C63: what needs it is left out and counted, and the rest remains."""
    options = SpaceOptions()
    best = tune(matmul(), mc.Mesh(gpu=4), topology="l4-4x1", options=options)
    assert "has no transport 'pull'" in next(iter(best.counts.lacking))
    assert sum(best.counts.lacking.values()) > 50
    assert best.chosen.plain


def test_a_cost_that_fails_is_that_schedules_own_affair():
    def latency(lowered):
        if "parallelize(i, gpu)" in lowered.candidate.recipe:
            raise ValueError("no curve for this")
        return 1.0 + len(lowered.candidate.recipe)

    best = tune(cost=Fake(latency))
    assert best.counts.failed
    assert set(best.counts.failed.values()) == {"ValueError: no curve for this"}
    assert best.chosen.recipe == "parallelize(j, gpu)"
    assert best.measured
    assert "*predicted*" not in str(best)


def test_a_plan_that_computes_wrong_is_not_chosen():
    """The fastest by its cost is one whose trial fails: it is named, and another is taken."""
    wrong = (
        "split_level(gpu, dict(gpu0=2, gpu1=2)); parallelize(k, [gpu0, gpu1]); "
        "shard(C, j, gpu0); shift(i, by=k, over=gpu1, offset=1)"
    )
    best = tune(
        matmul(),
        mc.Mesh(gpu=4),
        topology="h200-4x1",
        cost=Fake(lambda lowered: 1.0 if lowered.candidate.recipe == wrong else 2.0),
    )
    if wrong not in best.counts.failed:
        pytest.skip("this schedule is right by now")
    assert "wrong on embedded ranks: error C" in best.counts.failed[wrong]
    assert best.chosen.recipe != wrong


def test_kernels_without_a_curve_have_one():
    """C57: a shape, type or kernel that nobody measured is costed all the same."""
    machine = load("h200-2x1")
    only_other = replace(machine.machine, kernels={"*": machine.machine.kernels["*"]})
    for program in (matmul(), matmul(dtype="f64"), attention()):
        best = tune(program, topology=replace(machine, machine=only_other), options=WHOLE)
        assert best.chosen.costs.compute > 0
        assert best.chosen.costs.error == pytest.approx(0.5)


def test_empty_axes_and_uneven_heads_have_plans():
    empty = tune(matmul(m=0), options=WHOLE)
    assert empty.chosen.costs.exposed == 0
    # 28 heads on 8 ranks: the fullest would have 4 of them, so queries are spread instead.
    settings = {"mesh": mc.Mesh(gpu=8), "topology": "h200-8x1", "options": WHOLE, "top": 1}
    # Where blocks fill many waves: a wave that is half empty takes as long as a full one.
    length = {"sq": 65536, "sk": 65536}
    uneven = tune(attention(h=28, group=7, **length), **settings)
    even = tune(attention(h=32, group=8, **length), **settings)
    assert even.chosen.recipe == "parallelize(h, gpu)"
    assert uneven.chosen.recipe == "parallelize(sq, gpu)"
    assert uneven.chosen.costs.compute < even.chosen.costs.compute


def test_what_cannot_be_asked_is_said():
    for settings, message in (
        ({"target": "tpu"}, "no target 'tpu'"),
        ({"memory": "lots"}, "expected bytes such as '40GiB', above 0, got 'lots'"),
        ({"time_limit": "-3s"}, "expected a time such as '60s'"),
        ({"top": 0}, "at least one plan must be tried"),
        ({"topology": "h200-1x1"}, "2 ranks, topology 'h200-1x1' has 1"),
    ):
        with pytest.raises(mc.MercuryError, match=message):
            tune(**settings)
