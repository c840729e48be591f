"""The longest context that fits in so much memory, as plans state it and as they run."""

import dataclasses
import json

import mercury as mc
import pytest
from bench_by_clock import Clock
from click.testing import CliRunner
from mercury.bench.candidate import Candidate, Prepared
from mercury.bench.errors import BenchError
from mercury.bench.ours import plans_of
from mercury.bench.wall import Wall, longest_that_runs, predict_walls, wall_table
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
