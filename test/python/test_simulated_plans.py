"""Whole plans in the simulator: bytes, memory, what is refused, and the command."""

import json
import subprocess
import sys

import mercury as mc
import pytest
from click.testing import CliRunner
from machines_by_hand import SMALL, link, machine
from mercury.cli.simulate import simulate as command
from mercury.runtime.trial import trial
from mercury.simulator import SimulationError, to_chrome
from mercury.topology import TopologyError
from plan_by_hand import HandPlan


def test_stripes_of_one_share_out_the_pairs_of_a_causal_mask():
    arguments = [
        *("attention", "--strategy", "ring", "--mesh", "gpu=4", "--topology", "h200-4x1"),
        *("--mask", "causal", "--set", "sq=2048,sk=2048", "--json", "--layout"),
    ]
    told = [
        CliRunner().invoke(command, [*arguments, f"sq={cut},sk={cut}"])
        for cut in ("block", "zigzag", "striped(1)")
    ]
    block, zigzag, striped = (json.loads(each.output)["compute_s"] for each in told)
    assert striped < block
    assert striped == pytest.approx(zigzag, rel=0.2)


# -- whole plans --------------------------------------------------------------


@pytest.mark.parametrize(
    "mesh", [mc.Mesh(gpu=3), mc.Mesh(node=2, gpu=2), mc.Mesh(node=2, gpu=3)], ids=str
)
@pytest.mark.parametrize("name", mc.strategies.names())
def test_bytes_are_those_that_a_run_moves(name, mesh):
    strategy = mc.strategies.get(name)
    program = strategy.program(dtype="f32", **SMALL[strategy.program.name])
    schedule = strategy.schedule(mesh, program)
    try:
        plan = schedule.compile()
    except mc.CompileError:
        pytest.skip("not lowered yet")
    anything = machine(link("node", 4), link("gpu", 4))
    found = mc.simulate(plan, anything)
    assert found.bytes_by_level == trial(plan).report.bytes_sent
    assert found.time_s > 0
    # The timeline tells of the same bytes.
    sent = sum(span.bytes for span in found.spans if span.kind == "transfer")
    assert sent == sum(found.bytes_by_level.values())
    assert max(span.end_s for span in found.spans) == found.time_s
    # A schedule gives what its plan gives.
    again = mc.simulate(schedule, anything)
    assert again == found
    assert again.spans == found.spans


def test_a_simulation_is_the_same_in_every_process():
    code = (
        "import mercury as mc\n"
        "s = mc.strategies.get('double-ring').schedule(mc.Mesh(node=2, gpu=3))\n"
        "r = mc.simulate(s, 'h100-4x2')\n"
        "print(r, r.spans)\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(3)
    }
    (only,) = told
    assert len(only) > 1000


def test_memory_is_the_shards_and_the_arena():
    program = mc.programs.matmul(m=10, n=8, depth=4, dtype="f32")
    schedule = mc.Schedule(program, mc.Mesh(gpu=3)).parallelize("i", "gpu")
    plan = schedule.compile()
    found = mc.simulate(plan, "h200-4x1")
    rows = [4, 3, 3]
    shards = [4 * (n * 4 + 4 * 8 + n * 8) for n in rows]
    assert found.peak_bytes == [shard + plan.arena_bytes for shard in shards]


def test_a_causal_mask_halves_the_work_of_a_ring_with_zigzag_shards():
    def ring(mask, layout):
        program = mc.programs.attention(
            sq=65536, sk=65536, mask=mask, layout={"sq": layout, "sk": layout}
        )
        return mc.simulate(
            mc.strategies.get("ring").schedule(mc.Mesh(gpu=4), program), "h200-4x1"
        )

    full, causal = ring("full", "block"), ring("causal", "zigzag")
    assert 0.5 < causal.time_s / full.time_s < 0.65
    assert ring("causal", "block").time_s > 1.5 * causal.time_s


# -- what is refused ----------------------------------------------------------


def test_a_machine_that_cannot_pull_is_named_with_what_it_has():
    schedule = mc.strategies.get("async-tp").schedule(mc.Mesh(gpu=4))
    with pytest.raises(
        SimulationError,
        match="link 'gpu' has no curve of transport 'pull', which 'pull' on level 'gpu' needs; "
        "it has p2p, collective: give the topology a curve",
    ):
        mc.simulate(schedule, "l4-4x1")


def test_a_mesh_that_does_not_fit_and_unknown_names_are_refused():
    schedule = mc.strategies.get("ring").schedule(mc.Mesh(gpu=16))
    with pytest.raises(TopologyError, match=r"has 16 ranks, topology 'h100-8x1' has 8"):
        mc.simulate(schedule, "h100-8x1")
    with pytest.raises(TopologyError, match="there is no topology 'x100-8x1'"):
        mc.simulate(schedule, "x100-8x1")


def test_ranks_that_wait_for_ever_are_named():
    plan = HandPlan(gpu=2)
    tile = plan.tile(100, dtype="i8")
    plan.wait(plan.exchange(tile, tile, plan.peer(1), plan.peer(-1), when=plan.is_rank(0)))
    with pytest.raises(SimulationError, match="rank 0 waits for ever at its 'wait'"):
        plan.simulate(machine(link("gpu", 2)))


# -- the command --------------------------------------------------------------


def test_the_command_prints_and_writes_a_trace(tmp_path):
    arguments = ["attention", "--strategy", "ring", "--mesh", "gpu=4", "--topology", "h200-4x1"]
    printed = CliRunner().invoke(command, arguments)
    assert printed.exit_code == 0, printed.output
    for part in ("predicted", "not measured", "exposed", "gpu", "kernels", "transfers"):
        assert part in printed.output
    path = tmp_path / "trace.json"
    told = CliRunner().invoke(command, [*arguments, "--json", "--trace", str(path)])
    figures = json.loads(told.output)
    assert figures["predicted"] is True
    assert figures["time_s"] > figures["exposed_s"] >= 0
    events = json.loads(path.read_text())["traceEvents"]
    tracks = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert tracks == {"compute", "messages"}
    assert sum(e["ph"] == "X" and e["name"] == "attention_fwd" for e in events) == 16
    assert {e["name"] for e in events if e.get("cat") == "transfer"} == {
        "exchange K",
        "exchange V",
    }


def test_the_command_takes_the_layout_that_the_search_takes():
    arguments = [
        *("attention", "--strategy", "ring", "--mesh", "gpu=4", "--topology", "h200-4x1"),
        *("--mask", "causal", "--set", "sq=32768,sk=32768", "--json"),
    ]
    block = CliRunner().invoke(command, arguments)
    balanced = CliRunner().invoke(command, [*arguments, "--layout", "sq=zigzag,sk=zigzag"])
    times = [json.loads(told.output)["compute_s"] for told in (block, balanced)]
    assert 0.5 < times[1] / times[0] < 0.7  # 4 / 7 of the pairs
    told = CliRunner().invoke(command, [*arguments, "--layout", "sq"])
    assert told.exit_code != 0
    assert "expected the cuts of axes" in told.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topology", "x"], "there is no topology 'x'"),
        (["--topology", "h100-2x1"], "has 4 ranks, topology 'h100-2x1' has 2"),
        (["--topology", "l4-4x1", "--recipe", "nothing()"], "give one of"),
    ],
)
def test_the_command_says_what_is_wrong(arguments, message):
    told = CliRunner().invoke(command, ["attention", "--strategy", "ring", *arguments])
    assert told.exit_code != 0
    assert message in told.output


def test_a_trace_has_a_process_a_rank():
    schedule = mc.strategies.get("ring").schedule(mc.Mesh(gpu=3))
    trace = to_chrome(mc.simulate(schedule, "h200-4x1"))
    assert "predicted" in trace["otherData"]["times"]
    names = {e["pid"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert names == {0, 1, 2}
