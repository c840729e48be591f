"""Messages by puts: as right as others, and refused where they cannot be."""

from __future__ import annotations

import re

import mercury as mc
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial

ATTENTION = {"h": 4, "group": 2, "sq": 23, "sk": 19, "d": 8, "dtype": "f32"}


def ring(mesh: mc.Mesh, mask: str = "causal", **shift: object) -> mc.Schedule:
    """Keys and values go around the last level; the shards of three ranks are uneven."""
    program = mc.programs.attention(mask=mask, **ATTENTION)
    level = mesh.names[-1]
    cut = {"Q": {"sq": level}, "K": {"sk": level}, "V": {"sk": level}, "O": {"sq": level}}
    schedule = mc.Schedule(program, mesh, {**cut, "LSE": {"sq": level}})
    return schedule.parallelize("sq", level).shift("sk", by="sq", **shift)


def gemm_rs(mesh: mc.Mesh, rows: int = 23, **shift: object) -> mc.Schedule:
    """Rows of a product summed over the last level go to their owners."""
    program = mc.programs.gemm_rs(m=rows, n=9, depth=17, dtype="f32")
    level = mesh.names[-1]
    schedule = mc.Schedule(
        program, mesh, {"A": {"k": level}, "B": {"k": level}, "C": {"i": level}}
    )
    return schedule.parallelize("k", level).shift("i", by="k", **{"offset": 1, **shift})


def puts_of(plan: mc.Plan) -> int:
    """Count the exchanges that are puts."""
    return len(re.findall(r'exchange\.start .*commir\.transport = "rma"', plan.spmd))


def check(schedule: mc.Schedule) -> None:
    """Run a schedule with puts over the last level: it is right, and moves no more."""
    plan = schedule.compile(puts=schedule.mesh.names[-1])
    assert puts_of(plan) > 0
    assert plan.symmetric_bytes > 0
    found = trial(plan, 0, SimOptions(seed=7, max_delay_us=200))
    assert found.right, found.errors
    whole = trial(schedule.compile())
    assert found.report.bytes_sent == whole.report.bytes_sent
    assert found.report.messages == whole.report.messages


MESHES = [mc.Mesh(gpu=2), mc.Mesh(gpu=3), mc.Mesh(node=2, gpu=2), mc.Mesh(node=2, gpu=3)]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize(
    "make",
    [
        ring,
        lambda mesh: ring(mesh, mask="full", direction=-1),
        lambda mesh: ring(mesh, chunks=2),
        gemm_rs,
        lambda mesh: gemm_rs(mesh, rows=2),  # some ranks own none
    ],
    ids=["causal", "full", "chunks", "travel", "empty"],
)
def test_puts_are_right_and_move_what_messages_do(make, mesh):
    check(make(mesh))


# What comes first starts the result, and is no put where that is a tensor of the user's.
@pytest.mark.parametrize(
    ("mesh", "chunks"), list(zip(MESHES, [1, 2, 1, 2], strict=True)), ids=str
)
def test_results_are_put_into_their_owners_staging(mesh, chunks):
    check(gemm_rs(mesh, results="deliver", chunks=chunks))


@pytest.mark.parametrize("name", ["double-ring", "usp", "hybrid"])
@pytest.mark.parametrize("level", ["node", "gpu"])
def test_one_level_of_two_puts(name, level):
    method = mc.strategies.get(name)
    program = mc.programs.attention(b=2, **ATTENTION)
    schedule = method.schedule(mc.Mesh(node=2, gpu=3), program)
    used = {
        word for word in re.findall(r'exchange\.start .* on "(\w+)"', schedule.compile().spmd)
    }
    name = level if level in schedule.mesh.names else schedule.mesh.names[level == "gpu"]
    if name not in used:
        with pytest.raises(mc.CompileError, match="can be a put"):
            schedule.compile(puts=name)
        return
    plan = schedule.compile(puts=name)
    others = set(re.findall(r'exchange\.start .* on "(\w+)" .*transport = "rma"', plan.spmd))
    assert others == {name}
    found = trial(plan, 0, SimOptions(seed=3, max_delay_us=200))
    assert found.right, found.errors


def test_without_a_request_nothing_is_put():
    plan = ring(mc.Mesh(gpu=3)).compile()
    assert puts_of(plan) == 0
    assert plan.symmetric_bytes == 0


def test_what_cannot_be_put_is_refused_and_not_dropped():
    mesh = mc.Mesh(gpu=3)
    with pytest.raises(mc.CompileError, match="no message of the group of 'gpu' can be a put"):
        ring(mesh, reads="pull").compile(puts="gpu")
    with pytest.raises(mc.CompileError, match="no message of the group of 'gpu' can be a put"):
        # The staging that peers read is memory that they map, and not of NCCL.
        gemm_rs(mesh, results="fetch").compile(puts="gpu")
    with pytest.raises(mc.CompileError, match="no message of the group of 'gpu' can be a put"):
        # The first result to come starts the output, where a tensor of the user's lies.
        gemm_rs(mesh, results="deliver").compile(puts="gpu")
    with pytest.raises(mc.CompileError, match="there is no level 'node' to put over; the lev"):
        ring(mesh).compile(puts="node")


def test_gpus_are_told_which_group_puts():
    plan = ring(mc.Mesh(node=2, gpu=2)).compile(target="cuda", puts="gpu")
    assert plan.puts == ("gpu",)
    assert plan.groups == {("gpu",): True}
    other = ring(mc.Mesh(node=2, gpu=2)).compile(target="cuda")
    assert other.puts == ()
    assert plan.digest != other.digest


def test_a_put_takes_the_time_that_the_topology_says():
    schedule = ring(mc.Mesh(gpu=2))
    message = mc.simulate(schedule, "h200-2x1")
    put = mc.simulate(schedule, "h200-2x1", puts="gpu")
    # One more copy, of what each rank owns, and no curve of puts.
    assert put.time_s > message.time_s
    assert put.bytes_by_level == message.bytes_by_level
    assert mc.simulate(schedule.compile(puts="gpu"), "h200-2x1").time_s == put.time_s
    with pytest.raises(mc.MercuryError, match="compile the schedule with puts"):
        mc.simulate(schedule.compile(), "h200-2x1", puts="gpu")
