"""Steps of a schedule: as text of the transform dialect, and as calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dsl.source import quote
from .recipe import Call, Value

__all__ = ["OPS", "call_of", "into_text", "names", "shard_text", "shift_text"]

# For each transform, its operands as arguments of the method of `Schedule`: those by
# position, then those by keyword with their defaults.
OPS: dict[str, tuple[tuple[str, ...], dict[str, Value | None]]] = {
    "tile": (("loop", "into"), {"names": None}),
    "join": (("outer", "inner"), {"name": None}),
    "reorder": (("loops",), {}),
    "patch": (("pattern", "impl"), {}),
    "parallelize": (("loop", "levels"), {}),
    "shift": (
        ("loop",),
        {
            "by": None,
            "over": None,
            "direction": 1,
            "offset": 0,
            "reads": "rotate",
            "results": "travel",
            "via": None,
            "chunks": 1,
            "link": None,
        },
    ),
    "overlap": (("loop",), {}),
    "shard": (("buffer", "axis", "levels"), {"reads": "gather"}),
    "replicate": (("buffer", "level"), {}),
    "defer": (("buffer",), {"partial": None}),
    "split_level": (("level", "into"), {}),
}

# By transform and operand.
_ENUMS: dict[tuple[str, str], tuple[str, ...]] = {
    ("shift", "reads"): ("rotate", "pull"),
    ("shift", "results"): ("travel", "deliver", "fetch"),
    ("shard", "reads"): ("gather", "broadcast"),
}


def names(values: str | Sequence[str]) -> str:
    """Write one or several names as a list of strings."""
    several = [values] if isinstance(values, str) else values
    return "[" + ", ".join(quote(value) for value in several) + "]"


def into_text(into: int | Sequence[Any]) -> str:
    """Write into how many parts a loop is tiled, or their sizes."""
    return str(into if isinstance(into, int) else list(into))


def shift_text(loop: str, by: str | Sequence[str], options: Mapping[str, Any]) -> str:
    """Write the operands of a shift; options at their default are left out."""
    text = f"{quote(loop)} by {names(by)}"
    for key, value in options.items():
        if value == OPS["shift"][1][key]:
            continue
        if key == "over":
            text += f" over {names(value)}"
        elif key == "via":
            entries = ", ".join(f"{quote(k)} = {quote(v)}" for k, v in sorted(value.items()))
            text += f" via {{{entries}}}"
        else:
            text += f" {key} {value}"
    return text


def shard_text(
    buffer: str, axis: str, levels: str | Sequence[str], reads: str = "gather"
) -> str:
    """Write the operands of a shard; a gather goes without saying."""
    text = f"{quote(buffer)} along {quote(axis)} over {names(levels)}"
    return text if reads == "gather" else f"{text} reads {reads}"


def call_of(op: Any) -> Call:
    """Give the call that makes a `transform.commir` op."""
    name = op.operation.name.removeprefix("transform.commir.")
    attributes = op.operation.attributes
    positional, keywords = OPS[name]
    args = [_value(attributes[key], name, key) for key in positional]
    if name == "reorder":
        loops = args[0]
        args = loops if isinstance(loops, list) else [loops]
    kwargs: dict[str, Value] = {}
    for key, default in keywords.items():
        value = _value(attributes[key], name, key) if key in attributes else default
        if value is not None and value != default:
            kwargs[key] = value
    return Call(name=name, args=args, kwargs=kwargs)


def _value(attribute: Any, transform: str = "", key: str = "") -> Value:
    """Turn an attribute into a value of a recipe; a list of one is its element."""
    from .._mlir import ir  # noqa: PLC0415 (no work at import)
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415

    if (transform, key) in _ENUMS:
        choice: int = ir.IntegerAttr(attribute).value
        return _ENUMS[transform, key][choice]
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return list(attribute)
    if isinstance(attribute, ir.StringAttr | ir.IntegerAttr):
        value: Value = attribute.value
        return value
    if isinstance(attribute, ir.TypeAttr):
        return str(attribute.value)
    if isinstance(attribute, ir.DictAttr):
        return {entry.name: _value(entry.attr) for entry in attribute}
    elements = list(ir.ArrayAttr(attribute))
    if key == "into":
        return {level: size for level, size in map(_mercury.level, elements)}
    several = [_value(element) for element in elements]
    return several[0] if len(several) == 1 else several
