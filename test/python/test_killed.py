"""Searches that are killed at any moment: the cache stays whole, and the answer the same."""

import multiprocessing
import random
import signal
import sqlite3
import time
from collections import Counter

import mercury as mc
from mercury.tuner import Cache, SpaceOptions, Style

KILLS = 50
WHOLE = SpaceOptions(styles=(Style(),), max_levels=1)
# Processes start from one that has the package, so that most kills meet a search.
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["mercury.tuner", "mercury.programs", "mercury.runtime.plan"])


def search(cache, **limits):
    tokens = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}}
    return mc.tune(
        mc.programs.attention(h=2, sq=37, sk=41, d=8, dtype="f32"),
        mc.Mesh(gpu=3),
        topology="h100-3x1",
        boundary=tokens,
        options=WHOLE,
        cache=cache,
        **limits,
    )


def search_until(path, end):
    """Tune again and again: each time the answer is dropped, and what was found out too."""
    own = Cache(path)
    while not end.is_set():
        search(own)
        own.clear()


def search_once(path, ready):
    ready.set()
    search(Cache(path))


def search_in_turns(path, ready):
    """Stop after a little while, and go on from there with more time."""
    ready.set()
    own, seconds = Cache(path), 0.05
    while search(own, time_limit=seconds).ended != "complete":
        seconds *= 1.5


def test_fifty_kills_leave_the_cache_whole_and_the_answer_the_same(tmp_path):
    path, source = tmp_path / "tuning.sqlite", random.Random(11)
    start = time.monotonic()
    fresh = search(False)
    took = time.monotonic() - start
    end = context.Event()
    # A daemon is ended with this process, which else would wait for it.
    other = context.Process(target=search_until, args=(path, end), daemon=True)
    other.start()
    unfinished = Counter()
    for number in range(KILLS):
        ready = context.Event()
        work = (search_once, search_in_turns)[number % 2]
        victim = context.Process(target=work, args=(path, ready))
        victim.start()
        assert ready.wait(120)
        time.sleep(source.uniform(0, took / 2))
        victim.kill()  # or it has ended, which is no error
        victim.join(60)
        assert victim.exitcode in (0, -signal.SIGKILL)
        unfinished[work] += victim.exitcode == -signal.SIGKILL
    end.set()
    other.join(240)
    assert other.exitcode == 0
    assert min(unfinished[search_once], unfinished[search_in_turns]) > KILLS / 4
    # What the last ones had found out is used, and nothing of it is wrong.
    found = search(Cache(path))
    assert found.ended == "complete"
    for mine, theirs in ((found.chosen, fresh.chosen), (found.pareto, fresh.pareto)):
        assert mine == theirs
    assert found.counts == fresh.counts
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not list(tmp_path.glob("*.broken-*"))
