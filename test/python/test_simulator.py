"""The simulator: known answers on small machines, contention and overlap."""

import pytest
from machines_by_hand import GB, MB, link, machine, matmul
from mercury.topology import KernelCurve
from plan_by_hand import HandPlan

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


def test_the_border_of_a_mask_costs_keys_of_the_rows_that_it_cuts():
    """As many keys of a row, whatever a mask leaves it: less of the work of longer rows."""
    edge = 2
    curve = KernelCurve(points=((1, 1e9),), masked=0.5, masked_keys=edge)

    def pairs(queries, keys, mask, first_query=0):
        plan = HandPlan(gpu=1)
        q, k = plan.tile(1, queries, 2, 4), plan.tile(1, keys, 2, 4)
        out = [plan.tile(1, queries, 2, 4), plan.tile(1, 2, queries, dtype="f32")]
        plan.launch("attention_fwd", [q, k, k], out, mask=mask, at=(first_query, 0))
        seconds = plan.simulate(machine(link("gpu", 1), attention_fwd=curve)).time_s
        return 1e9 * seconds / (2 * 2 * (4 + 4))

    # Of 8 rows the last one sees all keys; the pairs are 8 * 9 / 2.
    assert pairs(8, 8, "causal") == pytest.approx(36 + 7 * edge)
    # Twice the rows, four times the pairs, twice the border.
    assert pairs(16, 16, "causal") == pytest.approx(136 + 15 * edge)
    # All keys are behind: no border. All but a corner: only its rows.
    assert pairs(8, 8, "causal", first_query=8) == pytest.approx(64)
    assert pairs(8, 8, "causal", first_query=3) == pytest.approx(64 - 10 + 4 * edge)
    # Never more than all of them: the mask hides 1, its border would cost 2.
    assert pairs(2, 2, "causal") == pytest.approx(4)
    assert pairs(8, 8, "full") == pytest.approx(64)


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
