"""What a run on the embedded backend may be told, and how it ends."""

import os
import signal
import threading
import time

import mercury as mc
import numpy as np
import pytest
from mercury.runtime import SimOptions


def ring_plan(ranks=3):
    program = mc.programs.matmul(m=9, n=4, depth=5, dtype="f32")
    plan = mc.strategies.get("ag-gemm-shifted").schedule(mc.Mesh(gpu=ranks), program).compile()
    return plan, plan.scatter(A=np.ones((9, 5)), B=np.ones((5, 4)))


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("seed", 1 << 64, r"seed must be from 0 to 2\^64 - 1, got 18446744073709551616"),
        ("seed", -1, r"seed must be from 0 to 2\^64 - 1, got -1"),
        ("deadline_ms", 1 << 63, r"deadline_ms must be from 0 to 2\^63 - 1"),
        ("max_delay_us", -5, r"max_delay_us must be from 0"),
        ("fail_rank", -2, r"fail_rank must be from -1 to 2\^63 - 1, got -2"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(option, value, text):
    with pytest.raises(mc.RunError, match=text):
        SimOptions(**{option: value})


def test_the_largest_seed_runs():
    plan, shards = ring_plan()
    result = plan.gather(plan.run(shards, SimOptions(seed=(1 << 64) - 1)))
    np.testing.assert_array_equal(result, np.full((9, 4), 5.0))


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_delayed_message_is_not_a_late_peer(seed):
    plan, shards = ring_plan()
    options = SimOptions(seed=seed, deadline_ms=20, max_delay_us=150_000)
    result = plan.gather(plan.run(shards, options))
    np.testing.assert_array_equal(result, np.full((9, 4), 5.0))


def test_ctrl_c_ends_a_run():
    # A shell's background jobs ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    plan, shards = ring_plan(ranks=5)
    # Each message may take an hour.
    options = SimOptions(seed=3, max_delay_us=3_600_000_000)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        plan.run(shards, options)
    assert time.monotonic() - start < 5
    timer.join()
    # The plan is as good as before.
    np.testing.assert_array_equal(plan.gather(plan.run(shards)), np.full((9, 4), 5.0))


def test_a_run_outside_the_main_thread_ends_too():
    plan, shards = ring_plan()
    found = []
    thread = threading.Thread(target=lambda: found.append(plan.gather(plan.run(shards))))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], np.full((9, 4), 5.0))


@pytest.mark.parametrize(
    "array",
    [
        np.ones((9, 5), np.complex128),
        np.full((9, 5), None, object),
        np.full((9, 5), "1"),
        np.zeros((9, 5), "datetime64[s]"),
    ],
)
def test_what_is_no_real_number_is_not_scattered(array):
    plan, _ = ring_plan()
    with pytest.raises(mc.RunError, match="input 'A' must be an array of real numbers, got"):
        plan.scatter(A=array, B=np.ones((5, 4)))


def test_integers_and_lists_are_scattered():
    plan, shards = ring_plan()
    given = plan.scatter(A=np.ones((9, 5), np.int8), B=[[True] * 4] * 5)
    np.testing.assert_array_equal(plan.gather(plan.run(given)), plan.gather(plan.run(shards)))
