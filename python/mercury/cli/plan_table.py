"""A plan as a table: a row for each step, a column for each rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..dsl import Mask
from ..dsl.nodes import Buffer, Kernel
from ..runtime import Plan
from ..runtime.events import COLLECTIVES, Box, Event

__all__ = ["Row", "rows"]

_SHOWN_RUNS = 2


@dataclass(frozen=True, kw_only=True)
class Row:
    """What ranks do at a step.

    Attributes
    ----------
    step
        The indices of the loops, as ``"1.0"``; ``"start"``, ``"between"`` and ``"end"`` are
        before, between and after the loops of a body, ``"all"`` is a plan without loops.
    cells
        For each rank shown, what it does, a line each.
    """

    step: str
    cells: tuple[tuple[str, ...], ...]


def rows(plan: Plan, events: Mapping[int, Sequence[Event]]) -> Iterator[Row]:
    """Give the table of a plan.

    Parameters
    ----------
    plan
        The plan.
    events
        Of each rank to be shown, in the order of the columns.
    """
    told = {rank: _Teller(plan=plan, events=own) for rank, own in events.items()}
    places = sorted({event.place for own in events.values() for event in own})
    for place in places:
        cells = tuple(tuple(teller.lines(place)) for teller in told.values())
        if any(cells):
            yield Row(step=_step(place, places), cells=cells)


def _step(place: tuple[int, ...], places: Sequence[tuple[int, ...]]) -> str:
    """Name a place: the steps are every other number of it."""
    steps = ".".join(map(str, place[1::2]))
    same = [other for other in places if other[: len(place) - 1] == place[:-1]]
    if same == [place]:
        return steps or "all"
    where = "start" if place == same[0] else "end" if place == same[-1] else "between"
    return " ".join(filter(None, (steps, where)))


@dataclass(kw_only=True)
class _Said:
    """Phrases of one sort, with the names that share each."""

    sort: str
    names: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def line(self) -> str:
        return ", ".join(
            " ".join(filter(None, (verb, ", ".join(dict.fromkeys(names)), rest)))
            for (verb, rest), names in self.names.items()
        )


@dataclass(kw_only=True)
class _Teller:
    """Says what one rank does."""

    plan: Plan
    events: Sequence[Event]

    @cached_property
    def _starts(self) -> dict[int, Event]:
        return {e.token: e for e in self.events if e.token and e.kind != "wait"}

    @cached_property
    def _opened(self) -> dict[int, Event]:
        return {e.lease: e for e in self.events if e.kind == "lease_open"}

    @cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self.plan.program.buffers}

    @cached_property
    def _masks(self) -> dict[str, Mask]:
        ops = [op for nest in self.plan.program.nests for op in nest.ops]
        return {
            op.name: op.mask for op in ops if isinstance(op, Kernel) and op.mask is not None
        }

    def lines(self, place: tuple[int, ...]) -> Iterator[str]:
        """Say what happens at a place."""
        said: list[_Said] = []
        for event in self.events:
            for sort, verb, name, rest in self._phrases(event) if event.place == place else ():
                if not said or said[-1].sort != sort or not sort:
                    said.append(_Said(sort=sort))
                said[-1].names.setdefault((verb, rest), []).append(name)
        return (one.line() for one in said)

    def _phrases(self, event: Event) -> Iterator[tuple[str, str, str, str]]:
        """Give what an event says: its sort, a verb, the name of what, and the rest."""
        if not event.happens:
            return
        match event.kind:
            case "launch":
                yield "", event.kernel, self._launch(event), ""
            case "fill":
                yield "fill", "fill", _name(event.outputs[0]), ""
            case "copy" | "accumulate" if event.outputs[0].bytes:
                yield from self._move(event)
            case "exchange":
                source, target = event.inputs[0], event.outputs[0]
                if event.to != event.rank and source.bytes:
                    yield "start", "send", self.part(source), f"-> {event.to}"
                if event.sender != event.rank and target.bytes:
                    yield "start", "receive", _name(target), f"<- {event.sender}"
            case "broadcast" if event.outputs[0].bytes:
                if event.sender == event.rank:
                    over = "over " + ", ".join(event.levels)
                    yield "start", "broadcast", self.part(event.inputs[0]), over
                else:
                    yield "start", "receive", _name(event.outputs[0]), f"<- {event.sender}"
            case kind if kind in COLLECTIVES - {"broadcast"}:
                over = " over " + ", ".join(event.levels)
                yield "start", kind, self.part(event.inputs[0]), over.strip()
            case "pull" if event.inputs[0].bytes:
                yield "start", "pull", self.part(event.inputs[0]), f"<- {event.sender}"
            case "wait":
                started = self._starts[event.token]
                if started.happens and (started.inputs[0].bytes or started.outputs[0].bytes):
                    box = started.inputs[0] if started.kind == "pull" else started.outputs[0]
                    yield "wait", "wait", _name(box), ""
            case "lease_open":
                yield "lease", "open", _name(event.inputs[0]), ""
            case "lease_close":
                yield "lease", "close", _name(self._opened[event.lease].inputs[0]), ""

    def _move(self, event: Event) -> Iterator[tuple[str, str, str, str]]:
        source, target = event.inputs[0], event.outputs[0]
        verb = "add" if event.kind == "accumulate" else "copy"
        rest = "" if target.in_arena else f"to {target.memory}"
        yield "copy", verb, self.part(source) if source.holds != target.memory else "", rest

    def _launch(self, event: Event) -> str:
        parts = [self.part(box) for box in event.inputs]
        text = " x ".join(dict.fromkeys(parts))
        if event.implementation:
            text += f" by {event.implementation}"
        if any(not box.bytes for box in (*event.inputs, *event.outputs)):
            return f"{text} (empty)"
        return f"{text} (masked)" if self._is_masked(event) else text

    def _is_masked(self, event: Event) -> bool:
        """Whether no pair of a launch is seen."""
        mask = self._masks.get(event.kernel)
        if mask is None or not {"sq", "sk"} <= set(event.positions):
            return False
        query, key = (event.positions[axis] for axis in ("sq", "sk"))
        queries, keys = event.inputs[0].sizes[1], event.inputs[1].sizes[1]
        if mask.right is not None and key - (query + queries - 1) > mask.right:
            return True
        return mask.left is not None and (key + keys - 1) - query < -mask.left

    def part(self, box: Box) -> str:
        """Name a box, with the positions of what is not all of its buffer."""
        name = _name(box)
        buffer = self._buffers.get(box.holds)
        if buffer is None or len(buffer.dims) != len(box.sizes):
            return name
        said = []
        for number, dim in enumerate(buffer.dims):
            if box.sizes[number] == dim.extent:
                continue
            runs = f"of {box.sizes[number]}" if box.parts is None else _runs(box.parts[number])
            said.append(f"{dim} {runs}")
        return f"{name}[{', '.join(said)}]" if said else name


def _name(box: Box) -> str:
    return box.holds or box.memory


def _runs(runs: Sequence[tuple[int, int]]) -> str:
    """Give intervals as ``3:5``, few of them joined by ``+``."""
    if len(runs) > _SHOWN_RUNS:
        return f"{sum(end - begin for begin, end in runs)} in {len(runs)} pieces"
    return "+".join(f"{begin}:{end}" for begin, end in runs)
