"""What a plan assumes, and what runs where that does not hold."""

import json
import multiprocessing
import random
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import mercury as mc
import numpy as np
import pytest
from click.testing import CliRunner
from mercury import reference
from mercury.bench import tuning
from mercury.bench.links import LinkPoint
from mercury.cli.cache import cache as command
from mercury.runtime.trial import trial
from mercury.tuner import (
    Cache,
    Choice,
    Entry,
    LinkSpeed,
    Observed,
    PlanCosts,
    SpaceOptions,
    Style,
    TuneError,
    TuneResult,
    TuneWarning,
    select,
)

WHOLE = SpaceOptions(styles=(Style(),), max_levels=1)
TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}
NODE = LinkSpeed(name="node", bandwidth=12e9, error=0.5)
GPU = LinkSpeed(name="gpu", bandwidth=300e9, error=0.25)
spawn = multiprocessing.get_context("spawn")


def choice(recipe, latency, memory, node=0.0, slow=None):
    return Choice(
        recipe=recipe,
        fingerprint=recipe,
        family=recipe,
        sentence=recipe,
        plain=recipe == "plain",
        costs=PlanCosts(
            latency=latency,
            compute=0.5,
            exposed=latency - 0.5,
            bytes_by_level={},
            seconds_by_link={"node": node, "gpu": 0.1},
            error=0.2,
        ),
        peak_bytes=memory,
        slow_latency=latency + node if slow is None else slow,
        slow_link="node" if node else "gpu",
    )


FAST = choice("fast", 1.0, 8 << 30, node=0.5)
LEAN = choice("lean", 1.2, 2 << 30, node=0.2)
PLAIN = choice("plain", 1.3, 4 << 30)
PLANS = (FAST, LEAN, PLAIN)


@pytest.fixture(scope="module")
def found():
    return mc.tune(
        mc.programs.attention(h=2, sq=128, sk=128, d=64, dtype="bf16"),
        mc.Mesh(gpu=4),
        topology="h100-4x1",
        boundary=TOKENS,
        options=WHOLE,
        cache=False,
    )


# -- which plan ---------------------------------------------------------------


def test_a_machine_as_assumed_runs_the_chosen_plan():
    for observed in (
        Observed(),
        Observed(free_bytes=8 << 30, bandwidths={"node": 8.1e9, "gpu": 250e9, "other": 1.0}),
    ):
        taken = select(PLANS, (NODE, GPU), observed)
        assert (taken.choice, taken.latency, taken.note) == (FAST, 1.0, "")


def test_too_little_free_memory_takes_the_fastest_that_fits():
    taken = select(PLANS, (NODE, GPU), Observed(free_bytes=5 << 30))
    assert taken.choice is LEAN
    assert taken.note == (
        "5.0 GiB of memory are free, it needs 8.0 GiB: 'lean' runs instead of 'fast', "
        "predicted 1.20 s"
    )
    with pytest.raises(
        TuneError, match=r"1\.0 GiB .* smallest of 3 plans needs 2\.0 GiB: lean"
    ):
        select(PLANS, (NODE, GPU), Observed(free_bytes=1 << 30))


def test_a_link_slower_than_its_error_range_takes_what_feels_it_least():
    # Within 50% of the time nothing happens; at a third of the bandwidth all is compared again.
    assert select(PLANS, (NODE, GPU), Observed(bandwidths={"node": 8e9})).note == ""
    taken = select(PLANS, (NODE, GPU), Observed(bandwidths={"node": 4e9}))
    assert taken.choice is PLAIN
    assert taken.note.startswith(
        "link 'node' was measured at 4 GB/s, assumed is 12 GB/s, 8 at the least: 'plain' runs "
        "instead of 'fast'"
    )
    # Just below the range: what half the bandwidth adds is added half, and fast stays.
    assert select(PLANS, (NODE, GPU), Observed(bandwidths={"node": 7.9e9})).choice is FAST
    # Both at once: plain does not fit, and of the others lean feels the link less.
    both = Observed(free_bytes=3 << 30, bandwidths={"node": 4e9})
    taken = select(PLANS, (NODE, GPU), both)
    assert taken.choice is LEAN
    assert taken.latency == pytest.approx(1.2 + 2 * 0.2)
    assert taken.note.count(" and link 'node'") == 1


def test_a_link_that_a_plan_does_not_use_is_not_assumed():
    assert select((PLAIN, FAST), (NODE, GPU), Observed(bandwidths={"node": 1e9})).note == ""


def test_what_cannot_have_been_observed_is_refused():
    with pytest.raises(TuneError, match="must be above zero"):
        Observed(free_bytes=-1)
    with pytest.raises(TuneError, match="must be above zero"):
        Observed(bandwidths={"node": 0.0})


# -- of a search --------------------------------------------------------------


def test_stored_plans_carry_what_they_assume(found, tmp_path):
    cache = Cache(tmp_path / "tuning.sqlite")
    kept = mc.tune(
        found.program,
        found.mesh,
        topology="h100-4x1",
        boundary=TOKENS,
        options=WHOLE,
        cache=cache,
    )
    cache.export(tmp_path / "plans.json")
    (entry,) = json.loads((tmp_path / "plans.json").read_text())["entries"]
    answer = entry["answer"]
    for plan in (answer["chosen"], answer["plain"], *answer["pareto"]):
        assumed = plan["assumptions"]
        assert assumed["free_bytes"] == plan["peak_bytes"] > 0
        assert assumed["links"] == [{"name": "gpu", "bandwidth": 340e9, "error": 0.25}]
    # Elsewhere, they are read back and decide there.
    other = Cache(tmp_path / "other.sqlite")
    assert other.load(tmp_path / "plans.json") == 1
    again = TuneResult.from_json(other.find("").answer, kept.program, kept.mesh, TOKENS)
    assert again.assumptions(again.chosen) == kept.assumptions(kept.chosen)
    assert f"assumes: {again.assumptions(again.chosen)}" in str(again)
    lean = min(again.plans, key=lambda each: each.peak_bytes)
    assert again.select(Observed(free_bytes=lean.peak_bytes)).choice == lean != again.chosen


def test_a_stored_answer_is_asked_from_the_shell(monkeypatch, tmp_path, found):
    monkeypatch.setenv("MERCURY_CACHE_DIR", str(tmp_path))
    Cache().put(Entry(key="ab", label="", question={}, answer=found.to_json(), created=1.0))

    def run(*arguments, code=0):
        done = CliRunner().invoke(command, ["choose", "ab", *arguments])
        assert done.exit_code == code, done.output
        return done.output

    assert run().splitlines() == ["all that the chosen plan assumes holds", found.chosen.recipe]
    lean = min(found.plans, key=lambda each: each.peak_bytes)
    note, recipe = run("--free-memory", str(lean.peak_bytes)).splitlines()
    assert (recipe, f"'{recipe}' runs instead" in note) == (lean.recipe, True)
    assert "'gpu' was measured at 4 GB/s" in run("--link", "gpu=4GB")
    assert "expected --link NAME=BYTES" in run("--link", "gpu", code=2)
    assert "no plan fits" in run("--free-memory", "1KiB", code=1)


def test_less_free_memory_compiles_a_plan_that_fits_and_is_right(found):
    lean = min(found.plans, key=lambda each: each.peak_bytes)
    assert lean.peak_bytes < found.chosen.peak_bytes
    with pytest.warns(TuneWarning) as caught:
        plan = found.compile(observed=Observed(free_bytes=lean.peak_bytes))
    (line,) = [str(each.message) for each in caught]
    assert "of memory are free" in line
    assert "\n" not in line
    assert plan.arena_bytes < lean.peak_bytes
    draw = np.random.default_rng(0).standard_normal
    q, k, v = (draw((1, 128, 2, 64), dtype=np.float32) for _ in range(3))
    o = plan.gather(plan.run(plan.scatter(Q=q, K=k, V=v)))["O"]
    wanted, _ = reference.attention(*(np.asarray(each, np.float64) for each in (q, k, v)))
    assert reference.relative_error(o, wanted) < 1e-2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.compile(observed=Observed(free_bytes=found.chosen.peak_bytes))


def test_ranks_take_the_plan_of_the_worst_of_them(found):
    """One rank has less free memory, another a slower link: all see both."""
    lean = min(found.plans, key=lambda each: each.peak_bytes)
    ranks = [
        Observed(free_bytes=found.memory),
        Observed(free_bytes=lean.peak_bytes, bandwidths={"gpu": 300e9}),
        Observed(bandwidths={"gpu": 100e9}),
    ]
    texts = []
    for rank in ranks:
        rank.agreed(lambda mine: texts.append(mine) or [mine])
    agreed = [rank.agreed(lambda _: texts) for rank in ranks]
    worst = Observed(free_bytes=lean.peak_bytes, bandwidths={"gpu": 100e9})
    assert agreed == [worst] * 3
    with pytest.warns(TuneWarning, match="'gpu' was measured at 100 GB/s"):
        found.compile(observed=ranks[0], vote=lambda _: texts if _ in texts else [_])


def test_links_that_ranks_measure_before_they_run_choose_one_plan(monkeypatch):
    """Rank 2 finds its link at a fifth: all take the plan that feels it least."""
    found = mc.tune(
        mc.programs.attention(h=4, sq=512, sk=512, d=64, dtype="bf16"),
        mc.Mesh(gpu=4),
        topology="h100-4x1",
        boundary=TOKENS,
        options=WHOLE,
        cache=False,
    )
    (assumed,) = found.assumptions(found.chosen).links

    def measured(on, *, sizes, rounds):
        own = {"level": "gpu", "mib": max(sizes), "ms": 1.0, "low": 1.0, "high": 1.0}
        # A collective, and a pair of ranks, say nothing of a message between all of them.
        return [
            LinkPoint(transport=transport, ranks=ranks, gb_per_s=rate / 1e9, **own)
            for transport, ranks, rate in (
                ("pull", "0<-1", 1e3),
                ("p2p", "all", on.bandwidth),
                ("all_gather", "all", 1e3),
            )
        ]

    monkeypatch.setattr(tuning, "measure_links", measured)

    def outcomes(bandwidths):
        """What each rank compiles, and the lines that it says."""
        texts, barrier = [""] * len(bandwidths), threading.Barrier(len(bandwidths))

        def rank_main(rank):
            def vote(mine):
                texts[rank] = mine
                barrier.wait(100)
                return list(texts)

            on = SimpleNamespace(bandwidth=bandwidths[rank])
            seen = Observed(bandwidths=tuning.observe_links(on))
            return found.select(seen.agreed(vote))

        with ThreadPoolExecutor(len(bandwidths)) as ranks:
            return list(ranks.map(rank_main, range(len(bandwidths))))

    # Within the error range nothing happens, and nothing is said.
    within = [assumed.bandwidth, 1.01 * assumed.slowest, assumed.bandwidth, assumed.bandwidth]
    for taken in outcomes(within):
        assert (taken.choice, taken.note) == (found.chosen, "")
    slow = 0.2 * assumed.bandwidth
    first, *others = outcomes([assumed.bandwidth, assumed.bandwidth, slow, assumed.bandwidth])
    assert others == [first] * 3
    assert first.choice != found.chosen
    worst = Observed(bandwidths={"gpu": slow})
    assert first.latency < select([found.chosen], found.links, worst).latency
    assert "\n" not in first.note
    assert f"link 'gpu' was measured at {slow / 1e9:.3g} GB/s" in first.note
    assert f"'{first.choice.recipe}' runs instead of '{found.chosen.recipe}'" in first.note
    assert trial(found.schedule_of(first.choice).compile()).right


# -- ranks that differ --------------------------------------------------------


class Noisy:
    """Measures with noise, and hangs on one candidate on one of the ranks."""

    name = "noisy"
    measured = True

    def __init__(self, rank):
        self.rank, self.noise = rank, random.Random(rank)

    def __call__(self, lowered, topology):
        recipe = lowered.candidate.recipe
        if self.rank == 1 and recipe == "parallelize(i, gpu)":
            time.sleep(3600)
        seconds = 1.0 + 0.5 * self.noise.random()
        return PlanCosts(
            latency=seconds,
            compute=seconds,
            exposed=0.0,
            bytes_by_level={},
            seconds_by_link={},
            error=0.0,
        )


def rank_main(rank, paths, texts, barrier, results):
    def vote(text):
        texts[rank] = text
        barrier.wait(100)
        found = list(texts)
        barrier.wait(100)
        return found

    start = time.monotonic()
    best = mc.tune(
        mc.programs.matmul(m=64, n=64, depth=64, dtype="f32"),
        mc.Mesh(gpu=2),
        topology="h200-2x1",
        options=WHOLE,
        cost=Noisy(rank),
        cache=Cache(paths[rank]),
        vote=vote,
        time_limit="40s",
        candidate_limit="0.5s",
    )
    seconds = time.monotonic() - start
    results.put((rank, best.from_cache, best.chosen.recipe, seconds, dict(best.counts.failed)))


def run_ranks(paths):
    barrier, results = spawn.Barrier(len(paths)), spawn.Queue()
    with spawn.Manager() as manager:
        texts = manager.list([""] * len(paths))
        ranks = [
            spawn.Process(target=rank_main, args=(n, paths, texts, barrier, results))
            for n in range(len(paths))
        ]
        for rank in ranks:
            rank.start()
        found = sorted(results.get(timeout=120) for _ in ranks)
        for rank in ranks:
            rank.join(60)
    return found


def test_noise_a_cold_cache_and_a_hang_leave_all_ranks_with_one_plan(tmp_path):
    paths = [tmp_path / f"{rank}.sqlite" for rank in range(3)]
    first = run_ranks(paths)
    assert len({recipe for _, _, recipe, *_ in first}) == 1
    assert [hit for _, hit, *_ in first] == [False] * 3
    assert max(seconds for *_, seconds, _ in first) < 40
    # All have the cache: nobody searches. One lost it: all search, and agree again.
    assert [hit for _, hit, *_ in run_ranks(paths)] == [True] * 3
    paths[2].unlink()
    again = run_ranks(paths)
    assert [hit for _, hit, *_ in again] == [False] * 3
    assert len({recipe for _, _, recipe, *_ in again}) == 1


def test_a_candidate_that_hangs_is_listed_and_the_search_ends_in_time():
    start = time.monotonic()
    best = mc.tune(
        mc.programs.matmul(m=64, n=64, depth=64, dtype="f32"),
        mc.Mesh(gpu=2),
        topology="h200-2x1",
        options=WHOLE,
        cost=Noisy(1),
        cache=False,
        candidate_limit="0.3s",
    )
    assert time.monotonic() - start < 60
    reason = best.counts.failed["parallelize(i, gpu)"]
    assert reason == "TuneError: noisy gave no answer in 300 ms"
    assert best.chosen.recipe != "parallelize(i, gpu)"
