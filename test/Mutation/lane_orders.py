"""Other orders of a plan's ops that its lanes allow.

What lanes leave unordered may run in any order on a device, but the embedded ranks run a plan
in the order of its text. Here the text is put into another order, by rules of its own and not
those of the plan checker, so that a race shows as another result.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Any

from mercury._mlir import ir
from plan_text import COLLECTIVES, EVENTS, STARTS, Text

__all__ = ["LANES", "reorder"]

LANES = ("commir.lane.use", "commir.lane.order")
# What is put into a queue, of messages or of peers' signals, in the order of the text.
QUEUED = (*STARTS, *COLLECTIVES)


def reorder(text: Text, sign: int) -> None:
    """Run the lanes of the lowest number as late as they may be, or with -1, the highest."""
    body = text.function.regions[0].blocks[0]
    ops = [op.operation for op in body.operations][:-1]
    number = {op: n for n, op in enumerate(ops)}
    lane, queued = 0, -1
    lanes: dict[int, int] = {}
    tails: dict[int, set[int]] = {0: set()}
    needs: dict[int, set[int]] = {}

    def tail(of: int) -> set[int]:
        return tails.setdefault(of, set(tails[0]))

    for n, op in enumerate(ops):
        needs[n] = producers(op, number)
        if op.name == "commir.lane.use":
            lane = op.attributes["lane"].value
            tail(lane)
        elif op.name == "commir.lane.order":
            earlier, later = (op.attributes[key].value for key in ("earlier", "later"))
            tail(later).update(tail(earlier))
        elif op.name in EVENTS or len(op.regions) or op.name == "memref.store":
            needs[n] |= tail(lane)
            lanes[n] = lane
            if op.name not in EVENTS or op.name in QUEUED:
                needs[n] |= {queued} - {-1}
                queued = n
            # A start, or the opening of a lease, is after what the lane holds, not in it.
            if op.name not in STARTS and op.name != "commir.lease.open":
                tails[lane] = {n}
    place(ops, needs, {n: sign * of for n, of in lanes.items()}, body.operations[len(ops)])


def producers(op: Any, number: dict[Any, int]) -> set[int]:
    """Give the numbers of the ops that make what an op, with all inside it, uses."""
    found = {
        number[value.owner.operation]
        for value in op.operands
        if not isinstance(value.owner, ir.Block) and value.owner.operation in number
    }
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                found |= producers(inner.operation, number)
    return found


def place(ops: list[Any], needs: dict[int, set[int]], late: dict[int, int], end: Any) -> None:
    """Move the ops before another, each after what it needs; of those ready the latest last."""
    users: dict[int, list[int]] = defaultdict(list)
    left = {n: len(before) for n, before in needs.items()}
    for n, before in needs.items():
        for need in before:
            users[need].append(n)
    ready = [(-late.get(n, 99), n) for n, count in left.items() if not count]
    heapq.heapify(ready)
    while ready:
        _, n = heapq.heappop(ready)
        ops[n].move_before(end)
        for user in users[n]:
            left[user] -= 1
            if not left[user]:
                heapq.heappush(ready, (-late.get(user, 99), user))
