"""The two arenas of a plan: what peers read, and all else."""

from __future__ import annotations

import json

import mercury as mc
import pytest
from click.testing import CliRunner
from mercury.cli.explain import explain
from mercury.cli.run import run
from mercury.runtime import sim
from mercury.runtime.trial import LIMITS, trial
from mercury.tuner.lower import lower
from mercury.tuner.placed import read_placed
from mercury.tuner.space import Candidate

MESHES = [mc.Mesh(gpu=3), mc.Mesh(node=2, gpu=2)]
FETCH = "parallelize(k, gpu); shift(i, by=k, offset=1, results=fetch)"


def fetched(mesh: mc.Mesh = MESHES[0]) -> mc.Schedule:
    """C = A B, k over the ranks; the owner of rows of C reads what the others make of them."""
    program = mc.programs.matmul(m=23, n=9, depth=17, dtype="f32")
    return mc.Schedule(program, mesh, {"C": {"i": mesh.names[-1]}}).apply(FETCH)


def pulled(mesh: mc.Mesh = MESHES[0], **shift: str) -> mc.Schedule:
    """C = A B, columns of C over the ranks; rows of A are read where they lie."""
    program = mc.programs.matmul(m=23, n=9, depth=17, dtype="f32")
    schedule = mc.Schedule(program, mesh, {"A": {"i": "gpu"}}).parallelize("j", "gpu")
    return schedule.shift("i", by="j", reads="pull", **shift)


def rounded(mesh: mc.Mesh) -> mc.Schedule:
    """Rows of A are rounded by their owner before they are read."""
    return pulled(mesh, link="bf16")


# Whether peers read memory of the plan's own.
SCHEDULES = [(fetched, True), (pulled, False), (rounded, True)]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize(("make", "of_its_own"), SCHEDULES)
def test_peers_read_arguments_and_the_symmetric_arena_alone(make, of_its_own, mesh):
    plan = make(mesh).compile()
    buffers = {buffer.name for buffer in plan.program.buffers}
    opened = [
        [event.inputs[0] for event in plan.events(rank) if event.kind == "lease_open"]
        for rank in range(mesh.size)
    ]
    assert opened[0]
    assert {box.memory for boxes in opened for box in boxes} <= buffers | {"symmetric arena"}
    # The same at the same offset on every rank.
    places = [[(box.memory, box.offset) for box in boxes] for boxes in opened]
    assert all(each == places[0] for each in places)
    lent = any(box.memory == "symmetric arena" for box in opened[0])
    assert lent == (plan.symmetric_bytes > 0) == of_its_own
    found = trial(plan)
    assert found.right or (make is rounded and found.errors["C"] < LIMITS["bf16"])


def test_a_run_takes_what_the_plan_says_of_both_arenas():
    plan = fetched().compile()
    found = trial(plan)
    # Partial results for two owners, of 8 rows at the most, wait to be fetched; one comes.
    assert plan.symmetric_bytes >= 8 * 9 * 4
    assert plan.local_bytes > 0
    assert plan.arena_bytes == plan.local_bytes + plan.symmetric_bytes
    assert found.report.peak_arena_bytes == plan.arena_bytes


def test_the_search_and_the_simulator_count_both_arenas():
    schedule = fetched()
    plan = schedule.compile()
    candidate = Candidate(schedule=schedule, placed=read_placed(schedule), fingerprint="")
    lowered = lower(candidate)
    assert lowered.arena_bytes == plan.arena_bytes
    assert lowered.peak_bytes == plan.arena_bytes + lowered.boundary_bytes
    assert max(mc.simulate(plan, "h200-4x1").peak_bytes) == lowered.peak_bytes


def test_a_plan_for_gpus_has_the_same_arenas():
    schedule = fetched()
    plan, there = schedule.compile(), schedule.compile(target="cuda")
    assert (there.local_bytes, there.symmetric_bytes) == (
        plan.local_bytes,
        plan.symmetric_bytes,
    )


def test_the_shell_says_how_much_is_symmetric():
    plan = fetched().compile()
    asked = [
        *("matmul", "--mesh", "gpu=3", "--set", "m=23,n=9,depth=17", "--dtype", "f32"),
        *("--recipe", f"shard(C, i, gpu); {FETCH}"),
    ]
    told = f"{plan.arena_bytes:,} bytes a rank, {plan.symmetric_bytes:,} of them symmetric"
    ran = CliRunner().invoke(run, asked)
    assert f"arenas      {told}\n" in ran.output
    assert f"arenas {told}; shards" in CliRunner().invoke(explain, asked).output
    plain = json.loads(CliRunner().invoke(explain, [*asked, "--json"]).output)
    assert plain["arena_bytes"] == plan.arena_bytes
    assert plain["symmetric_bytes"] == plan.symmetric_bytes


def test_arenas_that_cannot_be_are_refused():
    plan = fetched().compile()
    with pytest.raises(mc.RunError, match="the symmetric arena has -64 bytes"):
        sim.run(plan._entry, plan.mesh, [[] for _ in range(3)], 0, -64, sim.SimOptions())
