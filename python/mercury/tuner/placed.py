"""What a schedule says, read from its IR: loops, levels, and where every buffer lives."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import lcm, prod
from typing import Any, TypeVar

from ..dsl.nodes import Axis
from ..errors import ScheduleError
from ..schedule import Schedule

__all__ = ["Cut", "Loop", "Placed", "Shift", "read_placed"]

T = TypeVar("T")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|-?\d+|[\w.$]+|[^\s\w]')


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How a loop is staggered; see `Schedule.shift`."""

    loops: tuple[str, ...]
    levels: tuple[str, ...]
    direction: int = 1
    offset: int = 0
    reads: str = "rotate"
    results: str = "travel"
    via: str = ""
    chunks: int = 1
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One loop of a nest."""

    name: str
    axes: tuple[str, ...]
    parts: int
    levels: tuple[str, ...]
    shift: Shift | None


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How an axis of a buffer is cut: levels, and numbers that stay inside a rank."""

    axis: str
    factors: tuple[str | int, ...]
    layout: str

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels, outermost first."""
        return tuple(factor for factor in self.factors if isinstance(factor, str))


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A scheduled program whose buffers have their places.

    Attributes
    ----------
    levels
        Of the mesh, with sizes, outermost first.
    extents, layouts
        Of each axis. A tile into parts of given sizes makes these its bounds.
    inputs
        The buffers that the program reads; the others are outputs.
    nests
        The loops of each nest, outermost first.
    boundary, inside
        For each buffer, its cuts outside the program and inside.
    broadcast
        For each buffer, the axes along which loops read it panel by panel.
    patches
        The implementation of each kernel, in order; empty where none was picked.
    deferred
        The outputs that are merged at the end, each with the type that partial results wait
        in; empty for that of their sums.
    overlaps
        The loops whose steps compute beside each other.
    """

    levels: tuple[tuple[str, int], ...]
    extents: dict[str, int]
    layouts: dict[str, str]
    inputs: frozenset[str]
    nests: tuple[tuple[Loop, ...], ...]
    boundary: dict[str, tuple[Cut, ...]]
    inside: dict[str, tuple[Cut, ...]]
    broadcast: dict[str, tuple[str, ...]]
    patches: tuple[str, ...]
    deferred: tuple[tuple[str, str], ...] = ()
    overlaps: frozenset[str] = frozenset()

    def size(self, level: str) -> int:
        """Give the size of a level."""
        return dict(self.levels)[level]

    def levels_of_axes(self, loop: Loop) -> dict[str, tuple[str, ...]]:
        """Give the levels that each axis of a parallel loop is spread over.

        Levels of one rank are left out. A joined loop is cut along whole axes: the next one
        only when each part of those before is a single position.
        """
        levels = [level for level in loop.levels if self.size(level) != 1]
        found: dict[str, tuple[str, ...]] = {}
        for number, axis in enumerate(loop.axes):
            last = number + 1 == len(loop.axes)
            found[axis] = ()
            ranks = 1
            while levels and (last or ranks < self.extents[axis] != 0):
                found[axis] += (levels[0],)
                ranks *= self.size(levels.pop(0))
        return found

    def walker(self, nest: tuple[Loop, ...], axis: str) -> Loop | None:
        """Give the loop that walks the panels of an axis: its outermost cut, or loop."""
        alone = [loop for loop in nest if loop.axes == (axis,) and not loop.levels]
        return next((loop for loop in alone if loop.parts > 1), next(iter(alone), None))

    def panels(self, axis: str) -> int:
        """Give into how many parts the buffers that are broadcast along an axis cut it."""
        return lcm(
            *(
                prod(self.size(level) for level in cut.levels)
                for name, axes in self.broadcast.items()
                for cut in self.inside[name]
                if axis == cut.axis and axis in axes
            )
        )

    def slices(self, nest: tuple[Loop, ...]) -> Loop | None:
        """Give the loop whose slices are exchanged: its steps overlap, and it is no ring."""
        walking = (loop for loop in nest if loop.name in self.overlaps and loop.shift is None)
        return next(walking, None)

    def exchanged(self, buffer: str) -> tuple[str, ...]:
        """Give the levels over whose ranks a buffer is laid out anew around the loops.

        They are those that cut an axis of it where it comes from, and not where it goes.
        """
        source, goal = self.boundary[buffer], self.inside[buffer]
        if buffer not in self.inputs:
            source, goal = goal, source
        kept = {(cut.axis, level) for cut in goal for level in cut.levels}
        moves = {
            level for cut in source for level in cut.levels if (cut.axis, level) not in kept
        }
        return tuple(level for level, size in self.levels if size != 1 and level in moves)

    def moved(self, loop: Loop) -> dict[str, tuple[str, ...]]:
        """Give the buffers that a shifted loop makes move, each with the levels.

        They are those that are cut along the loop over a level that it is shifted on.
        """
        if loop.shift is None:
            return {}
        found = {}
        for name, cuts in self.inside.items():
            own = [
                level
                for cut in cuts
                for level in cut.levels
                if cut.axis in loop.axes and level in loop.shift.levels
            ]
            if own:
                found[name] = tuple(own)
        return found


def read_placed(schedule: Schedule) -> Placed:
    """Find where the schedule makes buffers live.

    Raises
    ------
    ScheduleError
        When two nests want a buffer in different places.
    """
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

    module = _mercury.clone(schedule.module)
    # The transforms verified their program, and this pass adds no more than attributes.
    done, diagnostics, _ = _mercury.run_pipeline(
        module, "builtin.module(commir-infer-placement)", verify=False
    )
    if not done:
        raise ScheduleError.from_diagnostics(diagnostics, otherwise="buffers have no place")
    levels: tuple[tuple[str, int], ...] = ()
    layouts: dict[str, str] = {}
    nests: list[tuple[Loop, ...]] = []
    patches: list[str] = []
    deferred: list[tuple[str, str]] = []
    overlaps: list[str] = []
    boundary: dict[str, tuple[Cut, ...]] = {}
    inside: dict[str, tuple[Cut, ...]] = {}
    broadcast: dict[str, tuple[str, ...]] = {}
    for op in module.body.operations:
        if op.operation.name == "commir.mesh":
            levels = tuple(map(_mercury.level, op.levels))
        if op.operation.name != "commir.program":
            continue
        layouts = {axis.name: axis.layout for axis in map(Axis.of, op.axes)}
        for binding in op.bindings:
            name, at, within, panels = _binding(str(binding))
            boundary[name], inside[name], broadcast[name] = at, within, panels
        for nest in op.body.blocks[0].operations:
            nests.append(tuple(_loop(str(loop)) for loop in nest.loops))
            if "commir.overlap" in nest.operation.attributes:
                overlaps.append(nest.operation.attributes["commir.overlap"].value)
            body = list(nest.operation.regions[0].blocks[0].operations)
            patches += [_impl(each) for each in body]
            deferred += [pair for each in body for pair in _deferred(each, list(inside))]
    return Placed(
        levels=levels,
        extents={axis.name: axis.extent for axis in schedule.program.axes},
        layouts=layouts,
        inputs=frozenset(buffer.name for buffer in schedule.program.inputs),
        nests=tuple(nests),
        boundary=boundary,
        inside=inside,
        broadcast=broadcast,
        patches=tuple(patches),
        deferred=tuple(sorted(deferred)),
        overlaps=frozenset(overlaps),
    )


_Binding = tuple[str, tuple[Cut, ...], tuple[Cut, ...], tuple[str, ...]]


# Thousands of schedules have few different loops and bindings between them.
@functools.lru_cache(maxsize=1 << 16)
def _binding(text: str) -> _Binding:
    return _Text(text, "#commir.binding").binding()


@functools.lru_cache(maxsize=1 << 16)
def _loop(text: str) -> Loop:
    return _Text(text, "#commir.loop").loop()


def _impl(op: Any) -> str:
    attributes = op.operation.attributes
    return str(attributes["impl"].value) if "impl" in attributes else ""


def _deferred(op: Any, buffers: list[str]) -> list[tuple[str, str]]:
    """Give the buffers of a store whose merge is deferred, and their type while they wait."""
    attributes = op.operation.attributes
    if "deferred" not in attributes:
        return []
    partial = str(attributes["partial"].value) if "partial" in attributes else ""
    return [(buffers[buffer.arg_number], partial) for buffer in op.buffers]


class _Text:
    """Reads the text of an attribute; anything unexpected is an error."""

    def __init__(self, text: str, kind: str) -> None:
        self._whole = text
        self._tokens = _TOKEN.findall(text.removeprefix(kind))
        self._at = 0
        self._take("<")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, token: str) -> None:
        if self._next() != token:
            raise self._error(f"expected '{token}'")

    def _error(self, what: str) -> ScheduleError:
        return ScheduleError(f"{self._whole} does not read: {what} at token {self._at}")

    def _accept(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._at += 1
        return True

    def _name(self) -> str:
        token = self._next()
        if token.startswith('"'):
            return str(json.loads(token))
        if not re.fullmatch(r"[A-Za-z_][\w.$]*", token):
            raise self._error(f"expected a name, got '{token}'")
        return token

    def _number(self) -> int:
        token = self._next()
        if not re.fullmatch(r"-?\d+", token):
            raise self._error(f"expected a number, got '{token}'")
        return int(token)

    def _list(self, element: Callable[[], T], close: str) -> tuple[T, ...]:
        found: list[T] = []
        while not self._accept(close):
            if found:
                self._take(",")
            found.append(element())
        return tuple(found)

    def _factor(self) -> str | int:
        return self._number() if re.fullmatch(r"-?\d+", self._peek()) else self._name()

    def _rest(self, stops: tuple[str, ...]) -> str:
        """Everything up to a token of ``stops`` outside of brackets."""
        found, depth = [], 0
        while self._peek() and (depth or self._peek() not in stops):
            token = self._next()
            depth += (token in "([{<") - (token in ")]}>")
            found.append(token)
        return "".join(found)

    def _cut(self) -> Cut:
        axis = self._name()
        self._take("->")
        factors = self._list(self._factor, ")") if self._accept("(") else (self._factor(),)
        return Cut(axis=axis, factors=factors, layout=self._rest((",", "]")))

    def _placement(self) -> tuple[Cut, ...]:
        self._take("[")
        return self._list(self._cut, "]")

    def binding(self) -> _Binding:
        """Read the name of a buffer, its boundary, its inside, and what is broadcast."""
        name = self._name()
        found: dict[str, tuple[Cut, ...]] = {"at": (), "inside": ()}
        names: dict[str, tuple[str, ...]] = {"broadcast": ()}
        while not self._accept(">"):
            keyword = self._name()
            if keyword in ("replicate", "broadcast"):
                self._take("[")
                names[keyword] = self._list(self._name, "]")
            else:
                found[keyword] = self._placement()
        return name, found["at"], found["inside"], names["broadcast"]

    def loop(self) -> Loop:
        """Read a loop."""
        name = self._name()
        axes: tuple[str, ...] = (name,)
        if self._accept("in"):
            axes = self._list(self._name, ")") if self._accept("(") else (self._name(),)
        parts = self._number() if self._accept("of") else 1
        levels: tuple[str, ...] = ()
        if self._accept("parallel"):
            self._take("(")
            levels = self._list(self._name, ")")
        shift = self._shift() if self._accept("shift") else None
        self._take(">")
        return Loop(name=name, axes=axes, parts=parts, levels=levels, shift=shift)

    def _shift(self) -> Shift:
        self._take("(")
        loops: list[str] = []
        levels: list[str] = []
        operands: dict[str, Any] = {}

        def operand() -> None:
            keyword = self._name()
            if keyword == "by":
                loops.append(self._name())
                self._take("on")
                levels.append(self._name())
            elif keyword in ("direction", "offset", "chunks"):
                operands[keyword] = self._number()
            elif keyword in ("reads", "results"):
                operands[keyword] = self._name()
            elif keyword in ("via", "link"):
                operands[keyword] = self._rest((",", ")"))
            else:
                raise self._error(f"unknown operand '{keyword}'")

        self._list(operand, ")")
        return Shift(loops=tuple(loops), levels=tuple(levels), **operands)
