"""The longest context that fits in so much memory, as plans state it and as they run."""

import dataclasses
import json
from types import SimpleNamespace

import mercury as mc
import pytest
from bench_by_clock import Clock
from click.testing import CliRunner
from mercury.bench.candidate import Candidate, Prepared
from mercury.bench.errors import AbsentError, BenchError
from mercury.bench.ours import plans_of
from mercury.bench.wall import Wall, longest_that_runs, measure_walls, predict_walls, wall_table
from mercury.bench.workload import parse_workload
from mercury.cli.bench import bench
from mercury.runtime.trial import trial
from mercury.topology import load

STEP = "attention-1x16x64-causal"
LIMIT = 24 << 20


@pytest.fixture(scope="module")
def walls():
    return list(predict_walls(STEP, mc.Mesh(gpu=4), load("h200-4x1"), LIMIT))


def test_each_plan_fits_and_one_step_more_does_not(walls):
    for wall in walls:
        for more, fits in ((0, True), (64, False)):
            longer = f"attention-1x16x{wall.stated_rows + more}-causal"
            plans = plans_of(parse_workload(longer), mc.Mesh(gpu=4))
            plan = next(each for each in plans if each.name == wall.name)
            peak = max(mc.simulate(plan.schedule, "h200-4x1").peak_bytes)
            assert (peak <= LIMIT) == fits, wall.name
            assert not fits or peak == wall.stated_bytes


def test_a_few_heads_at_a_time_go_furthest(walls):
    rows = {wall.name: wall.stated_rows for wall in walls}
    first = rows.pop("pull by fewer heads, zigzag")
    assert first > max(rows.values())
    assert rows["context-parallel, zigzag"] < rows["ring, zigzag"] < rows["ulysses"]
    lines = wall_table(walls).splitlines()
    assert lines[2].startswith(f"| 4 | pull by fewer heads, zigzag | {first} |")
    assert "rows that ran" not in lines[0]


@pytest.mark.parametrize(
    ("mesh", "names"),
    [
        (mc.Mesh(gpu=3), ["pull by heads", "pull by fewer heads"]),
        (mc.Mesh(node=2, gpu=2), ["pull by heads"]),  # parts of a tiled loop go over one level
    ],
)
@pytest.mark.parametrize(
    "workload", ["attention-1x12x26-causal-gqa6", "attention-2x16x13-full"]
)
def test_plans_by_heads_are_right(workload, mesh, names):
    plans = plans_of(parse_workload(workload), mesh)
    found = {each.name.removesuffix(", zigzag"): each for each in plans}
    for name in names:
        assert trial(found[name].schedule.compile()).right, name


@pytest.mark.parametrize(
    ("workload", "limit", "message"),
    [
        ("gemm-rs-64x64x64", LIMIT, "got 'gemm-rs-64x64x64'; give one whose rows are the step"),
        ("attention-1x8x64-full-bwd", LIMIT, "that of an attention forward"),
        ("attention-1x16x4096-full", 1 << 20, "give fewer rows, or a larger limit"),
    ],
)
def test_what_has_no_longest_is_refused(workload, limit, message):
    with pytest.raises(BenchError, match=message):
        list(predict_walls(workload, mc.Mesh(gpu=4), load("h200-4x1"), limit))


class Forgetful(Clock):
    """Gives memory back, and counts how often."""

    times = 0

    def forget(self):
        self.times += 1


def fitting(largest, closed):
    """Make candidates that have no memory for more rows than that."""

    def make(at):
        def run():
            if at.rows > largest:
                raise MemoryError(f"no room for {at.rows} rows")
            return {}

        def prepare(problem, on):
            assert problem.workload == at
            return Prepared(run=run, held={}, close=lambda: closed.append(at.rows))

        return Candidate(name="some", prepare=prepare)

    return make


def test_shorter_ones_are_tried_until_one_runs():
    on, closed = Forgetful(), []
    step = parse_workload(STEP)
    found = longest_that_runs(on, fitting(300, closed), step, 7)
    assert found == (256, "320 rows: MemoryError: no room for 320 rows")
    assert closed == [448, 384, 320, 256]
    assert on.times == 4
    none = longest_that_runs(on, fitting(10, closed), step, 2)
    assert none == (None, "64 rows: MemoryError: no room for 64 rows")


def test_what_is_absent_is_not_tried_again():
    on, asked = Forgetful(), []

    def prepare(problem, _):
        asked.append(problem.workload.rows)
        raise AbsentError("install it")

    made = Candidate(name="some", prepare=prepare)
    found = longest_that_runs(on, lambda _: made, parse_workload(STEP), 9)
    assert (found, asked) == ((None, "install it"), [9 * 64])


def test_plans_begin_at_what_they_state_and_peers_beyond_the_longest(walls, monkeypatch):
    on, closed, taken = Forgetful(), [], []
    on.size = 4
    on.torch = SimpleNamespace(
        cuda=SimpleNamespace(mem_get_info=lambda: (3 * LIMIT, 4 * LIMIT)),
        empty=lambda size, **_: taken.append(size),
        uint8=None,
    )
    longest = max(each.stated_rows for each in walls)
    make = fitting(longest - 64, closed)
    monkeypatch.setattr("mercury.bench.wall.candidate", lambda own, **_: make(_attention(own)))

    def peers(at, ranks):
        return (dataclasses.replace(make(at), name="a peer"),)

    monkeypatch.setattr("mercury.bench.wall.peers_of", peers)
    found = list(measure_walls(on, walls, mc.Mesh(gpu=4), plans=["fewer", "peer", "usp"]))
    assert {each.name: each.measured_rows for each in found} == {
        "pull by fewer heads, zigzag": longest - 64,
        "usp, zigzag": next(w.stated_rows for w in walls if w.name == "usp, zigzag"),
        "a peer": longest - 64,
    }
    assert taken == [2 * LIMIT]  # all but the limit
    assert max(closed) == longest + 2 * 64
    on.size = 2
    with pytest.raises(BenchError, match="has 4 ranks and 2 were started"):
        list(measure_walls(on, walls, mc.Mesh(gpu=4)))


def _attention(own):
    """Read what a schedule is of, from its program."""
    rows = next(axis.extent for axis in own.schedule.program.axes if axis.name == "sq")
    return dataclasses.replace(parse_workload(STEP), rows=rows)


def test_what_ran_is_told_beside_what_was_stated(walls):
    ran = [dataclasses.replace(wall, measured_rows=wall.stated_rows - 64) for wall in walls]
    common = {"workload": STEP, "topology": "h200-4x1", "ranks": 4, "limit_bytes": LIMIT}
    ran.append(Wall(**common, name="a peer", measured_rows=1 << 20))
    head, _, first, *_ = wall_table(ran).splitlines()
    assert head.endswith("| rows that ran |")
    assert first == "| 4 | a peer | - | - | - | 1048576 |"


def test_the_command_writes_what_it_found(tmp_path, walls):
    file = tmp_path / "wall.json"
    settings = ["--topology", "h200-2x1", "--mesh", "gpu=4", "--limit", "24MiB"]
    run = CliRunner().invoke(bench, ["wall", STEP, *settings, "--json", str(file)])
    assert run.exit_code == 0, run.output
    told = [Wall(**each) for each in json.loads(file.read_text())]
    assert [each.stated_rows for each in told] == [wall.stated_rows for wall in walls]
    assert wall_table(told) in run.output
