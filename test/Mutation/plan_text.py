"""The text of a lowered plan, parsed to be changed in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercury._mlir import ir

__all__ = [
    "COLLECTIVES",
    "EVENTS",
    "STARTS",
    "TOGETHER",
    "Mutation",
    "Text",
    "after",
    "following",
    "preceding",
]

TOGETHER = (
    "commir.exchange.start",
    "commir.all_gather.start",
    "commir.reduce_scatter.start",
    "commir.all_reduce.start",
    "commir.all_to_all.start",
    "commir.broadcast.start",
)
STARTS = (*TOGETHER, "commir.pull.start")
COLLECTIVES = (*TOGETHER, "commir.lease.open", "commir.lease.close")
EVENTS = (
    *STARTS,
    "commir.wait",
    "commir.launch",
    "commir.copy",
    "commir.accumulate",
    "commir.fill",
    "commir.lease.open",
    "commir.lease.close",
)


@dataclass(frozen=True)
class Mutation:
    """One way to break one plan.

    Attributes
    ----------
    what
        In words, with a place for each of ``of``.
    apply
        Breaks the plan, in place.
    of
        The ops and values it names: to print one, MLIR numbers the whole plan.
    """

    what: str
    apply: Callable[[], None]
    of: tuple[Any, ...] = ()

    def describe(self) -> str:
        """Say what is broken, before it is."""
        return self.what.format(*self.of)


class Text:
    """A parsed plan, to be changed in place."""

    def __init__(self, text: str, context: Any) -> None:
        self.module = ir.Module.parse(text, context)
        self.ops: list[Any] = []

        def collect(op: Any) -> ir.WalkResult:
            self.ops.append(op)
            return ir.WalkResult.ADVANCE

        for top in self.module.body.operations:
            if top.operation.name == "func.func":
                self.function = top.operation
                top.operation.walk(collect, ir.WalkOrder.PRE_ORDER)
        self.index = ir.IndexType.get(context)

    def all(self, *names: str) -> list[Any]:
        """Give the ops of these names, in the order of the text."""
        return [op for op in self.ops if op.name in names]

    def create(
        self, name: str, operands: list[Any], results: list[Any], at: Any, **more: Any
    ) -> Any:
        """Make an op at an insertion point."""
        with at, self.function.location:
            return ir.Operation.create(name, results=results, operands=operands, **more)

    def number(self, value: int, at: Any) -> Any:
        """Make an index constant."""
        attribute = ir.IntegerAttr.get(self.index, value)
        return self.create(
            "arith.constant", [], [self.index], at, attributes={"value": attribute}
        ).result

    def add(self, value: Any, more: int) -> None:
        """Put ``value + more`` in the place of a value."""
        owner = value.owner
        at = (
            ir.InsertionPoint.at_block_begin(owner)
            if isinstance(owner, ir.Block)
            else after(owner.operation)
        )
        constant = self.number(more, at)
        sum_ = self.create("arith.addi", [value, constant], [self.index], after(constant.owner))
        value.replace_all_uses_except(sum_.result, [sum_])


def after(op: Any) -> Any:
    """Give the insertion point after an op."""
    op = op.operation
    block = op.block
    ops = list(block.operations)
    place = next(i for i, each in enumerate(ops) if each.operation == op)
    return ir.InsertionPoint(ops[place + 1])


def following(op: Any) -> list[Any]:
    """Give the ops after one in its block, without the terminator."""
    ops = [each.operation for each in op.block.operations]
    return ops[ops.index(op.operation) + 1 : -1]


def preceding(op: Any) -> list[Any]:
    """Give the ops before one in its block."""
    ops = [each.operation for each in op.block.operations]
    return ops[: ops.index(op.operation)]
