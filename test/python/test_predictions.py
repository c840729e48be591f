"""Predictions beside what was measured on 2 x H200, from the preset's general curves alone.

The programs are those that were measured: by hand, in PyTorch with NCCL, and one library call
for the same work of one GPU (the floor). Nothing here is fitted to a row: kernels have one
curve a kind, links one a transport, and launches, joins and signals one figure each.

Tolerance: 13% for each row, 5% for the median. Three rows of batch 16 have 25%: their PyTorch
operators move more than the reads and writes that are counted here (a merge of five operators
was measured to take as long as the attention, 3.4 ms; its tensors pass in 1.4 ms).
"""

import statistics

import pytest
from plan_by_hand import HandPlan

MACHINE = "h200-2x1"
D = 128


def tensors(plan, shape, rows, dtype="bf16"):
    b, h, _ = shape
    return plan.tile(b, rows, h, D, dtype=dtype)


def attend(plan, shape, keys):
    """Attention of half of the queries to some keys."""
    b, h, s = shape
    q, k = tensors(plan, shape, s // 2), tensors(plan, shape, keys)
    out = [tensors(plan, shape, s // 2), plan.tile(b, h, s // 2, dtype="f32")]
    plan.launch("attention_fwd", [q, k, k], out)


def floor(shape):
    plan = HandPlan(gpu=1)
    attend(plan, shape, shape[2])
    return plan


def ring(shape):
    """Send and receive K and V, cuDNN, and a merge of five PyTorch operators."""
    plan = HandPlan(gpu=2)
    half = shape[2] // 2
    kv = tensors(plan, shape, half)
    tokens = [plan.exchange(kv, kv, plan.peer(1), plan.peer(-1)) for _ in "KV"]
    out = tensors(plan, shape, half)
    wide = tensors(plan, shape, half, "f32")
    attend(plan, shape, half)
    plan.copy(out, wide)
    plan.wait(*tokens)
    attend(plan, shape, half)
    plan.copy(out, wide)  # to float32
    plan.accumulate(wide, wide)  # the difference of both
    plan.copy(wide, wide)  # times a sigmoid
    plan.accumulate(wide, wide)  # added
    plan.copy(wide, out)  # and back
    return plan


def gather(shape):
    """All-gather K and V; slots of several batches are put in order."""
    plan = HandPlan(gpu=2)
    b, h, s = shape
    part, whole = tensors(plan, shape, s // 2), tensors(plan, shape, s)
    slots = plan.tile(2, b, s // 2, h, D)
    plan.wait(*[plan.all_gather(part, slots, b * (s // 2) * h * D * 2) for _ in "KV"])
    if b > 1:
        plan.copy(whole, whole)
        plan.copy(whole, whole)
    attend(plan, shape, s)
    return plan


def ulysses(shape):
    """Each of Q, K, V and O is packed, half of it sent, and unpacked."""
    plan = HandPlan(gpu=2)
    b, h, s = shape

    def all_to_all():
        tensor, half = tensors(plan, shape, s // 2), tensors(plan, shape, s // 4)
        plan.copy(tensor, tensor)
        plan.wait(plan.exchange(half, half, plan.peer(1), plan.peer(-1)))
        plan.copy(tensor, tensor)

    for _ in "QKV":
        all_to_all()
    # Half of the heads and all queries are as much work as all heads and half of them.
    q = plan.tile(b, s, h // 2, D)
    plan.launch("attention_fwd", [q, q, q], [q, plan.tile(b, h // 2, s, dtype="f32")])
    all_to_all()
    return plan


def by_hand(shape):
    """Pull K and V under the own half; one kernel merges."""
    plan = HandPlan(gpu=2)
    b, h, s = shape
    part = tensors(plan, shape, s // 2)
    leases = [plan.lease(plan.memory(f"argument {n}")) for n in (0, 1)]
    tokens = [plan.pull(lease, plan.peer(1), part) for lease in leases]
    attend(plan, shape, s // 2)
    plan.wait(*tokens)
    attend(plan, shape, s // 2)
    lse = plan.tile(b, h, s // 2, dtype="f32")
    plan.launch("softmax_merge", [part, lse, part, lse], [part, lse])
    for lease in leases:
        plan.close(lease)
    return plan


def product(plan, m, k, n):
    plan.launch("matmul", [plan.tile(m, k), plan.tile(k, n)], [plan.tile(m, n)])


def ag_floor(shape):
    plan = HandPlan(gpu=1)
    m, k, n = shape
    product(plan, m, k, n // 2)
    return plan


def ag_gather(shape):
    plan = HandPlan(gpu=2)
    m, k, n = shape
    plan.wait(plan.all_gather(plan.tile(m // 2, k), plan.tile(m, k), m // 2 * k * 2))
    product(plan, m, k, n // 2)
    return plan


def ag_by_hand(shape):
    plan = HandPlan(gpu=2)
    m, k, n = shape
    lease = plan.lease(plan.memory("argument 0"))
    token = plan.pull(lease, plan.peer(1), plan.tile(m // 2, k))
    product(plan, m // 2, k, n // 2)
    plan.wait(token)
    product(plan, m // 2, k, n // 2)
    plan.close(lease)
    return plan


def rs_floor(shape):
    plan = HandPlan(gpu=1)
    m, k, n = shape
    product(plan, m, k // 2, n)
    return plan


def rs_scatter(shape):
    """The product, then half of it is sent and added."""
    plan = HandPlan(gpu=2)
    m, k, n = shape
    product(plan, m, k // 2, n)
    half = plan.tile(m // 2, n)
    plan.wait(plan.exchange(half, half, plan.peer(1), plan.peer(-1)))
    plan.accumulate(half, half)
    return plan


def rs_by_hand(shape):
    """The peer's part in two chunks, each lent as soon as it exists; then the own part."""
    plan = HandPlan(gpu=2)
    m, k, n = shape
    chunk, leases, tokens = m // 4, [], []
    for number in range(2):
        product(plan, chunk, k // 2, n)
        leases.append(plan.lease(plan.memory(f"argument {number}")))
        tokens.append(plan.pull(leases[-1], plan.peer(1), plan.tile(chunk, n)))
    for token in tokens:
        plan.wait(token)
        product(plan, chunk, k // 2, n)
    for lease in leases:
        plan.close(lease)
    return plan


# In ms; where it was measured twice, both. Short calls moved by up to 24% between runs.
SHORT, LONG, DOUBLE = (1, 32, 4096), (1, 32, 16384), (1, 32, 65536)
BATCH, HUGE = (16, 32, 4096), (1, 32, 262144)
WIDE, TALL, SMALL = (8192, 8192, 28672), (16384, 8192, 8192), (4096, 4096, 14336)
MEASURED = [
    (floor, SHORT, (0.276, 0.222)),
    (floor, LONG, (3.37, 3.53)),
    (floor, DOUBLE, (59.2, 57.1)),
    (floor, BATCH, (3.41, 3.62)),
    (floor, HUGE, (1007, 992)),
    (ring, LONG, (4.07,)),
    (ring, DOUBLE, (60.5,)),
    (ring, BATCH, (6.95,)),
    (gather, LONG, (4.27,)),
    (gather, DOUBLE, (61.3,)),
    (gather, BATCH, (6.92,)),
    (ulysses, LONG, (4.65,)),
    (ulysses, DOUBLE, (63.3,)),
    (ulysses, BATCH, (8.04,)),
    (by_hand, SHORT, (0.269, 0.265)),
    (by_hand, LONG, (3.57, 3.65)),
    (by_hand, DOUBLE, (59.5, 57.7)),
    (by_hand, BATCH, (3.94, 3.96)),
    (by_hand, HUGE, (970, 950)),
    (ag_floor, WIDE, (2.49, 2.69)),
    (ag_floor, TALL, (1.58, 1.60)),
    (ag_floor, SMALL, (0.418, 0.347)),
    (ag_gather, WIDE, (2.80,)),
    (ag_gather, TALL, (2.09,)),
    (ag_gather, SMALL, (0.448,)),
    (ag_by_hand, WIDE, (2.71, 2.73)),
    (ag_by_hand, TALL, (1.48, 1.58)),
    (ag_by_hand, SMALL, (0.384, 0.393)),
    (rs_floor, WIDE, (2.49, 2.71)),
    (rs_floor, TALL, (1.50, 1.58)),
    (rs_floor, SMALL, (0.385, 0.339)),
    (rs_scatter, WIDE, (3.77,)),
    (rs_scatter, TALL, (2.21,)),
    (rs_scatter, SMALL, (0.704,)),
    (rs_by_hand, WIDE, (2.76, 2.77)),
    (rs_by_hand, TALL, (1.61, 1.59)),
    (rs_by_hand, SMALL, (0.519, 0.427)),
]


def off(program, shape, measured):
    """How far the prediction is from the measurement, or from their mean."""
    predicted = 1e3 * program(shape).simulate(MACHINE).time_s
    return predicted / statistics.mean(measured) - 1


def tolerance(program, shape):
    return 0.25 if shape == BATCH and program in (ring, gather, ulysses) else 0.13


@pytest.mark.parametrize(
    ("program", "shape", "measured"),
    MEASURED,
    ids=[f"{program.__name__}-{'x'.join(map(str, shape))}" for program, shape, _ in MEASURED],
)
def test_a_prediction_is_near_what_was_measured(program, shape, measured):
    assert abs(off(program, shape, measured)) < tolerance(program, shape)


def test_half_of_the_predictions_are_within_five_percent():
    assert statistics.median(abs(off(*row)) for row in MEASURED) < 0.05


@pytest.mark.parametrize("shape", [LONG, DOUBLE, BATCH, WIDE, TALL, SMALL], ids=str)
def test_the_first_choice_is_the_fastest_that_was_measured(shape):
    """Among the ways to do the whole operator; the floor is no way."""
    ways = {
        program: statistics.mean(measured)
        for program, at, measured in MEASURED
        if at == shape and program not in (floor, ag_floor, rs_floor)
    }
    for kind in (
        (ring, gather, ulysses, by_hand),
        (ag_gather, ag_by_hand),
        (rs_scatter, rs_by_hand),
    ):
        known = {program: time for program, time in ways.items() if program in kind}
        if not known:
            continue
        first = min(known, key=lambda program: program(shape).simulate(MACHINE).time_s)
        assert known[first] <= 1.05 * min(known.values())
