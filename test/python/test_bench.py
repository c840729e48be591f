"""Benchmarks: names, statistics, turns and sweeps, on processes that are not there."""

import gc
import math
import random
import weakref
from types import SimpleNamespace

import mercury as mc
import pytest
from bench_by_clock import Clock, Problem, Tensor, candidate, failing, floors, sweep
from mercury import bench
from mercury.bench import BenchError, parse_workload
from mercury.bench.candidate import Candidate, Prepared
from mercury.bench.errors import AbsentError
from mercury.bench.measure import Settings, compare
from mercury.bench.processes import exchange_messages
from mercury.bench.shards import block, zigzag
from mercury.bench.statistics import middle, ratios
from mercury.bench.sweep import Limits, Sweep
from mercury.bench.watchdog import Watchdog

# --- Names ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [*bench.GOALS, *bench.ONE_GPU, "attention-2x8x1000-full-gqa2-bwd"]
)
def test_a_workload_is_its_name(text):
    assert str(parse_workload(text)) == text


def test_flops_count_what_a_mask_leaves_and_five_products_backward():
    full, causal = (parse_workload(f"attention-2x4x1024-{mask}") for mask in ("full", "causal"))
    assert full.flops == 4 * 2 * 4 * 1024**2 * 128
    assert causal.flops == full.flops / 2
    assert parse_workload("attention-2x4x1024-full-bwd").flops == 2.5 * full.flops
    assert parse_workload("gemm-rs-4x6x8").flops == 2 * 4 * 6 * 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("attention-1x32x4096", "attention-1x32x16384-causal"),
        ("attention-1x32x4096-window", "there is no workload"),
        ("attention-0x32x4096-full", "sizes of at least 1"),
        ("attention-1x32x4096-full-gqa5", "key heads divide, got 32 and 5"),
        ("attention-1x32x4096-full-gqa0", "key heads divide|at least 1"),
        ("ag-gemm-8x8", "ag-gemm-MxKxN"),
        ("gemm-rs-8x0x8", "sizes of at least 1"),
    ],
)
def test_a_name_that_is_none_says_what_one_is(text, message):
    with pytest.raises(BenchError, match=message):
        parse_workload(text)


def test_shards_cover_every_row_once():
    for extent, ranks in ((4097, 2), (1000, 3), (3, 4), (16, 4)):
        for cut in (block, zigzag):
            rows = [row for rank in range(ranks) for row in cut(extent, ranks, rank)]
            assert sorted(rows) == list(range(extent))


# --- Statistics ----------------------------------------------------------------------------


def test_the_interval_holds_the_median_as_often_as_it_says():
    numbers, held, asked = random.Random(1), 0, 400
    for _ in range(asked):
        seen = middle([numbers.expovariate(1.0) for _ in range(15)])
        held += seen.low <= math.log(2) <= seen.high
        assert seen.low <= seen.median <= seen.high
        assert seen.confidence >= 0.95
    assert 0.93 < held / asked < 0.995


def test_few_samples_claim_no_more_than_they_know():
    assert middle([1.0]).confidence == 0
    assert middle([3.0, 1.0, 2.0, 5.0, 4.0]).confidence == pytest.approx(0.9375)
    # Of 15 samples, ranks 4 and 12: 1 - 2 P(Binomial(15, 1/2) <= 3).
    seen = middle([float(n) for n in range(1, 16)])
    assert (seen.low, seen.median, seen.high) == (4, 8, 12)
    assert seen.confidence == pytest.approx(1 - 2 * (1 + 15 + 105 + 455) / 2**15)


def test_a_ratio_is_of_rounds_and_not_of_medians():
    # The machine is twice as slow in three of the rounds: the ratio does not see it.
    floor = [1.0, 2.0, 1.0, 2.0, 2.0]
    seen = ratios([1.1, 2.2, 1.1, 2.2, 2.2], floor)
    assert seen.median == pytest.approx(1.1)
    assert seen.high - seen.low < 1e-12
    with pytest.raises(BenchError, match="same rounds of both, got 1 and 5"):
        ratios([1.0], floor)
    with pytest.raises(BenchError, match="no samples"):
        middle([])


# --- Turns ---------------------------------------------------------------------------------


def test_works_take_turns_there_and_back():
    on = Clock()
    works = {name: on.work(name, ms) for name, ms in (("floor", 4.0), ("a", 5.0), ("b", 6.0))}
    timing = compare(on, works, Settings(rounds=6, burst_ms=4))
    turns = on.log[-18:]
    assert turns[:6] == ["floor", "a", "b", "b", "a", "floor"]
    assert timing.samples["a"] == pytest.approx([5.0] * 6)
    assert all(len(samples) == 6 for samples in timing.samples.values())


def test_short_works_run_in_bursts_and_long_ones_alone():
    on = Clock()
    compare(on, {"floor": on.work("floor", 0.5)}, Settings(rounds=5, burst_ms=10))
    assert len(on.log) == 2 + 5 * 20
    on = Clock()
    compare(on, {"floor": on.work("floor", 500.0)}, Settings(rounds=5, burst_ms=10))
    assert len(on.log) == 1 + 5


def test_the_slowest_leave_when_the_budget_is_short_but_never_the_floor():
    on = Clock()
    works = {"floor": on.work("floor", 100.0)}
    works |= {f"{ms}": on.work(f"{ms}", float(ms)) for ms in (120, 290, 150, 900)}
    timing = compare(on, works, Settings(rounds=15, budget_s=2.0))
    assert list(timing.samples) == ["floor", "120", "150"]
    assert len(timing.samples["floor"]) == 5
    assert timing.tried["900"] == pytest.approx(900)
    lone = compare(on, {"floor": works["floor"]}, Settings(rounds=15, budget_s=0.01))
    assert len(lone.samples["floor"]) == 5


def test_settings_are_checked():
    for wrong in ({"rounds": 2}, {"burst_ms": 0}, {"slow": 0.5}, {"least_rounds": 0}):
        with pytest.raises(BenchError):
            Settings(**wrong)


# --- A workload ----------------------------------------------------------------------------


def test_a_sweep_compares_ours_with_the_floor_and_the_best_peer():
    on = Clock()
    plans = [candidate(on, "pull", 1.1, spread=0.01), candidate(on, "ring", 1.3)]
    peers = [candidate(on, "NCCL", 1.5), candidate(on, "fused", 2.2)]
    made, _ = sweep(on, plans, peers)
    pull, ring = made["pull"], made["ring"]
    assert (pull.chosen, ring.chosen) == (True, False)
    assert 1.1 <= pull.ratio_low <= pull.ratio_to_floor <= pull.ratio_high <= 1.112
    assert ring.ratio_to_floor == pytest.approx(1.3)
    assert (pull.best_peer, ring.best_peer_ms) == ("NCCL", pytest.approx(1.5))
    assert ring.ratio_to_peer == pytest.approx(1.3 / 1.5)
    assert ring.peers["fused"].ms == pytest.approx(2.2)
    assert (ring.plan, ring.ranks, ring.rounds, ring.graph) == ("recipe of ring", 2, 5, True)


def test_what_fails_is_named_and_ends_nothing():
    on = Clock()
    plans = [
        failing("broken", RuntimeError("no kernel\nwith a long trace")),
        failing("not lowered", mc.CompileError("needs rule R6", location="mine.py:12")),
        candidate(on, "wrong", 1.0, error=3e-3),
        candidate(on, "lost", 1.0, error=math.nan),
        candidate(on, "right", 1.2),
    ]
    peers = [failing("absent", AbsentError("package x is not there")), candidate(on, "p", 2.0)]
    made, told = sweep(on, plans, peers)
    assert made["broken"].failed == "RuntimeError: no kernel"
    assert made["not lowered"].failed == "CompileError: needs rule R6"  # and no place in a file
    assert made["wrong"].failed == "wrong: its error is 3.0e-03, at most 2.0e-03 is allowed"
    assert made["lost"].failed.startswith("wrong: its error is inf")
    assert made["wrong"].ours_ms is None
    assert made["right"].chosen
    assert made["right"].peers["absent"].absent == "package x is not there"
    assert made["right"].best_peer == "p"
    assert any("wrong left out: wrong" in line for line in told)


def test_a_graph_that_writes_nothing_is_wrong():
    on = Clock()
    stale = candidate(on, "stale", 1.0, graph=lambda: None)
    made, _ = sweep(on, [stale])
    assert made["stale"].failed.startswith("wrong as a graph: its error is inf")


def test_what_cannot_be_captured_runs_without_a_graph():
    class NoGraphs(Clock):
        def capture(self, work):
            if self.log and self.log[-1] == "floor":
                return work, work()
            raise RuntimeError("operation not permitted when stream is capturing")

    on = NoGraphs()
    made, told = sweep(on, [], [candidate(on, "p", 1.5)])
    assert made[""].peers["p"].graph is False
    assert made[""].peers["p"].ms == pytest.approx(1.5)
    assert made[""].failed == "no plan was asked for"
    assert any("without a graph" in line for line in told)


def test_a_candidate_without_time_for_turns_is_not_called_slow():
    on = Clock()
    plans = [candidate(on, "good", 120.0), candidate(on, "long", 200.0)]
    made, _ = sweep(on, plans, floor=100.0, budget_s=1.5)
    assert made["good"].ours_ms == pytest.approx(120.0)
    assert made["long"].failed.startswith("no time was left for its turns")
    assert "--time-limit" in made["long"].failed


def test_slow_candidates_and_those_that_come_late_are_named():
    on = Clock()
    plans = [candidate(on, "slow", 40.0), candidate(on, "good", 1.2)]
    made, _ = sweep(on, plans)
    assert "too slow to be measured in turns: 40.000 ms" in made["slow"].failed
    late = [failing("absent", AbsentError("x")), candidate(on, "slow", 40.0)]
    assert sweep(on, late)[0]["slow"].chosen
    assert made["good"].ours_ms is not None
    on = Clock()
    plans = [candidate(on, "first", 900.0), candidate(on, "late", 500.0)]
    made, _ = sweep(on, plans, floor=400.0, limits=Limits(seconds=3.0))
    assert made["late"].failed == "not tried: half of the workload's 3 s were over"


def test_a_floor_that_is_wrong_or_fails_is_an_error():
    on = Clock()
    for floor, message in (
        (floors(on, error=0.5), "the floor of w is wrong"),
        (SimpleNamespace(prepare=lambda *_: 1 / 0), "cannot be measured: ZeroDivisionError"),
    ):
        runner = Sweep(on, Settings(), Limits(), lambda _: None, floor)
        with pytest.raises(BenchError, match=message):
            runner.run("w", Problem(), [], [], {})
    two = [candidate(on, "same", 1.0), candidate(on, "same", 1.0)]
    with pytest.raises(BenchError, match="two candidates 'same'"):
        sweep(on, two)


def test_everything_made_is_closed_once():
    on, closed = Clock(), []
    plans = [
        candidate(on, name, 1.0, error=error, close=lambda name=name: closed.append(name))
        for name, error in (("good", 1e-3), ("wrong", 1.0))
    ]
    sweep(on, plans)
    assert sorted(closed) == ["good", "wrong"]


def test_the_slowest_leave_when_memory_is_short():
    on = Clock(memory=140)

    def holding(name, ms, size):
        tensor = Tensor()

        def prepare(problem, processes):
            if size > on.memory:
                raise MemoryError(f"{size} of {on.memory}")
            on.memory -= size

            def close():
                on.memory += size

            return Prepared(run=on.work(name, ms, tensor=tensor), held={"C": ()}, close=close)

        return Candidate(name=name, prepare=prepare)

    times = {"a": 1.3, "b": 1.5, "slow": 9.0, "c": 1.2, "d": 1.4, "e": 1.1, "f": 1.6}
    made, _ = sweep(on, [holding(name, ms, 30) for name, ms in times.items()])
    stood = {name for name, record in made.items() if record.ours_ms is not None}
    assert stood == {"a", "c", "e", "f"}
    assert made["e"].chosen
    assert made["slow"].failed == (
        "too slow to be measured in turns: 9.000 ms when tried, the floor 1.000"
    )
    for name in ("b", "d"):
        assert made[name].failed == (
            "left its place to others, as memory was short, being the slowest then: "
            f"{times[name]:.3f} ms when tried, the floor 1.000"
        )
    assert on.memory == 140


def test_what_a_graph_reads_is_kept_until_all_turns_are_over():
    class Data:
        pass

    on, alive = Clock(), []
    seen = []

    def prepare(problem, processes, name="kept"):
        data, tensor = Data(), Tensor()
        alive.append(weakref.ref(data))
        timed = on.work(name, 1.0, tensor=tensor)

        def run(data=data):
            return timed()

        # As a CUDA graph: it replays what it captured, and knows nothing of `run`.
        def replay():
            timed()
            seen.append(alive[0]() is not None)

        return Prepared(run=run, held={"C": ()}, graph=replay)

    made, _ = sweep(on, [Candidate(name="kept", prepare=prepare), candidate(on, "b", 1.0)])
    assert made["kept"].ours_ms is not None
    assert len(seen) > 5
    assert all(seen)
    gc.collect()
    assert alive[0]() is None


def test_what_another_rank_failed_to_make_is_closed_here_too():
    class Torn(Clock):
        def agree(self, message):
            return "rank 1: no memory" if self.log[-1:] == ["made"] else message

    on, closed = Torn(), []

    def prepare(problem, processes):
        on.log.append("made")
        return Prepared(run=lambda: {}, held={}, close=lambda: closed.append("torn"))

    made, _ = sweep(on, [Candidate(name="torn", prepare=prepare)])
    assert made["torn"].failed == "rank 1: no memory"
    assert closed == ["torn"]


def test_messages_name_the_rank_unless_all_say_the_same():
    assert exchange_messages(["a", "a"]) == "a"
    assert exchange_messages([None, "b", "c"]) == "rank 1: b"
    assert exchange_messages([None, None]) is None


def test_a_watchdog_ends_what_hangs_and_nothing_else():
    said = []
    dog = Watchdog(said.append)
    dog.expect("a workload", 60)
    dog.expect("the next", 0.01)
    dog._timer.join(5)
    assert len(said) == 1
    assert "the next has not ended in 0 s" in said[0]
    dog.expect("another", 0.05)
    dog.stop()
    assert len(said) == 1
