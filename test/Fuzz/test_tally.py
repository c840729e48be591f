"""Cases of several processes add up, and what none of them hit is said."""

import mercury as mc
import pytest
from applied_rules import applied
from fuzz_schedules import main
from isolated import Outcome
from tally import ENOUGH, KINDS, Tally

EVERYTHING = [(kind, what) for kind, every in KINDS.items() for what in every]


def outcome(number, kind="right", hits=EVERYTHING):
    return Outcome(number=number, kind=kind, text=f"case {number}", hits=list(hits))


def tally(count, *others, hits=EVERYTHING):
    made = Tally()
    for number in range(count):
        made.add(outcome(number, hits=hits))
    for number, kind in enumerate(others):
        made.add(outcome(count + number, kind))
    return made


def test_runs_add_up(tmp_path):
    one, other = tally(3, "refused: R2", "WRONG"), tally(4, "refused: R2", "CRASH")
    paths = [tmp_path / "one.json", tmp_path / "other.json"]
    for each, path in zip((one, other), paths, strict=True):
        each.save(path)
    whole = Tally.merged(paths)
    assert whole.counts == {"right": 7, "refused: R2": 2, "WRONG": 1, "CRASH": 1}
    assert whole.hits["mask", "causal"] == 7
    assert whole.failures == [(4, "WRONG case 4"), (5, "CRASH case 5")]
    assert "11 cases, 8 executed, 2 refused (18.2 %), 2 failed" in list(whole.lines())


def test_one_in_a_hundred_is_enough():
    rare = ("strategy", "ring")
    others = [hit for hit in EVERYTHING if hit != rare]
    made = tally(ENOUGH - 20, hits=others)
    for number in range(19):
        made.add(outcome(number))
    made.add(outcome(0, hits=others))
    assert made.shortfalls() == [f"strategy ring: 19 of {ENOUGH}"]
    made.add(outcome(0))
    made.add(outcome(0))
    assert made.shortfalls() == []


def test_refusals_have_a_limit():
    assert tally(90, *["refused: R2"] * 10).shortfalls() == []
    (short,) = tally(89, *["refused: R2"] * 11).shortfalls()
    assert short.startswith("executed: 89 of 100")


@pytest.mark.parametrize(
    ("made", "status", "said"),
    [
        (tally(ENOUGH), 0, "2000 cases, 2000 executed"),
        (tally(ENOUGH - 1), 1, "coverage takes 2000 cases, these are 1999"),
        (tally(ENOUGH, "HANG"), 1, "tools/fuzz --only 2000"),
        (tally(ENOUGH, hits=[]), 1, "fell short of 1 in 100"),
    ],
)
def test_coverage_is_required(made, status, said, tmp_path, monkeypatch, capsys):
    made.save(tmp_path / "all.json")
    arguments = ["fuzz", "--merge", str(tmp_path / "all.json"), "--require-coverage"]
    monkeypatch.setattr("sys.argv", arguments)
    assert main() == status
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("strategy", "mesh", "rules"),
    [
        ("column-parallel", mc.Mesh(gpu=3), {"R1"}),
        ("context-parallel", mc.Mesh(gpu=3), {"R2", "R2 gather"}),
        ("summa", mc.Mesh(row=2, col=2), {"R2", "R2 broadcast"}),
        ("ring", mc.Mesh(gpu=3), {"R3", "R3 exchange"}),
        ("double-ring", mc.Mesh(node=2, gpu=2), {"R3", "R3 exchange", "R9"}),
        ("tree", mc.Mesh(gpu=3), {"R4", "R4 gather"}),
        ("row-parallel", mc.Mesh(gpu=3), {"R4", "R4 all_reduce"}),
        ("gemm-rs", mc.Mesh(gpu=3), {"R5", "R5 reduce_scatter"}),
        ("gemm-rs-shifted", mc.Mesh(gpu=3), {"R6", "R6 exchange"}),
        ("ulysses", mc.Mesh(gpu=3), {"R7"}),
    ],
)
def test_rules_are_told_apart(strategy, mesh, rules):
    assert set(applied(mc.strategies.get(strategy).schedule(mesh))) == rules


@pytest.mark.parametrize(
    ("recipe", "rules"),
    [
        ("shard(A, k, gpu); parallelize(j, gpu)", {"R2", "R2 gather"}),
        ("parallelize(k, gpu); shard(C, i, gpu); defer(C)", {"R5", "R5 exchange"}),
        (
            "parallelize(k, gpu); shard(C, i, gpu); shift(i, by=k, offset=1, results=fetch)",
            {"R6", "R6 pull"},
        ),
        (
            "tile(k, 2); reorder(k_outer, i); parallelize(j, gpu); shift(i, by=j, reads=pull)",
            {"R3", "R3 pull", "R3 of the next slice"},
        ),
        ("shard(A, i, gpu); parallelize(j, gpu); tile(i, 3)", {"R2", "R2 gather"}),
        ("shard(A, i, gpu); parallelize(k, gpu)", {"R4", "R4 all_reduce", "R8"}),
    ],
)
def test_ways_of_a_rule_are_told_apart(recipe, rules):
    program = mc.programs.matmul(m=7, n=5, depth=6, dtype="f32")
    assert set(applied(mc.Schedule(program, mc.Mesh(gpu=3)).apply(recipe))) == rules
