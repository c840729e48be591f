"""How a search ends, and what is kept of it: answers, stops, limits, ranks, the shell."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import mercury as mc
import pytest
from click.testing import CliRunner
from mercury.cli.tune import tune as command
from mercury.tuner import Cache, CacheWarning, SpaceOptions, TuneResult
from mercury.tuner.search import Search
from small_searches import TOKENS, WHOLE, Fake, attention, matmul, tune


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "tuning.sqlite")


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


def test_a_search_that_is_late_still_tries_what_a_result_names(monkeypatch):
    """The best, another family's, a plain one, and the next of the Pareto set."""
    settings = {"topology": "h100-4x2", "mesh": mc.Mesh(node=2, gpu=4), "memory": "1GiB"}
    levels = ["node", "gpu"]
    program = attention(h=32, group=4, d=128, sq=1 << 17, sk=1 << 17, dtype="bf16")
    boundary = {
        buffer: {axis: levels}
        for buffer, axis in (("Q", "sq"), ("K", "sk"), ("V", "sk"), ("O", "sq"))
    }
    monkeypatch.setattr(Search, "_late", lambda search: len(search.choices) >= 25)
    late = tune(program, boundary=boundary, options=SpaceOptions(), **settings)
    assert late.ended == "time limit"
    assert late.plain is not None
    assert late.runner_up is not None
    assert len(late.plans) >= 3


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


@pytest.fixture
def listening():
    """Let Ctrl-C reach the tests: a shell's background jobs ignore it, and their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_of_the_shell_ends_with_the_best_so_far(tmp_path, listening):
    code = (
        "import os, signal, sys; from mercury.cli import main\n"
        "from mercury.tuner.search import Search\n"
        "look = Search._look_at\n"
        "def look_and_press(search, *arguments):\n"
        "    look(search, *arguments)\n"
        "    if search._seen == 9: os.kill(os.getpid(), signal.SIGINT)\n"
        "Search._look_at = look_and_press\n"
        "sys.argv[1:] = ['tune', 'attention', '--topology', 'h100-8x2', '--max-levels', '4',\n"
        "                '--set', 'sq=65536,sk=65536']\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {"MERCURY_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "searched until it was stopped" in done.stdout
    (entry,) = Cache(tmp_path / "tuning.sqlite").entries()
    assert entry.answer["ended"] == "stopped"
    assert 5 < len(Cache(tmp_path / "tuning.sqlite").progress(entry.key)) < 20


class Presses:
    """Presses Ctrl-C where Python prints an error, and goes on."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def press_at(point, how):
    """Make a meter that presses Ctrl-C when it is told something the n-th time."""

    @contextmanager
    def meter():
        told = iter(range(1 << 30))
        yield lambda _: how() if next(told) == point else None

    return meter


@pytest.mark.parametrize("point", [0, 1, 2, 5, 11])
def test_an_interrupt_that_comes_in_a_destructor_is_not_lost(point, listening):
    best = tune(progress=press_at(point, Presses), options=WHOLE)
    assert best.ended == "stopped"
    assert best.counts.seen == point + 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_ends_at_once(listening):
    def twice():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")

    best = tune(progress=press_at(4, twice), options=WHOLE)
    assert best.ended == "stopped"
    assert best.counts.seen == 5
