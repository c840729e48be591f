"""Which rules of the compiler brought about the communication of a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mercury as mc
from mercury._mlir import ir
from mercury._mlir._mlir_libs import _mercury
from mercury.tuner.placed import Loop, read_placed

__all__ = ["RULES", "applied", "rings"]

RULES = tuple(f"R{number}" for number in range(1, 10))
PIPELINE = "builtin.module(commir-infer-placement,commir-materialize-communication)"


def rings(schedule: mc.Schedule) -> list[Loop]:
    """Give the loops of a schedule that are shifted, over more ranks than one."""
    placed = read_placed(schedule)
    return [
        loop
        for nest in placed.nests
        for loop in nest
        if loop.shift and any(placed.size(level) > 1 for level in loop.shift.levels)
    ]


def applied(schedule: mc.Schedule) -> list[str]:
    """Give the rules, and the ways of a rule that has several, as ``R2 broadcast``."""
    module = ir.Module.parse(schedule.ir(), ir.Context())
    succeeded, *_ = _mercury.run_pipeline(module, PIPELINE)
    assert succeeded  # it did, a moment ago
    program = next(
        op for op in module.body.operations if "commir.source" in op.operation.attributes
    )
    ops = list(_walk(program.operation))
    written = _written(ops)
    shifted = rings(schedule)
    levels = {level for loop in shifted if loop.shift for level in loop.shift.levels}
    found = {rule for op in ops for rule in _rules(op, program, written, levels)}
    if len(shifted) > 1:
        found |= {"R9"}
    if any(_reads_ahead(op) for op in ops):
        found |= {"R3 of the next slice"}
    if not found:
        found = {"R1"}
    return sorted(found | {rule.partition(" ")[0] for rule in found})


def _rules(op: Any, program: Any, written: set[Any], levels: set[str]) -> list[str]:
    """Tell the rules of one operation."""
    name, attributes = op.name.removeprefix("commir."), op.attributes
    if name == "all_gather.start":
        return ["R2 gather" if "axis" in attributes else "R4 gather"]
    if name == "redistribute":
        return _redistributed(op, program)
    if name in ("exchange.start", "pull.start"):
        way = name.partition(".")[0]
        if not _roots(op.operands[0]) & written:
            return [f"R3 {way}"]
        return [f"R6 {way}" if _group(op) & levels else f"R5 {way}"]
    plain = {
        "broadcast.start": "R2 broadcast",
        "all_reduce.start": "R4 all_reduce",
        "reduce_scatter.start": "R5 reduce_scatter",
    }
    return [plain[name]] if name in plain else []


def _redistributed(op: Any, program: Any) -> list[str]:
    """Tell apart what the boundary asks for, and what no other rule serves."""
    for end, other in (op.operands, reversed(op.operands)):
        if not isinstance(end.owner, ir.Block):
            continue
        binding = str(
            program.operation.attributes["bindings"][ir.BlockArgument(end).arg_number]
        )
        boundary, inside = (_placement(binding, word) for word in ("at", "inside"))
        there = other.owner.attributes["placement"]
        rules = ["R7"] if boundary != inside else []
        return rules + (["R8"] if str(there) != f"#commir.placement<{inside}>" else [])
    return ["R8"]


def _placement(binding: str, word: str) -> str:
    """Read a placement, as ``[sq -> gpu]``, from the text of a binding."""
    rest = binding.partition(f" {word} ")[2]
    depth = 0
    for end, char in enumerate(rest):
        depth += (char == "[") - (char == "]")
        if depth == 0:
            return rest[: end + 1]
    raise AssertionError(binding)


def _group(op: Any) -> set[str]:
    """Give the levels that an exchange or a pull is along."""
    if op.name == "commir.pull.start":
        lease = next(each for each in op.operands if str(each.type) == "!commir.lease")
        op = lease.owner
    return {level.value for level in op.attributes["group"]}


def _walk(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                yield inner.operation
                yield from _walk(inner.operation)


def _written(ops: list[Any]) -> set[Any]:
    """Give the buffers that hold partial results: of kernels, or copies of such."""
    found = {root for op in ops for made in _made(op) for root in _roots(made)}
    copies = [tuple(map(_roots, op.operands)) for op in ops if op.name == "commir.copy"]
    while True:
        more = {root for source, target in copies if source & found for root in target - found}
        if not more:
            return found
        found |= more


def _made(op: Any) -> list[Any]:
    """Give the memory that an operation computes into."""
    if op.name == "commir.accumulate":
        return [op.operands[1]]
    if op.name == "commir.launch":
        inputs, outputs, *_ = op.attributes["operandSegmentSizes"]
        return list(op.operands)[inputs : inputs + outputs]
    return []


def _roots(value: Any) -> set[Any]:
    """Give the buffers that a tile may lie in."""
    op = value.owner
    if isinstance(op, ir.Block) or op.name == "commir.alloc":
        return {value}
    sources = [each for each in op.operands if str(each.type).startswith("!commir.")]
    return {root for source in sources for root in _roots(source)}


def _reads_ahead(op: Any) -> bool:
    """Whether a loop's pulls come under an inner loop over the steps that have the time."""
    if op.name != "scf.for":
        return False
    body = [each.operation for each in op.regions[0].blocks[0].operations]
    pulls = any(each.name == "commir.pull.start" for each in body)
    return pulls and any(
        each.name == "scf.for" and each.operands[0].owner.name == "arith.select"
        for each in body
    )
