"""Ways to break a lowered plan: each operator, at every site where it applies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from mercury._mlir import ir
from plan_text import (
    EVENTS,
    STARTS,
    TOGETHER,
    Mutation,
    Text,
    after,
    following,
    preceding,
)

__all__ = ["OPERATORS"]

# As commir.memory numbers the arenas.
LOCAL, SYMMETRIC = 0, 1

NUMBERS = (
    "arith.constant",
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.remui",
    "arith.divui",
    "arith.ceildivui",
    "commir.group_rank",
)


def drop_wait(text: Text) -> Iterator[Mutation]:
    for wait in text.all("commir.wait"):
        yield Mutation("without {}", wait.erase, (wait,))


def delay_wait(text: Text) -> Iterator[Mutation]:
    for wait in text.all("commir.wait"):
        # scf loops count: what they hold happens before the wait then.
        later = [op for op in following(wait) if op.name in (*EVENTS, "scf.for", "scf.if")]
        for op in later[:1] + later[-1:] if len(later) > 1 else later:
            yield Mutation(
                f"{{}} after {op.name}", lambda w=wait, o=op: w.move_after(o), (wait,)
            )


def drop_signal(text: Text) -> Iterator[Mutation]:
    for close in text.all("commir.lease.close"):
        yield Mutation("without lease.close", close.erase)


def move_signal(text: Text) -> Iterator[Mutation]:
    for close in text.all("commir.lease.close"):
        lease = close.operands[0].owner.operation
        yield Mutation("lease.close at once", lambda c=close, o=lease: c.move_after(o))
    for open_ in text.all("commir.lease.open"):
        memory = open_.operands[0].owner.operation
        yield Mutation("lease.open at once", lambda o=open_, m=memory: o.move_after(m))


def open_together(text: Text, *names: str) -> Iterator[tuple[Any, Any]]:
    """Give pairs of starts, one after the other, with no wait for the first between them."""
    starts = text.all(*names)
    for one, other in itertools.pairwise(starts):
        if one.block != other.block:
            continue
        ops = [op.operation for op in one.block.operations]
        between = ops[ops.index(one) : ops.index(other)]
        if not any(use.owner.operation in between for use in one.results[0].uses):
            yield one, other


def swap_sends(text: Text) -> Iterator[Mutation]:
    for one, other in open_together(text, "commir.exchange.start"):

        def swap(a: Any = one, b: Any = other) -> None:
            a.move_before(b)
            a.operands[0], b.operands[0] = b.operands[0], a.operands[0]

        yield Mutation("sources of two sends swapped", swap)
        yield Mutation("order of two sends swapped", lambda a=one, b=other: a.move_after(b))


def dominates(value: Any, op: Any) -> bool:
    """Whether a value is there before an op; block arguments always are, here."""
    if isinstance(value.owner, ir.Block):
        return True
    owner = value.owner.operation
    if owner.block != op.block:
        return True
    ops = [each.operation for each in op.block.operations]
    return ops.index(owner) < ops.index(op.operation)


def wrong_peer(text: Text) -> Iterator[Mutation]:
    for start in text.all("commir.exchange.start"):
        for at, name in ((1, "to"), (3, "from")):
            for other, what in ((start.operands[4 - at], "the other peer"), (None, "rank 0")):

                def change(s: Any = start, i: int = at, value: Any = other) -> None:
                    s.operands[i] = value or text.number(0, ir.InsertionPoint(s))

                if other is None or other != start.operands[at]:
                    yield Mutation(f"{name} {what}", change)
    for pull in text.all("commir.pull.start"):
        peer = pull.operands[3]

        def next_peer(value: Any = peer) -> None:
            text.add(value, 1)

        yield Mutation("pull from the next peer", next_peer)
    for start in text.all("commir.broadcast.start"):

        def from_first(s: Any = start) -> None:
            s.operands[2] = text.number(0, ir.InsertionPoint(s))

        def next_root(s: Any = start) -> None:
            at = ir.InsertionPoint(s)
            one = text.number(1, at)
            more = text.create("arith.addi", [s.operands[2], one], [text.index], at)
            s.operands[2] = more.result

        yield Mutation("broadcast of rank 0", from_first)
        yield Mutation("broadcast of the next rank", next_root)


def off_by_one(text: Text) -> Iterator[Mutation]:
    for op in text.all(*NUMBERS):
        value = op.results[0]
        if value.type != text.index or not list(value.uses):
            continue
        for more in (1, -1):
            yield Mutation(f"{{}} and {more}", lambda v=value, m=more: text.add(v, m), (value,))
    for loop in text.all("scf.for"):
        value = loop.regions[0].blocks[0].arguments[0]
        if not list(value.uses):
            continue
        for more in (1, -1):
            yield Mutation(f"step and {more}", lambda v=value, m=more: text.add(v, m))


def flip(text: Text) -> Iterator[Mutation]:
    for op in text.all("arith.addi", "arith.subi"):
        other = {"arith.addi": "arith.subi", "arith.subi": "arith.addi"}[op.name]

        def change(o: Any = op, name: str = other) -> None:
            made = text.create(name, list(o.operands), [text.index], ir.InsertionPoint(o))
            o.results[0].replace_all_uses_with(made.result)

        if op.results[0].type == text.index:
            yield Mutation(f"{op.name} to {other}", change)
    for op in text.all("arith.subi"):
        if op.operands[0] == op.operands[1]:
            continue

        def turn(o: Any = op) -> None:
            o.operands[0], o.operands[1] = o.operands[1], o.operands[0]

        yield Mutation("operands of subi swapped", turn)
    for start in text.all("commir.exchange.start"):
        if start.operands[1] == start.operands[3]:
            continue

        def reverse(s: Any = start) -> None:
            s.operands[1], s.operands[3] = s.operands[3], s.operands[1]

        yield Mutation("direction of an exchange", reverse)


def shorten(text: Text) -> Iterator[Mutation]:
    for view in text.all("memref.view"):
        for at in range(2, len(view.operands)):

            def change(v: Any = view, i: int = at) -> None:
                one = text.number(1, ir.InsertionPoint(v))
                less = text.create(
                    "arith.subi", [v.operands[i], one], [text.index], ir.InsertionPoint(v)
                )
                v.operands[i] = less.result

            yield Mutation(f"size {at - 2} of a view less 1", change)
    for kind in ("local", "symmetric"):
        size = arena_bytes(text, kind)
        if size:
            yield Mutation(
                f"{kind} arena less a line",
                lambda k=kind, n=size: set_arena_bytes(text, k, n - 64),
            )


def arena_bytes(text: Text, kind: str) -> int:
    name = f"commir.{kind}_bytes"
    attributes = text.function.attributes
    return attributes[name].value if name in attributes else 0


def set_arena_bytes(text: Text, kind: str, size: int) -> None:
    number = ir.IntegerType.get_signless(64, text.module.context)
    text.function.attributes[f"commir.{kind}_bytes"] = ir.IntegerAttr.get(number, size)


def local_arena(text: Text) -> Iterator[Mutation]:
    """Move a buffer to the local arena, to bytes that nothing else has there."""
    arenas = {
        memory.attributes["arena"].value: memory
        for memory in text.all("commir.memory")
        if "arena" in memory.attributes
    }
    if SYMMETRIC not in arenas:
        return
    for use in list(arenas[SYMMETRIC].results[0].uses):
        view = use.owner.operation

        def move(v: Any = view) -> None:
            size, more = (arena_bytes(text, kind) for kind in ("local", "symmetric"))
            local = arenas[SYMMETRIC].clone(ir.InsertionPoint(arenas[SYMMETRIC]))
            kind = local.attributes["arena"].type
            local.attributes["arena"] = ir.IntegerAttr.get(kind, LOCAL)
            at = ir.InsertionPoint(v)
            beyond = [v.operands[1], text.number(size, at)]
            v.operands[0] = local.results[0]
            v.operands[1] = text.create("arith.addi", beyond, [text.index], at).result
            set_arena_bytes(text, "local", size + more)

        yield Mutation("{} in the local arena", move, (view.results[0],))


def alias(text: Text) -> Iterator[Mutation]:
    buffers = [
        view
        for view in text.all("memref.view")
        if view.operands[0].owner.operation.name == "commir.memory"
        and view.block == text.function.regions[0].blocks[0]
    ]
    arenas = [v for v in buffers if "arena" in v.operands[0].owner.operation.attributes]
    for one in arenas:
        for other in arenas:
            shared = one.operands[0] == other.operands[0]
            if one == other or not shared or not dominates(one.operands[1], other):
                continue

            def change(a: Any = one, b: Any = other) -> None:
                b.operands[1] = a.operands[1]

            yield Mutation("{} at the place of {}", change, (other.results[0], one.results[0]))


def repeat(text: Text) -> Iterator[Mutation]:
    for op in text.all("commir.launch", "commir.accumulate"):
        yield Mutation(f"{op.name} twice", lambda o=op: o.clone(ir.InsertionPoint(o)))


def skip(text: Text) -> Iterator[Mutation]:
    for op in text.all("commir.launch", "commir.accumulate", "commir.copy"):
        yield Mutation(f"without {op.name}", op.erase)


def wrong_identity(text: Text) -> Iterator[Mutation]:
    for fill in text.all("commir.fill"):
        value = fill.attributes["value"].value

        def change(f: Any = fill, to: float = 1.0 if value == 0.0 else 0.0) -> None:
            kind = f.attributes["value"].type
            f.attributes["value"] = ir.FloatAttr.get(kind, to, f.location)

        yield Mutation(f"fill with another value than {value}", change)
        yield Mutation("without a fill", fill.erase)


def is_first(text: Text, at: Any) -> Any:
    """Make the test whether this rank is the first of its group on the first level."""
    level = text.all("commir.group_rank")
    name = level[0].attributes["level"]
    rank = text.create("commir.group_rank", [], [text.index], at, attributes={"level": name})
    zero = text.number(0, at)
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, text.module.context), 0)
    return text.create(
        "arith.cmpi",
        [rank.result, zero],
        [ir.IntegerType.get_signless(1, text.module.context)],
        at,
        attributes={"predicate": equal},
    ).result


def under_rank_test(text: Text) -> Iterator[Mutation]:
    if not text.all("commir.group_rank"):
        return
    for start in text.all(*STARTS):
        waits = [use.owner for use in start.results[0].uses]

        def change(s: Any = start, w: list[Any] = waits) -> None:
            at = ir.InsertionPoint(s)
            branch = text.create("scf.if", [is_first(text, at)], [], at, regions=2)
            block = branch.regions[0].blocks.append()
            end = text.create("scf.yield", [], [], ir.InsertionPoint(block))
            s.move_before(end)
            for wait in w:
                wait.operation.move_before(end)

        yield Mutation(f"{start.name} under a rank test", change)


def swap_on_one_rank(text: Text) -> Iterator[Mutation]:
    if not text.all("commir.group_rank"):
        return
    for one, other in open_together(text, *TOGETHER):

        def change(a: Any = one, b: Any = other) -> None:
            a.move_before(b)
            at = ir.InsertionPoint(a)
            types = [a.results[0].type, b.results[0].type]
            branch = text.create("scf.if", [is_first(text, at)], types, at, regions=2)
            for region, order in zip(branch.regions, ((b, a), (a, b)), strict=True):
                place = ir.InsertionPoint(region.blocks.append())
                made = {id(op): op.clone(place).operation.results[0] for op in order}
                text.create("scf.yield", [made[id(a)], made[id(b)]], [], place)
            a.results[0].replace_all_uses_with(branch.results[0])
            b.results[0].replace_all_uses_with(branch.results[1])
            a.erase()
            b.erase()

        yield Mutation("two collectives swapped on the first rank", change)


def flip_overwrite(text: Text) -> Iterator[Mutation]:
    for launch in text.all("commir.launch"):
        results = ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"])[1]
        now = [False] * results
        if "overwrite" in launch.attributes:
            now = list(ir.DenseBoolArrayAttr(launch.attributes["overwrite"]))
        for at in range(results):

            def change(
                op: Any = launch,
                to: tuple[bool, ...] = (*now[:at], not now[at], *now[at + 1 :]),
            ) -> None:
                with op.location:
                    op.attributes["overwrite"] = ir.DenseBoolArrayAttr.get(to)

            yield Mutation(f"result {at} overwritten: {not now[at]}", change)


def merge_again(text: Text) -> Iterator[Mutation]:
    for launch in text.all("commir.launch"):
        if "overwrite" not in launch.attributes:
            continue

        def again(op: Any = launch) -> None:
            more = op.clone(after(op))
            del more.operation.attributes["overwrite"]

        yield Mutation(f"{launch.attributes['kernel']} merged again", again)


def move_to_another_lane(text: Text) -> Iterator[Mutation]:
    """Run one op in the next lane."""
    uses = text.all("commir.lane.use")
    if not uses:
        return
    lanes = 1 + max(use.attributes["lane"].value for use in uses)
    lane = 0
    for op in text.ops:
        if op.name == "commir.lane.use":
            lane = op.attributes["lane"].value
        if op.name not in EVENTS or op.block != text.function.regions[0].blocks[0]:
            continue

        def change(o: Any = op, now: int = lane, other: int = (lane + 1) % lanes) -> None:
            use_lane(text, other, ir.InsertionPoint(o))
            use_lane(text, now, after(o))

        yield Mutation(f"{op.name} in lane {(lane + 1) % lanes}", change)


def use_lane(text: Text, lane: int, at: Any) -> None:
    """Go on in another lane."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, text.module.context), lane)
    text.create("commir.lane.use", [], [], at, attributes={"lane": number})


def break_lanes(text: Text) -> Iterator[Mutation]:
    for order in text.all("commir.lane.order"):
        yield Mutation("without {}", order.erase, (order,))
        # The first event that it orders, and the last.
        for event in [op for op in following(order) if op.name in EVENTS][:1]:
            yield Mutation("{} late", lambda o=order, e=event: o.move_after(e), (order,))
        for event in [op for op in preceding(order) if op.name in EVENTS][-1:]:
            yield Mutation("{} early", lambda o=order, e=event: o.move_before(e), (order,))


OPERATORS: dict[str, Callable[[Text], Iterator[Mutation]]] = {
    "drop a wait": drop_wait,
    "wait later": delay_wait,
    "drop a signal": drop_signal,
    "signal early": move_signal,
    "swap two sends": swap_sends,
    "wrong peer": wrong_peer,
    "index off by one": off_by_one,
    "offset or direction flipped": flip,
    "one element short": shorten,
    "two buffers aliased": alias,
    "moved to the local arena": local_arena,
    "tile counted twice": repeat,
    "tile skipped": skip,
    "wrong identity": wrong_identity,
    "overwrite flipped": flip_overwrite,
    "merged again": merge_again,
    "under a rank test": under_rank_test,
    "order swapped on one rank": swap_on_one_rank,
    "moved to another lane": move_to_another_lane,
    "fork or join broken": break_lanes,
}
