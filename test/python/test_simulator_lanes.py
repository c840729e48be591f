"""The simulator: kernels in several lanes of one device."""

import pytest
from machines_by_hand import GB, busy_tile, link, machine
from mercury.topology import KernelCurve
from plan_by_hand import HandPlan

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
