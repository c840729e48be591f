"""The simulator: known answers on small machines, contention, overlap, and what is refused."""

import json
import subprocess
import sys
from dataclasses import replace

import mercury as mc
import pytest
from click.testing import CliRunner
from mercury.cli.simulate import simulate as command
from mercury.runtime.trial import trial
from mercury.simulator import SimulationError, to_chrome
from mercury.topology import Curve, KernelCurve, Link, Machine, Topology, TopologyError
from plan_by_hand import HandPlan

MB, GB = 10**6, 10**9
SMALL = {
    "matmul": {"m": 18, "n": 18, "depth": 18},
    "attention": {"h": 6, "sq": 24, "sk": 24, "d": 4},
    "decode_attention": {"h": 6, "sk": 24, "d": 4},
}


def link(name, size, *, latency=0.0, slowdown=0.0, rate=10 * GB, **settings):
    """A link whose messages take a second for `rate` bytes."""
    curve = Curve(latency=latency, points=((1, rate),), slowdown=slowdown)
    pulled = replace(curve, slowdown=0.0)
    transports = {"p2p": curve, "collective": curve, "pull": pulled}
    return Link(name=name, size=size, transports=transports, **settings)


def machine(*links, launch=0.0, join=0.0, message_lanes="one", moves=None, **kernels):
    """Kernels do a flop in a nanosecond, memory a byte."""
    curves = {"*": KernelCurve(points=((1, 1e9),)), **kernels}
    rank = Machine(
        name="test",
        memory=GB,
        copy_rate=1e9,
        launch=launch,
        kernels=curves,
        join=join,
        message_lanes=message_lanes,
        moves=moves or {},
    )
    return Topology(name="test", machine=rank, links=links)


def busy_tile(plan, seconds):
    """A tile whose fill takes so long."""
    return plan.tile(round(seconds * 1e9), dtype="i8") if seconds else None


def matmul(plan, seconds):
    """Launch a product of so many seconds: 2 m k n flops of a nanosecond."""
    k = round(seconds * 1e9 / 2)
    plan.launch("matmul", [plan.tile(1, k), plan.tile(k, 1)], [plan.tile(1, 1)])


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


# -- known answers ------------------------------------------------------------


def test_kernels_follow_one_another_with_gaps():
    plan = HandPlan(gpu=1)
    matmul(plan, 0.25)
    matmul(plan, 0.5)
    plan.copy(plan.tile(1000, dtype="f32"), plan.tile(1000, dtype="bf16"))
    found = plan.simulate(machine(link("gpu", 1), launch=0.125))
    assert found.time_s == pytest.approx(3 * 0.125 + 0.25 + 0.5 + 6000e-9)
    assert found.exposed_s == 0
    kernels = [span for span in found.spans if span.kind == "kernel"]
    assert [(s.start_s, s.end_s) for s in kernels] == [(0.125, 0.375), (0.5, 1.0)]
    assert [s.bytes for s in found.spans if s.kind == "copy"] == [6000]


def test_a_merge_costs_its_bytes_and_overwriting_only_what_it_widens():
    """The partial result is read in the operands' type, the result read and written."""

    def run(overwrite, dtype="f32", **figures):
        plan = HandPlan(gpu=1)
        q, k = plan.tile(1, 8, 2, 4), plan.tile(1, 16, 2, 4)
        out = [plan.tile(1, 8, 2, 4, dtype=dtype), plan.tile(1, 2, 8, dtype="f32")]
        plan.launch("attention_fwd", [q, k, k], out, overwrite)
        return plan.simulate(machine(link("gpu", 1), **figures)).time_s

    flops = 2 * 2 * 8 * 16 * (4 + 4)
    merged = (8 * 2 * 4 + 2 * 8) * (2 + 4 + 4)
    assert run(overwrite=True, dtype="bf16") == pytest.approx(flops * 1e-9)
    # A library writes the operands' type; the log-sum-exp is wide already.
    assert run(overwrite=True) == pytest.approx((flops + 8 * 2 * 4 * (2 + 4)) * 1e-9)
    assert run(overwrite=False) == pytest.approx((flops + merged) * 1e-9)
    half = {"merge_attention_fwd": ((1.0, 0.5e9),), "copy": ((1.0, 0.25e9),)}
    assert run(overwrite=False, moves=half) == pytest.approx((flops + 2 * merged) * 1e-9)


def test_each_kind_of_move_has_a_curve_by_size():
    """Between points the rate goes by the log of the size, beyond the last it stays."""
    moves = {"copy": ((100.0, 1e9), (10_000.0, 3e9)), "fill": ((1.0, 5e8),)}

    def run(elements):
        plan = HandPlan(gpu=1)
        plan.copy(plan.tile(elements, dtype="i8"), plan.tile(elements, dtype="i8"))
        return plan.simulate(machine(link("gpu", 1), moves=moves)).time_s

    assert run(50) == pytest.approx(100 / 1e9)
    assert run(500) == pytest.approx(1000 / 2e9)
    assert run(50_000) == pytest.approx(100_000 / 3e9)


def test_many_launches_are_no_faster_than_one_of_all_their_work():
    """Where the rate falls with the work, the clock falls under load; else launches matter."""

    def run(points, launches):
        plan = HandPlan(gpu=1)
        for _ in range(launches):
            matmul(plan, 1.0)
        curve = KernelCurve(points=points)
        return plan.simulate(machine(link("gpu", 1), matmul=curve)).time_s

    falls, rises = ((1e9, 1e9), (1e12, 0.25e9)), ((1e9, 1e9), (1e12, 4e9))
    assert run(falls, 1) == pytest.approx(1)
    assert run(falls, 10) == pytest.approx(10 / 0.75)
    assert run(rises, 10) == pytest.approx(10)


def test_a_message_takes_the_time_of_its_curve_and_crosses_with_the_answer():
    plan = HandPlan(gpu=2)
    tile = plan.tile(100 * MB, dtype="i8")
    plan.wait(plan.exchange(tile, tile, plan.peer(1), plan.peer(-1)))
    found = plan.simulate(machine(link("gpu", 2, latency=0.001), join=0.5))
    assert found.time_s == pytest.approx(0.01 + 0.5)
    assert found.bytes_by_level == {"gpu": 200 * MB}
    assert found.link_seconds == {"gpu": pytest.approx(0.01)}
    transfers = [span for span in found.spans if span.kind == "transfer"]
    assert [(s.rank, s.lane, s.bytes) for s in transfers] == [
        (0, "messages", 100 * MB),
        (1, "messages", 100 * MB),
    ]


def test_a_collective_relays_each_byte_once():
    plan = HandPlan(node=2, gpu=4)
    tile, whole = plan.tile(10 * MB, dtype="i8"), plan.tile(4, 10 * MB, dtype="i8")
    plan.wait(plan.all_gather(tile, whole, 10 * MB))
    found = plan.simulate(machine(link("node", 2), link("gpu", 4)))
    assert found.time_s == pytest.approx(3 * 10 * MB / (10 * GB))
    assert found.bytes_by_level == {"node": 0, "gpu": 2 * 4 * 3 * 10 * MB}
    # A second one of the same groups follows the first.
    plan.wait(plan.all_gather(tile, whole, 10 * MB), plan.all_gather(tile, whole, 10 * MB))
    twice = plan.simulate(machine(link("node", 2), link("gpu", 4)))
    assert twice.time_s == pytest.approx(3 * found.time_s)


def test_a_broadcast_passes_every_link_whole():
    """Into each node once, by all its ranks' ports together; over a bus, for each of them."""

    def run(links, levels=None):
        plan = HandPlan(node=3, gpu=4)
        tile = plan.tile(120 * MB, dtype="i8")
        plan.wait(plan.broadcast(tile, 2, levels))
        return plan.simulate(machine(*links))

    fast = link("gpu", 4)
    found = run([link("node", 3, rate=GB), fast])
    assert found.time_s == pytest.approx(0.12 / 10)
    assert found.bytes_by_level == {"node": 0, "gpu": 3 * 3 * 120 * MB}
    both = ["node", "gpu"]
    found = run([link("node", 3, rate=GB), fast], both)
    assert found.time_s == pytest.approx(0.12 / 4)
    assert found.bytes_by_level == {"node": 8 * 120 * MB, "gpu": 3 * 120 * MB}
    bus = link("node", 3, rate=GB, domain="bus")
    assert run([bus, fast], both).time_s == pytest.approx(2 * 0.12)
    uplink = link("node", 3, rate=GB, domain="uplink")
    assert run([uplink, fast], both).time_s == pytest.approx(0.12)


def test_a_pull_waits_until_the_owner_opens_and_the_owner_until_it_was_read():
    """Rank 1 opens after a second of work; rank 0 pulls, both close."""
    plan = HandPlan(gpu=2)
    plan.lines.append(f"scf.if {plan.is_rank(1)} {{")
    outer, plan.lines = plan.lines, []
    matmul(plan, 1.0)
    outer += [*plan.lines, "}"]
    plan.lines = outer
    lease = plan.lease(plan.memory("argument 0"))
    tile = plan.tile(100 * MB, dtype="i8")
    token = plan.pull(lease, plan.peer(1), tile, when=plan.is_rank(0))
    plan.wait(token)
    plan.close(lease)
    found = plan.simulate(machine(link("gpu", 2, signal=0.25)))
    (pull,) = [span for span in found.spans if span.kind == "transfer"]
    assert (pull.rank, pull.lane, pull.bytes) == (0, "pulls from 1", 100 * MB)
    assert (pull.start_s, pull.end_s) == (pytest.approx(1.25), pytest.approx(1.26))
    # The owner hears of it by another signal.
    assert found.time_s == pytest.approx(1.26 + 0.25)


# -- contention ---------------------------------------------------------------


def two_pulls(both_from_one, **settings):
    """Ranks 0 and 1 pull; from rank 2 both, or each from the other."""
    plan = HandPlan(gpu=3)
    lease = plan.lease(plan.memory("argument 0"))
    for rank, peer in ((0, 2 if both_from_one else 1), (1, 2 if both_from_one else 0)):
        tile = plan.tile(100 * MB, dtype="i8")
        token = plan.pull(lease, plan.constant(peer), tile, when=plan.is_rank(rank))
        plan.wait(token)
    plan.close(lease)
    return plan.simulate(machine(link("gpu", 3, **settings)))


def test_two_transfers_on_one_link_take_twice_the_time():
    assert two_pulls(both_from_one=True).time_s == pytest.approx(0.02)


def test_opposite_directions_do_not_share_unless_the_link_is_half_duplex():
    assert two_pulls(both_from_one=False).time_s == pytest.approx(0.01)
    assert two_pulls(both_from_one=False, duplex=False).time_s == pytest.approx(0.02)
    assert two_pulls(both_from_one=False, domain="bus").time_s == pytest.approx(0.02)


def test_what_came_later_shares_only_the_rest():
    """Rank 1's pull starts when half of rank 0's is there: 5 + 10 and 5 ms more."""
    plan = HandPlan(gpu=3)
    lease = plan.lease(plan.memory("argument 0"))
    tile = plan.tile(100 * MB, dtype="i8")
    first = plan.pull(lease, plan.constant(2), tile, when=plan.is_rank(0))
    matmul(plan, 0.005)
    second = plan.pull(lease, plan.constant(2), tile, when=plan.is_rank(1))
    plan.wait(first, second)
    plan.close(lease)
    found = plan.simulate(machine(link("gpu", 3)))
    ends = {span.rank: span.end_s for span in found.spans if span.kind == "transfer"}
    assert ends == {0: pytest.approx(0.015), 1: pytest.approx(0.02)}


def test_ranks_of_a_node_share_its_uplink():
    """Each of 4 ranks sends to the other node."""

    def run(domain):
        plan = HandPlan(node=2, gpu=4)
        plan.level, plan.size = "node", 2
        plan.rank = plan.say('commir.group_rank "node"')
        tile = plan.tile(100 * MB, dtype="i8")
        plan.wait(plan.exchange(tile, tile, plan.peer(1), plan.peer(-1)))
        return plan.simulate(machine(link("node", 2, domain=domain), link("gpu", 4)))

    assert run("port").time_s == pytest.approx(0.01)
    assert run("uplink").time_s == pytest.approx(0.04)
    assert run("uplink").bytes_by_level == {"node": 800 * MB, "gpu": 0}


# -- overlap ------------------------------------------------------------------


def overlapped(transfer, work, slowdown=0.25):
    """A transfer of 40 ms, and a kernel that is there meanwhile."""
    plan = HandPlan(gpu=2)
    tile = plan.tile(400 * MB, dtype="i8")
    if transfer == "pull":
        lease = plan.lease(plan.memory("argument 0"))
        token = plan.pull(lease, plan.peer(1), tile)
    else:
        token = plan.exchange(tile, tile, plan.peer(1), plan.peer(-1))
    matmul(plan, work)
    plan.wait(token)
    return plan.simulate(machine(link("gpu", 2, slowdown=slowdown)))


def test_a_copy_engine_hides_under_a_kernel():
    hidden = overlapped("pull", 0.1)
    assert hidden.time_s == pytest.approx(0.1)
    assert hidden.exposed_s == pytest.approx(0)
    assert overlapped("pull", 0.01).time_s == pytest.approx(0.04)


def test_a_message_slows_the_kernel_beside_it_for_as_long_as_it_lasts():
    """In 40 ms three quarters of 40 ms are done; the rest at full speed."""
    slowed = overlapped("exchange", 0.1)
    assert slowed.time_s == pytest.approx(0.04 + (0.1 - 0.03))
    assert slowed.exposed_s == pytest.approx(0.01)
    assert overlapped("exchange", 0.03).time_s == pytest.approx(0.04)
    assert overlapped("exchange", 0.1, slowdown=0.0).time_s == pytest.approx(0.1)


def test_messages_of_two_groups_follow_one_another_unless_each_has_a_lane():
    def run(lanes):
        plan = HandPlan(node=2, gpu=2)
        tile = plan.tile(100 * MB, dtype="i8")
        tokens = []
        for level in ("node", "gpu"):
            plan.level, plan.size = level, 2
            plan.rank = plan.say(f'commir.group_rank "{level}"')
            tokens.append(plan.exchange(tile, tile, plan.peer(1), plan.peer(-1)))
        plan.wait(*tokens)
        return plan.simulate(machine(link("node", 2), link("gpu", 2), message_lanes=lanes))

    assert run("one").time_s == pytest.approx(0.02)
    assert run("group").time_s == pytest.approx(0.01)
    assert {span.lane for span in run("one").spans} == {"compute", "messages"}
    lanes = {span.lane for span in run("group").spans if span.kind == "transfer"}
    assert lanes == {"messages node", "messages gpu"}


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


# -- lanes of kernels ---------------------------------------------------------

# Two blocks at a time: a product of five rows takes three waves, the last half full.
WAVES = KernelCurve(points=((1, 2e9),), block=(1, 0), units=2)


def rows(plan, number, k=5 * 10**7):
    """Launch a product of so many blocks, each of 0.1 s."""
    plan.launch("matmul", [plan.tile(number, k), plan.tile(k, 1)], [plan.tile(number, 1)])


def lane(plan, number):
    plan.lines.append(f"commir.lane.use {number}")


def in_lanes(first, second, between=lambda plan: None, **figures):
    """Simulate a launch in each of two lanes, and one of two blocks after both."""
    plan = HandPlan(gpu=1)
    lane(plan, 1)
    lane(plan, 0)
    rows(plan, first)
    lane(plan, 1)
    between(plan)
    rows(plan, second)
    lane(plan, 0)
    plan.lines.append("commir.lane.order 1 before 0")
    rows(plan, 2)
    return plan.simulate(machine(link("gpu", 1), matmul=WAVES, **figures))


@pytest.mark.parametrize(
    ("first", "second", "waves"),
    [
        (4, 4, 4),  # full waves: no room, and nothing is won
        (5, 5, 5),  # ten blocks in five waves, and not in three and three
        (5, 4, 5),  # a gap is filled, and leaves one at the end
        (1, 1, 1),
        (5, 1, 3),  # all of it in the gap
        (2, 2, 2),
    ],
)
def test_a_kernel_of_another_lane_fills_the_last_wave(first, second, waves):
    found = in_lanes(first, second)
    assert found.time_s == pytest.approx(0.1 * (waves + 1))
    lanes = {span.lane for span in found.spans}
    assert lanes == {"compute", "compute 1"}


def test_lanes_do_no_more_at_a_time_than_one_device():
    """Merges and copies have all of the memory's speed: two take the sum of their times."""
    plan = HandPlan(gpu=1)
    lane(plan, 1)
    plan.fill(busy_tile(plan, 0.5))
    lane(plan, 0)
    plan.fill(busy_tile(plan, 0.25))
    plan.lines.append("commir.lane.order 1 before 0")
    assert plan.simulate(machine(link("gpu", 1))).time_s == pytest.approx(0.75)


def test_what_a_launch_costs_beside_its_waves_is_not_hidden():
    assert in_lanes(4, 4, launch=0.05).time_s == pytest.approx(3 * 0.05 + 0.4 + 0.1)
    # Half of the gap of the first one's last wave goes to the launch of the second.
    assert in_lanes(5, 4, launch=0.025).time_s == pytest.approx(2 * 0.025 + 0.5 + 0.1)


def test_a_wait_holds_up_its_own_lane_only():
    """The second lane waits for a transfer of 0.35 s, which the first one does not need."""
    plan = HandPlan(gpu=2)
    tile = plan.tile(round(0.35 * GB), dtype="i8")
    token = plan.exchange(tile, tile, plan.peer(1), plan.peer(1))
    lane(plan, 1)
    plan.wait(token)
    rows(plan, 1)
    lane(plan, 0)
    rows(plan, 4)
    plan.lines.append("commir.lane.order 1 before 0")
    found = plan.simulate(machine(link("gpu", 2, rate=GB), matmul=WAVES))
    assert found.time_s == pytest.approx(0.45)
    first = next(span for span in found.spans if span.kind == "kernel" and span.rank == 0)
    assert (first.lane, first.end_s) == ("compute", pytest.approx(0.2))


def test_transfers_keep_the_order_of_the_text_whatever_lane_starts_them():
    """The message of lane 0 is first in the text, and is sent before that of lane 1."""
    plan = HandPlan(gpu=2)
    tile = plan.tile(round(0.1 * GB), dtype="i8")
    lane(plan, 1)
    lane(plan, 0)
    rows(plan, 4)
    late = plan.exchange(tile, tile, plan.peer(1), plan.peer(1))
    lane(plan, 1)
    early = plan.exchange(tile, tile, plan.peer(1), plan.peer(1))
    plan.wait(early)
    lane(plan, 0)
    plan.wait(late)
    plan.lines.append("commir.lane.order 1 before 0")
    found = plan.simulate(machine(link("gpu", 2, rate=GB), matmul=WAVES))
    assert found.time_s == pytest.approx(0.2 + 2 * 0.1)


def test_a_message_slows_the_kernels_of_all_lanes():
    plan = HandPlan(gpu=2)
    tile = plan.tile(10 * GB, dtype="i8")
    token = plan.exchange(tile, tile, plan.peer(1), plan.peer(1))
    lane(plan, 1)
    rows(plan, 4)
    lane(plan, 0)
    rows(plan, 4)
    plan.lines.append("commir.lane.order 1 before 0")
    plan.wait(token)
    found = plan.simulate(machine(link("gpu", 2, rate=GB, slowdown=0.5), matmul=WAVES))
    ends = sorted(span.end_s for span in found.spans if span.kind == "kernel")
    assert ends[-1] == pytest.approx(0.8)
