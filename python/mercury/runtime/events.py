"""What each rank of a plan does, event by event, read from the plan without running it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

from ..dsl.mesh import Mesh
from ..errors import CompileError, python_location

__all__ = [
    "ARENAS",
    "COLLECTIVES",
    "Box",
    "Event",
    "Message",
    "Traffic",
    "crossed_level",
    "messages",
    "read",
    "traffic",
]


ARENAS = ("local arena", "symmetric arena")
"""The plan's own memory on each rank; peers read the second."""

COLLECTIVES = frozenset(
    {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast"}
)
"""What all ranks of a group do together."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """Elements in memory.

    Attributes
    ----------
    memory
        ``"local arena"``, ``"symmetric arena"`` (what peers may read of the plan's own memory),
        or the name of a buffer of the program.
    owner
        The rank whose memory it is: another one for what is pulled.
    offset, strides
        In bytes.
    holds
        The buffer of the program whose elements these are, as far as moves tell; partial
        results count as the output they become. Empty where it is not known.
    parts
        For each dimension of that buffer, the indices as half-open intervals; None where it
        is not known, as with partial results.
    """

    memory: str
    owner: int
    offset: int
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    bytes: int
    holds: str = ""
    parts: tuple[tuple[tuple[int, int], ...], ...] | None = None

    @property
    def in_arena(self) -> bool:
        """Whether it is the plan's own memory."""
        return self.memory in ARENAS

    @property
    def end(self) -> int:
        """The end of the last byte."""
        if not self.bytes:
            return self.offset
        elements = 1
        for size in self.sizes:
            elements *= size
        steps = zip(self.sizes, self.strides, strict=True)
        return self.offset + sum((n - 1) * s for n, s in steps) + self.bytes // elements


@dataclass(frozen=True, kw_only=True)
class Event:
    """One thing that a rank does.

    Attributes
    ----------
    kind
        ``"launch"``, ``"exchange"``, ``"pull"``, a collective (`COLLECTIVES`), ``"wait"``,
        ``"fill"``, ``"copy"``, ``"accumulate"``, ``"lease_open"`` or ``"lease_close"``.
    rank
        A rank of the mesh, as all ranks here.
    steps
        The indices of the loops around it, outermost first.
    place
        Orders the events of all ranks; those of one iteration outside of inner loops share it.
    op, source
        The op, and the user's line that it comes from, ``"file.py:12"``.
    kernel, implementation, signature
        Of a launch: what, by whom (empty: the compiler), and its shapes by letter where known.
    positions
        Of a launch: where its tiles begin among all positions, by dimension; 0 where its
        mask does not ask.
    inputs, outputs
        What it reads and what it writes.
    overwrites
        Of a launch: for each output, whether it is written whatever was there; the others
        are merged into.
    levels, members
        Of the group that it communicates in.
    to, sender
        Whom an exchange sends to, and who sends to this rank, is pulled from or broadcasts.
    lengths
        For each member, the bytes that it contributes to an all_gather, or that this rank
        has for it in a reduce_scatter or all_to_all.
    happens
        Whether a communication happens at all on this rank, at this step.
    token
        What a start gives and a wait takes; from 1 in the order of starts, 0 for none.
    lease
        From 1 in the order of opening, 0 for none.
    """

    kind: str
    rank: int
    steps: tuple[int, ...]
    place: tuple[int, ...]
    op: str
    source: str
    kernel: str
    implementation: str
    signature: str
    positions: Mapping[str, int]
    inputs: tuple[Box, ...]
    outputs: tuple[Box, ...]
    overwrites: tuple[bool, ...] = ()
    levels: tuple[str, ...]
    members: tuple[int, ...]
    to: int | None
    sender: int | None
    happens: bool
    token: int
    lease: int
    lengths: tuple[int, ...] = ()

    def bytes_to(self, member: int) -> int:
        """Give the bytes that a rank of the group gets of this one."""
        if self.kind in {"reduce_scatter", "all_to_all"}:
            return self.lengths[self.members.index(member)]
        return self.inputs[0].bytes

    def to_json(self, mesh: Mesh) -> dict[str, Any]:
        """Give the event as JSON has it; peers come with their coordinates."""
        fields = asdict(self)
        for name in ("to", "sender"):
            peer = fields[name]
            if peer is not None:
                fields[name] = {"rank": peer, "coordinates": mesh.coordinates(peer)}
        return fields


@dataclass(frozen=True, kw_only=True)
class Message:
    """Bytes that go from one rank to another."""

    sender: int
    receiver: int
    level: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes and messages of a level."""

    bytes: int = 0
    messages: int = 0


def crossed_level(mesh: Mesh, one: int, other: int) -> str:
    """Give the outermost level on which two different ranks differ.

    Examples
    --------
    >>> crossed_level(Mesh(node=2, gpu=2), 0, 3)
    'node'
    """
    here, there = mesh.coordinates(one), mesh.coordinates(other)
    return next(level for level in mesh if here[level] != there[level])


def messages(mesh: Mesh, event: Event) -> Iterator[Message]:
    """Give what an event moves between ranks; a message belongs to its sender, or puller."""
    if not event.happens or event.kind not in COLLECTIVES | {"exchange", "pull"}:
        return
    if event.kind == "pull":
        ends = [(event.inputs[0].owner, event.rank)]
    elif event.kind == "exchange":
        ends = [(event.rank, event.to if event.to is not None else event.rank)]
    elif event.kind == "broadcast" and event.sender != event.rank:
        ends = []
    else:
        ends = [(event.rank, member) for member in event.members]
    for sender, receiver in ends:
        size = event.bytes_to(receiver) if event.kind != "pull" else event.inputs[0].bytes
        if sender != receiver and size:
            yield Message(
                sender=sender,
                receiver=receiver,
                level=crossed_level(mesh, sender, receiver),
                bytes=size,
            )


def traffic(mesh: Mesh, events: Iterable[Event]) -> dict[str, Traffic]:
    """Add up what events move, by level."""
    total = dict.fromkeys(mesh, Traffic())
    for event in events:
        for message in messages(mesh, event):
            so_far = total[message.level]
            total[message.level] = Traffic(
                bytes=so_far.bytes + message.bytes, messages=so_far.messages + 1
            )
    return total


def read(module: Any, name: str, buffers: tuple[str, ...], rank: int) -> list[Event]:
    """Follow one rank through a lowered plan.

    Parameters
    ----------
    module
        An ``mlir.ir.Module`` that holds it.
    name
        Of the plan.
    buffers
        The names of its arguments.
    rank
        Of the mesh.

    Raises
    ------
    CompileError
        When the plan does something that is not known.
    """
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

    found, diagnostics = _mercury.trace_plan(module, name, rank)
    if found is None:
        raise CompileError.from_diagnostics(diagnostics, otherwise="the plan cannot be traced")
    leased: dict[int, dict[str, Any]] = {}
    events = []
    for fields in found:
        if fields["kind"] == "lease_open":
            leased[fields["lease"]] = fields["inputs"][0]
        events.append(_event(fields, rank, buffers, leased))
    return _name_contents(events)


def _event(
    fields: dict[str, Any],
    rank: int,
    buffers: tuple[str, ...],
    leased: Mapping[int, dict[str, Any]],
) -> Event:
    def box(given: dict[str, Any]) -> Box:
        memory, number, offset = given["memory"], given["number"], given["offset"]
        if memory == "leased":
            # All ranks run one text: a peer opened what this rank opened.
            base = leased[number]
            memory, number, offset = base["memory"], base["number"], base["offset"] + offset
        rest = {key: given[key] for key in ("owner", "dtype", "sizes", "strides", "bytes")}
        where = buffers[number] if memory == "argument" else memory
        return Box(memory=where, offset=offset, **rest)

    mixed = zip_longest(fields["sections"], fields["steps"])
    kept = ("kind", "steps", "op", "kernel", "implementation", "signature", "positions")
    more = ("levels", "members", "happens", "token", "lease", "lengths")
    return Event(
        rank=rank,
        place=tuple(number for pair in mixed for number in pair if number is not None),
        source=python_location(fields["location"]),
        inputs=tuple(map(box, fields["inputs"])),
        outputs=tuple(map(box, fields["outputs"])),
        overwrites=tuple(map(bool, fields["overwrites"])),
        to=None if fields["to"] < 0 else fields["to"],
        sender=None if fields["from"] < 0 else fields["from"],
        **{key: fields[key] for key in (*kept, *more)},
    )


class _Contents:
    """Which buffer's elements are where in the arenas."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[int, int, str]]] = {arena: [] for arena in ARENAS}

    def of(self, box: Box) -> str:
        if not box.in_arena:
            return box.memory
        names = {
            name
            for begin, end, name in self._parts[box.memory]
            if begin < box.end and box.offset < end
        }
        return names.pop() if len(names) == 1 else ""

    def set(self, box: Box, name: str) -> None:
        if not box.in_arena or not box.bytes:
            return
        kept = []
        for begin, end, held in self._parts[box.memory]:
            kept += [
                (low, high, held)
                for low, high in ((begin, min(end, box.offset)), (max(begin, box.end), end))
                if low < high
            ]
        self._parts[box.memory] = kept + ([(box.offset, box.end, name)] if name else [])


_MOVES = COLLECTIVES | {"copy", "exchange", "pull"}


def _name_contents(events: list[Event]) -> list[Event]:
    """Follow inputs forward from where they are read, and outputs back from their buffers."""
    contents = _Contents()
    forward = []
    for event in events:
        inputs = tuple(replace(box, holds=contents.of(box)) for box in event.inputs)
        # What does not happen writes nothing, nor does it say what is there.
        for box in event.outputs if event.happens else ():
            contents.set(box, inputs[0].holds if event.kind in _MOVES else "")
        outputs = tuple(replace(box, holds=contents.of(box)) for box in event.outputs)
        forward.append(replace(event, inputs=inputs, outputs=outputs))
    contents = _Contents()
    backward = []
    for event in reversed(forward):
        outputs = tuple(replace(b, holds=b.holds or contents.of(b)) for b in event.outputs)
        for box, fresh in zip(
            outputs, event.overwrites or [event.kind == "fill"], strict=False
        ):
            if fresh:
                contents.set(box, "")
        inputs = event.inputs
        if event.kind in _MOVES and event.happens and not inputs[0].holds:
            contents.set(inputs[0], outputs[0].holds)
        inputs = tuple(replace(box, holds=box.holds or contents.of(box)) for box in inputs)
        backward.append(replace(event, inputs=inputs, outputs=outputs))
    return backward[::-1]
