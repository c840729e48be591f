"""The cache of searches: many processes, sudden deaths, broken files, and votes."""

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import warnings

import mercury as mc
import pytest
from click.testing import CliRunner
from mercury.cli.cache import cache as command
from mercury.topology import load
from mercury.tuner import (
    Cache,
    CacheError,
    CacheWarning,
    Entry,
    Key,
    SpaceOptions,
    agree_on_entry,
    default_path,
)
from mercury.tuner.agree import agree_on_text

spawn = multiprocessing.get_context("spawn")


def entry(key, recipe="parallelize(sq, gpu)", created=1.5):
    return Entry(
        key=key,
        label=f"question {key}",
        question={"program": "p"},
        answer={"recipe": recipe},
        created=created,
    )


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "folder" / "tuning.sqlite")


# -- what it keeps ------------------------------------------------------------


def test_entries_are_kept_replaced_and_dropped(cache):
    assert cache.get("a") is None
    cache.put(entry("b", created=2.0))
    cache.put(entry("a", created=1.0))
    cache.put(entry("b", recipe="other", created=3.0))
    assert [each.key for each in cache.entries()] == ["a", "b"]
    assert Cache(cache.path).get("b") == entry("b", recipe="other", created=3.0)
    assert cache.find("a").label == "question a"
    with pytest.raises(CacheError, match="no entries have a key that begins with 'x'"):
        cache.find("x")
    assert cache.drop("a")
    assert not cache.drop("a")
    assert cache.clear() == 1
    assert cache.entries() == []


def test_progress_lasts_until_the_answer(cache):
    cache.add_progress("k", {"one": {"latency": 1.5}, "two": None})
    cache.add_progress("k", {"two": [2]})
    cache.add_progress("other", {"one": 1})
    assert cache.progress("k") == {"one": {"latency": 1.5}, "two": [2]}
    cache.put(entry("k"))
    assert cache.progress("k") == {}
    assert cache.progress("other") == {"one": 1}


def test_the_place_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCURY_CACHE_DIR", str(tmp_path / "own"))
    assert default_path() == tmp_path / "own" / "tuning.sqlite"
    monkeypatch.delenv("MERCURY_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_path() == tmp_path / "xdg" / "mercury" / "tuning.sqlite"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".cache" / "mercury" / "tuning.sqlite"


# -- the key ------------------------------------------------------------------


def key(program=None, mesh=None, boundary=None, **changes):
    settings = {
        "topology": load("h100-4x1"),
        "memory": 1 << 34,
        "target": "sim",
        "options": SpaceOptions(),
        "cost": "bound",
    }
    return Key.of(
        program or attention(), mesh or mc.Mesh(gpu=4), boundary, **(settings | changes)
    ).hash


def attention(**settings):
    return mc.programs.attention(**{"h": 4, "sq": 64, "sk": 64, "d": 8} | settings)


def test_the_key_covers_all_that_the_answer_depends_on(monkeypatch):
    keys = [
        key(),
        key(attention(dtype="f16")),
        key(attention(mask="causal")),
        key(attention(mask=mc.window(5))),
        key(attention(layout={"sq": "zigzag"})),
        key(attention(sq=65)),
        key(attention(scale=2.0)),
        key(mesh=mc.Mesh(gpu=2)),
        key(mesh=mc.Mesh(a=2, b=2)),
        key(boundary={"Q": {"sq": "gpu"}}),
        key(boundary={"K": {"sk": "gpu"}}),
        key(topology=load("h100-2x2")),
        key(topology=load("h200-4x1")),
        key(memory=None),
        key(memory=1 << 35),
        key(target="cuda"),
        key(cost="simulator"),
        key(options=SpaceOptions(max_levels=3)),
        key(options=SpaceOptions(blocks=(2,))),
        key(options=SpaceOptions(implementations={"attention_fwd": ["cudnn"]})),
    ]
    for name, value in (("__version__", "9"), ("IR_VERSION", 9)):
        with monkeypatch.context() as patch:
            patch.setattr(f"mercury.tuner.key.{name}", value)
            keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_cache import key; print(key())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "7"},
    )
    assert other.stdout.strip() == keys[0]


# -- files --------------------------------------------------------------------


def test_entries_travel_as_a_file(cache, tmp_path):
    for name in "abc":
        cache.put(entry(name))
    file = tmp_path / "plans.json"
    assert cache.export(file) == 3
    assert cache.export(tmp_path / "one.json", ["b"]) == 1
    other = Cache(tmp_path / "other.sqlite")
    assert other.load(file) == 3
    assert other.entries() == cache.entries()
    assert not list(tmp_path.glob("plans.json.*"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="x"), "'format' must be 'mercury-tuning'"),
        (lambda c: c.update(version=2), "'version' must be 1, got 2"),
        (lambda c: c.update(entries={}), "'entries' must be a list"),
        (lambda c: c["entries"].append(7), "expected an entry, got 7"),
        (lambda c: c["entries"][0].pop("answer"), "'answer' of an entry must be of type dict"),
        (lambda c: c["entries"][1].update(key=3), "'key' of an entry must be of type str"),
    ],
)
def test_a_wrong_file_is_refused_as_a_whole(cache, tmp_path, change, message):
    cache.put_all([entry("a"), entry("b")])
    file = tmp_path / "plans.json"
    cache.export(file)
    cache.clear()
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(CacheError, match=message):
        cache.load(file)
    assert cache.entries() == []
    file.write_text("{")
    with pytest.raises(CacheError, match="cannot be read as entries"):
        cache.load(file)


# -- broken files -------------------------------------------------------------


def fill(cache):
    cache.put_all([entry(f"{n:04}", recipe="x" * 2000) for n in range(60)])


def garbage(path):
    path.write_bytes(random.Random(1).randbytes(9000))


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def holes(path):
    content = bytearray(path.read_bytes())
    for at in range(5000, len(content), 4096):
        content[at : at + 3000] = bytes(3000)
    path.write_bytes(content)


def other_tables(path):
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE something (x)")
        database.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize("damage", [garbage, cut, holes, other_tables])
def test_a_broken_file_is_moved_aside_with_a_message(cache, damage):
    fill(cache)
    damage(cache.path)
    with pytest.warns(CacheWarning, match="was broken .* a new one is begun"):
        assert cache.entries() == []
    assert len(list(cache.path.parent.glob("*.broken-*"))) == 1
    cache.put(entry("new"))
    assert [each.key for each in cache.entries()] == ["new"]


def test_a_journal_without_its_database_does_no_harm(cache):
    fill(cache)
    cache.path.with_name(f"{cache.path.name}-journal").write_bytes(b"\xd9\xd5" * 600)
    assert len(cache.entries()) == 60
    garbage(cache.path)
    cache.path.with_name(f"{cache.path.name}-journal").write_bytes(b"\xd9\xd5" * 600)
    with pytest.warns(CacheWarning):
        assert cache.get("0001") is None
    cache.put(entry("new"))
    assert len(cache.entries()) == 1


def test_a_damaged_entry_is_a_miss_and_the_others_stay(cache):
    cache.put_all([entry("a"), entry("b")])
    with sqlite3.connect(cache.path) as database:
        database.execute("UPDATE entries SET text = replace(text, 'sq', 'sk') WHERE key = 'a'")
    with pytest.warns(CacheWarning, match="entry 'a' .* is damaged and not used"):
        assert cache.get("a") is None
    with pytest.warns(CacheWarning):
        assert [each.key for each in cache.entries()] == ["b"]


def test_a_cache_that_cannot_be_used_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match=r"cannot be used.*set MERCURY_CACHE_DIR"):
        Cache(tmp_path / "file" / "tuning.sqlite").get("a")
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(CacheError, match="has format 99, this version reads 1"):
        Cache(newer).get("a")
    assert newer.exists()


# -- many processes -----------------------------------------------------------


def write_many(path, writer, count):
    own = Cache(path)
    for number in range(count):
        own.put(entry(f"{writer}-{number}", recipe=f"{writer}" * 500))
        own.add_progress("shared", {f"{writer}-{number}": number})


def test_concurrent_writers_lose_nothing(cache):
    writers = [spawn.Process(target=write_many, args=(cache.path, w, 12)) for w in range(5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * 5
    assert {each.key for each in cache.entries()} == {
        f"{w}-{n}" for w in range(5) for n in range(12)
    }
    assert len(cache.progress("shared")) == 60


def write_forever(path, writer, ready):
    own = Cache(path)
    number = 0
    while True:
        # Two entries that belong together, large enough for many pages.
        pair = [entry(f"{writer}-{half}", recipe=f"{number:06}" * 3000) for half in "ab"]
        own.put_all(pair)
        if number == 0:
            ready.release()
        number += 1


def test_writers_killed_at_any_moment_leave_whole_entries(cache):
    source = random.Random(5)
    ready = spawn.Semaphore(0)
    for _ in range(4):
        writers = [
            spawn.Process(target=write_forever, args=(cache.path, w, ready)) for w in range(3)
        ]
        for writer in writers:
            writer.start()
        for _ in writers:
            assert ready.acquire(timeout=120)
        for writer in source.sample(writers, len(writers)):
            time.sleep(source.uniform(0, 0.05))
            os.kill(writer.pid, signal.SIGKILL)
        for writer in writers:
            writer.join(60)
        found = {each.key: each.answer["recipe"] for each in cache.entries()}
        assert set(found) == {f"{w}-{half}" for w in range(3) for half in "ab"}
        for w in range(3):
            assert found[f"{w}-a"] == found[f"{w}-b"]
        with sqlite3.connect(cache.path) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not list(cache.path.parent.glob("*.broken-*"))


def open_broken(path, start, results):
    start.wait(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        own = Cache(path)
        own.put(entry(f"p{os.getpid()}"))
        results.put((f"p{os.getpid()}", len(caught)))


def test_processes_that_meet_a_broken_file_move_it_aside_once(cache):
    cache.path.parent.mkdir()
    garbage(cache.path)
    start, results = spawn.Event(), spawn.Queue()
    processes = [
        spawn.Process(target=open_broken, args=(cache.path, start, results)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    start.set()
    outcomes = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(60)
    assert {each.key for each in cache.entries()} == {name for name, _ in outcomes}
    assert sum(count for _, count in outcomes) == 1
    assert len(list(cache.path.parent.glob("*.broken-*"))) == 1


# -- votes --------------------------------------------------------------------


def rank_main(rank, path, texts, barrier, results):
    def vote(text):
        texts[rank] = text
        barrier.wait(60)
        found = list(texts)
        barrier.wait(60)
        return found

    own = Cache(path)
    found = agree_on_entry(own.get("k"), vote)
    chosen = agree_on_text(f"chosen by {rank}", vote)
    results.put((rank, None if found is None else found.answer["recipe"], chosen))


def run_ranks(paths):
    barrier, results = spawn.Barrier(len(paths)), spawn.Queue()
    with spawn.Manager() as manager:
        texts = manager.list([""] * len(paths))
        ranks = [
            spawn.Process(target=rank_main, args=(rank, path, texts, barrier, results))
            for rank, path in enumerate(paths)
        ]
        for rank in ranks:
            rank.start()
        found = sorted(results.get(timeout=120) for _ in paths)
        for rank in ranks:
            rank.join(60)
    return [recipe for _, recipe, _ in found], [chosen for *_, chosen in found]


def test_ranks_agree_on_hit_or_miss(tmp_path):
    """C55: the cache of one rank was deleted; a hit on the others would hang them."""
    paths = [tmp_path / f"{rank}.sqlite" for rank in range(3)]
    for path in paths:
        Cache(path).put(entry("k"))
    assert run_ranks(paths) == (["parallelize(sq, gpu)"] * 3, ["chosen by 0"] * 3)
    paths[1].unlink()
    assert run_ranks(paths)[0] == [None] * 3
    Cache(paths[1]).put(entry("k", recipe="parallelize(h, gpu)"))
    assert run_ranks(paths)[0] == [None] * 3


def test_a_vote_that_leaves_this_rank_out_is_refused():
    with pytest.raises(CacheError, match="must give the texts of all ranks"):
        agree_on_entry(entry("k"), lambda text: [""])


# -- from the shell -----------------------------------------------------------


def test_list_show_drop_export_and_import(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCURY_CACHE_DIR", str(tmp_path))

    def run(*arguments, code=0):
        done = CliRunner().invoke(command, arguments)
        assert done.exit_code == code, done.output
        return done.output

    assert "no entries" in run("list")
    Cache().put_all([entry("aa11"), entry("ab22")])
    listed = run("list")
    assert "aa11" in listed
    assert "question" in listed
    assert json.loads(run("show", "aa"))["answer"] == {"recipe": "parallelize(sq, gpu)"}
    assert "2 entries have a key that begins with 'a'" in run("show", "a", code=1)
    file = str(tmp_path / "plans.json")
    assert "1 entries written" in run("export", file, "ab")
    assert "aa11 forgotten" in run("drop", "aa")
    assert "give either a KEY or --all" in run("drop", code=2)
    assert "1 entries forgotten" in run("drop", "--all")
    assert "1 entries read" in run("import", file)
    assert [each.key for each in Cache().entries()] == ["ab22"]
    assert run("path").strip() == str(tmp_path / "tuning.sqlite")
