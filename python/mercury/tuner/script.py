"""Steps as text: several are applied at once, which costs little more than one."""

from __future__ import annotations

from collections.abc import Sequence

from ..dsl.source import quote
from ..schedule import Schedule
from ..schedule.recipe import Call
from ..schedule.step import OPS, into_text, names, shard_text, shift_text

__all__ = ["apply"]


def apply(schedule: Schedule, calls: Sequence[Call]) -> Schedule:
    """Give a copy of a schedule with some more steps.

    Raises
    ------
    ScheduleError
        When a step is not legal.
    """
    made = schedule.copy()
    if not calls:
        return made
    lines = [
        f"    transform.commir.{call.name} {_operands(call)} in %program : !transform.any_op\n"
        for call in calls
    ]
    head = [
        "module attributes {transform.with_named_sequence} {\n",
        "  transform.named_sequence @__transform_main(%root: !transform.any_op "
        "{transform.readonly}) {\n",
        '    %program = transform.structured.match ops{["commir.program"]} in %root\n'
        "        : (!transform.any_op) -> !transform.any_op\n",
    ]
    return made.apply("".join([*head, *lines, "    transform.yield\n  }\n}\n"]))


def _operands(call: Call) -> str:
    first, *rest = call.args
    match call.name, rest:
        case "tile", [int(into) | list(into)]:
            return f"{quote(str(first))} into {into_text(into)}"
        case "parallelize", [over]:
            return f"{quote(str(first))} over {_names(over)}"
        case "reorder", _:
            return _names([first, *rest])
        case "shard", [axis, over]:
            levels = [str(level) for level in over] if isinstance(over, list) else str(over)
            reads = str(call.kwargs.get("reads", "gather"))
            return shard_text(str(first), str(axis), levels, reads)
        case "overlap", []:
            return quote(str(first))
        case "defer", []:
            partial = call.kwargs.get("partial")
            return quote(str(first)) + (f" partial {partial}" if partial else "")
        case "replicate", [level]:
            return f"{quote(str(first))} over {quote(str(level))}"
        case "patch", [implementation]:
            return f"{quote(str(first))} with {quote(str(implementation))}"
        case "split_level", [dict(into)]:
            levels = ", ".join(f"{quote(name)} = {size}" for name, size in into.items())
            return f"{quote(str(first))} into ({levels})"
        case "shift", []:
            by = call.kwargs["by"]
            options = {
                key: call.kwargs[key]
                for key in OPS["shift"][1]
                if key != "by" and key in call.kwargs
            }
            return shift_text(
                str(first),
                [str(loop) for loop in by] if isinstance(by, list) else str(by),
                options,
            )
    raise ValueError(f"no text for {call}")


def _names(value: object) -> str:
    return names([str(each) for each in value] if isinstance(value, list) else str(value))
