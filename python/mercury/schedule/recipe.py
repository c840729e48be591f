"""Schedules in one line: ``parallelize(sq, gpu); shift(sk, by=sq)``."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import ScheduleError

__all__ = ["Call", "format_recipe", "parse_recipe"]

Value = int | str | list["Value"] | dict[str, "Value"]


@dataclass(frozen=True, kw_only=True)
class Call:
    """A transform by name, with its arguments as `Schedule` takes them."""

    name: str
    args: list[Value] = field(default_factory=list)
    kwargs: dict[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [_format(value) for value in self.args]
        parts += [f"{name}={_format(value)}" for name, value in self.kwargs.items()]
        return f"{self.name}({', '.join(parts)})"


def format_recipe(calls: Iterable[Call]) -> str:
    """Write transforms in one line.

    Examples
    --------
    >>> format_recipe([Call(name="shift", args=["sk"], kwargs={"by": "sq"})])
    'shift(sk, by=sq)'
    """
    return "; ".join(str(call) for call in calls)


def parse_recipe(text: str) -> list[Call]:
    """Read transforms from one line.

    Parameters
    ----------
    text
        Calls separated by ``;``. Names need no quotes.

    Raises
    ------
    ScheduleError
        When the text is not of that form.

    Examples
    --------
    >>> [call.name for call in parse_recipe("tile(sk, 4); shift(sk_outer, by=sq)")]
    ['tile', 'shift']
    """
    try:
        module = ast.parse(text.strip().rstrip(";"))
    except SyntaxError as error:
        raise ScheduleError(
            f"the recipe {text!r} does not read as transforms: {error.msg} at column "
            f"{error.offset}; write it as 'parallelize(sq, gpu); shift(sk, by=sq)'"
        ) from None
    return [_call(statement) for statement in module.body]


def _call(statement: ast.stmt) -> Call:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ScheduleError(
            f"expected a transform such as shift(sk, by=sq), got {ast.unparse(statement)!r}"
        )
    kwargs = {str(keyword.arg): _value(keyword.value) for keyword in call.keywords}
    return Call(name=call.func.id, args=[_value(arg) for arg in call.args], kwargs=kwargs)


def _value(node: ast.expr) -> Value:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(element) for element in node.elts]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "dict"
    ):
        return {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_value(k)): _value(v) for k, v in pairs if k is not None}
    try:
        value = ast.literal_eval(node)
    except ValueError:
        value = None
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    raise ScheduleError(f"expected a name, a number or a list, got {ast.unparse(node)!r}")


def _format(value: Value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_format(element) for element in value) + "]"
    if isinstance(value, dict):
        if not all(k.isidentifier() and not keyword.iskeyword(k) for k in value):
            return "{" + ", ".join(f"{k!r}: {_format(v)}" for k, v in value.items()) + "}"
        return "dict(" + ", ".join(f"{k}={_format(v)}" for k, v in value.items()) + ")"
    if isinstance(value, str) and (not value.isidentifier() or keyword.iskeyword(value)):
        return repr(value)
    return str(value)
