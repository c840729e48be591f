"""The search: what it chooses, what it leaves out and why, and how it ends."""

import json
import multiprocessing
import os
import subprocess
import sys
import time
from dataclasses import replace

import mercury as mc
import pytest
from click.testing import CliRunner
from mercury.cli.tune import tune as command
from mercury.topology import load
from mercury.tuner import (
    Cache,
    CacheWarning,
    PlanCosts,
    Space,
    SpaceOptions,
    Style,
    TuneError,
    TuneResult,
)
from mercury.tuner.search import Search

ROTATE = SpaceOptions(styles=(Style(),))
WHOLE = SpaceOptions(styles=(Style(),), max_levels=1)  # no level is split
TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}


def attention(**settings):
    return mc.programs.attention(
        **{"h": 8, "sq": 64, "sk": 64, "d": 8, "dtype": "f32"} | settings
    )


def matmul(**settings):
    return mc.programs.matmul(**{"m": 64, "n": 64, "depth": 64, "dtype": "f32"} | settings)


def tune(program=None, mesh=None, **settings):
    defaults = {"topology": "h200-2x1", "cache": False, "options": ROTATE}
    return mc.tune(program or matmul(), mesh or mc.Mesh(gpu=2), **(defaults | settings))


class Fake:
    """A cost model of the test's own: latency by recipe."""

    name = "fake"
    measured = True

    def __init__(self, latency):
        self.latency, self.calls = latency, 0

    def __call__(self, lowered, topology):
        self.calls += 1
        seconds = self.latency(lowered)
        return PlanCosts(
            latency=seconds,
            compute=seconds,
            exposed=0.0,
            bytes_by_level={},
            seconds_by_link={},
            error=0.0,
        )


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "tuning.sqlite")


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
    for program, mesh, topology in (
        (attention(h=8, d=128, sq=65536, sk=65536, dtype="bf16"), mc.Mesh(gpu=4), "h200-4x1"),
        (attention(h=4, d=128, sq=8192, sk=8192, mask="causal"), mc.Mesh(gpu=4), "h100-4x1"),
        (matmul(m=8192, n=8192, depth=8192, dtype="bf16"), mc.Mesh(node=2, gpu=2), "h100-2x2"),
    ):
        settings = {"topology": topology, "options": SpaceOptions(max_levels=1)}
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


# -- how it ends --------------------------------------------------------------


def test_the_cache_answers_the_same_question_and_no_other(cache):
    first = tune(cache=cache)
    again = tune(cache=cache)
    assert not first.from_cache
    assert again.from_cache
    assert again.chosen == first.chosen
    assert "found in the cache" in str(again)
    assert not tune(matmul(dtype="bf16"), cache=cache).from_cache
    assert not tune(cache=cache, boundary={"A": {"i": "gpu"}}).from_cache
    assert not tune(cache=cache, memory="1GiB").from_cache
    assert len(cache.entries()) == 4


def test_an_answer_that_does_not_fit_is_not_used(cache):
    tune(cache=cache)
    (entry,) = cache.entries()
    entry.answer["chosen"]["recipe"] = "parallelize(x, gpu)"
    cache.put(entry)
    with pytest.warns(CacheWarning, match="does not fit this version"):
        assert not tune(cache=cache).from_cache


def test_a_cache_that_cannot_be_used_is_done_without(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(CacheWarning, match="searching without a cache"):
        assert tune(cache=Cache(tmp_path / "file" / "x.sqlite")).chosen


def test_a_search_that_is_stopped_goes_on_where_it_was(cache):
    """Ctrl-C after some schedules; the next search costs only the others."""

    def interrupted(lowered):
        if model.calls == 40:
            raise KeyboardInterrupt
        return 1.0 + len(lowered.candidate.recipe)

    model = Fake(interrupted)
    settings = {"mesh": mc.Mesh(gpu=4), "topology": "h200-4x1"}
    stopped = tune(cache=cache, cost=model, **settings)
    assert stopped.ended == "stopped"
    whole = Fake(lambda lowered: 1.0 + len(lowered.candidate.recipe))
    ended = tune(cache=cache, cost=whole, **settings)
    assert ended.ended == "complete"
    assert not ended.from_cache
    fresh = Fake(whole.latency)
    assert (
        tune(cost=fresh, **settings).counts.costed
        == ended.counts.costed
        > stopped.counts.costed
        > 10
    )
    assert whole.calls < fresh.calls - 30
    assert tune(cache=cache, cost=whole, **settings).from_cache


def test_the_time_limit_ends_the_search_with_the_best_so_far(cache):
    program = attention(h=32, sq=4096, sk=4096)
    settings = {"topology": "h100-8x1", "cache": cache, "options": SpaceOptions(max_levels=3)}
    start = time.monotonic()
    best = tune(program, mc.Mesh(gpu=8), time_limit="1s", **settings)
    assert time.monotonic() - start < 60
    assert best.ended == "time limit"
    assert best.chosen.recipe
    # The same time again is answered, more time goes on.
    assert tune(program, mc.Mesh(gpu=8), time_limit="1s", **settings).from_cache
    more = tune(program, mc.Mesh(gpu=8), time_limit="3s", **settings)
    assert not more.from_cache
    assert more.counts.seen > best.counts.seen


def test_pareto_plans_that_there_was_no_time_to_try_are_marked(monkeypatch, cache):
    settings = {
        "topology": "h100-8x1",
        "boundary": TOKENS,
        "mesh": mc.Mesh(gpu=8),
        "options": WHOLE,
        "top": 1,
    }
    program = attention(h=8, d=128, sq=8192, sk=8192, dtype="bf16")
    whole = tune(program, **settings)
    assert not whole.untried
    assert "simulated only" not in str(whole)
    # Time is up once all are compared, not before.
    monkeypatch.setattr(Search, "_late", lambda search: bool(search._right))
    short = tune(program, cache=cache, **settings)
    assert short.chosen == whole.chosen
    assert len(short.pareto) < len(whole.pareto)
    left = {each.fingerprint for each in whole.pareto} - {e.fingerprint for e in short.pareto}
    assert {each.fingerprint for each in short.untried} == left
    assert str(short).count("\nsimulated only ") == len(left) > 0
    assert f"{len(left)} plan" in short.summary()[-1]
    # Nobody compared them with float64, so they never run in place of another.
    assert not left & {each.fingerprint for each in short.plans}
    again = TuneResult.from_json(
        json.loads(json.dumps(short.to_json())), program, short.mesh, short.boundary
    )
    assert again.untried == short.untried


def test_the_runner_up_differs_in_more_than_direction():
    """Under a mask both directions of a ring are tried, and here cost about the same."""
    best = tune(
        attention(h=2, d=128, sq=1 << 17, sk=1 << 17, dtype="bf16", mask="causal"),
        topology="h100-4x1",
        boundary=TOKENS,
        mesh=mc.Mesh(gpu=4),
        options=WHOLE,
        top=1,
    )
    mirrored = (best.chosen.recipe.replace(", direction=-1", ""), best.runner_up.recipe)
    assert "shift(" in best.chosen.recipe
    assert mirrored[0] != mirrored[1].replace(", direction=-1", "")
    assert best.runner_up.family != best.chosen.family


def test_ranks_choose_what_the_first_rank_chose(cache):
    first = tune(cost=Fake(lambda lowered: 1.0 + ("(j," in lowered.candidate.recipe)))
    text = json.dumps(first.to_json(), sort_keys=True)
    votes = []

    def vote(mine):
        votes.append(mine)
        return ["", mine] if len(votes) == 1 else [text, mine]

    other = tune(
        cost=Fake(lambda lowered: 2.0 - ("(j," in lowered.candidate.recipe)), vote=vote
    )
    assert votes[0] == ""
    assert json.loads(votes[1])["recipe"] != first.chosen.recipe
    assert other.chosen == first.chosen


def rank_main(rank, paths, texts, barrier, results):
    def vote(text):
        texts[rank] = text
        barrier.wait(100)
        found = list(texts)
        barrier.wait(100)
        return found

    best = tune(cache=Cache(paths[rank]), options=WHOLE, vote=vote)
    results.put((rank, best.from_cache, best.chosen.recipe))


def test_ranks_search_together_when_one_of_them_lost_its_cache(tmp_path):
    """C55: a hit on one rank alone would hang the others."""
    spawn = multiprocessing.get_context("spawn")
    paths = [tmp_path / f"{rank}.sqlite" for rank in range(2)]

    def run():
        barrier, results = spawn.Barrier(2), spawn.Queue()
        with spawn.Manager() as manager:
            texts = manager.list([""] * 2)
            arguments = (paths, texts, barrier, results)
            ranks = [spawn.Process(target=rank_main, args=(n, *arguments)) for n in range(2)]
            for rank in ranks:
                rank.start()
            found = sorted(results.get(timeout=120) for _ in ranks)
            for rank in ranks:
                rank.join(60)
        assert found[0][2] == found[1][2]
        return [hit for _, hit, _ in found]

    assert run() == [False, False]
    assert run() == [True, True]
    paths[1].unlink()
    assert run() == [False, False]
    assert run() == [True, True]


# -- from the shell -----------------------------------------------------------


def test_tune_from_the_shell(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCURY_CACHE_DIR", str(tmp_path))
    arguments = [
        *("matmul", "--topology", "h200-2x1", "--set", "m=64,n=64,depth=64"),
        *("--at", "A.i=gpu", "--memory", "40GiB", "--target", "sim", "--time-limit", "60s"),
        *("--json", str(tmp_path / "out.json"), "--script"),
    ]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert "*predicted*" in done.output
    assert "transform.named_sequence" in done.output
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["recipe"] == written["chosen"]["recipe"]
    assert "found in the cache" in CliRunner().invoke(command, arguments).output
    for wrong, message in (
        (["matmul", "--topology", "x"], "there is no topology 'x'"),
        (["matmul", "--topology", "h200-2x1", "--at", "A"], "expected --at BUFFER.AXIS=LEVEL"),
        (["matmul", "--topology", "h200-2x1", "--at", "Z.i=gpu"], "is no buffer"),
        (["nothing", "--topology", "h200-2x1"], "there is no program 'nothing'"),
    ):
        failed = CliRunner().invoke(command, wrong)
        assert failed.exit_code != 0
        assert message in failed.output


def test_an_interrupt_of_the_shell_ends_with_the_best_so_far(tmp_path):
    code = (
        "import signal, threading, os, sys; from mercury.cli import main\n"
        "threading.Timer(8, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "sys.argv[1:] = ['tune', 'attention', '--topology', 'h100-8x2', '--max-levels', '4',\n"
        "                '--set', 'sq=65536,sk=65536']\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"MERCURY_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "searched stopped" in done.stdout
    (entry,) = Cache(tmp_path / "tuning.sqlite").entries()
    assert entry.answer["ended"] == "stopped"
    assert len(Cache(tmp_path / "tuning.sqlite").progress(entry.key)) > 5
