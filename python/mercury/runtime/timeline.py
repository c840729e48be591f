"""The events of a plan on one clock, as a trace that Perfetto and Chrome show.

Times are nominal: a multiply-accumulate of a kernel takes a unit, masked ones too, and so does
each byte that is moved or filled. It shows what may overlap with what, and who waits for
whom; it is not a measurement, nor a prediction.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ..dsl.mesh import Mesh
from ..errors import RunError
from .events import Event, crossed_level, messages

__all__ = ["NOMINAL", "Arrow", "Slice", "Timeline", "name_tracks", "to_chrome", "work"]

NOMINAL = (
    "nominal: a unit for each multiply-accumulate of a kernel and for each byte moved; "
    "a schedule of events, not a measurement"
)


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Something that lasts: ``track`` is ``"compute"`` or a level."""

    rank: int
    track: str
    begin: int
    end: int
    name: str
    event: Event


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """A message, from the slice of its sender to that of its receiver."""

    sender: int
    receiver: int
    level: str
    begin: int
    end: int
    bytes: int
    sent: Slice
    received: Slice


def work(launch: Event) -> int:
    """Count the multiply-accumulates of a launch, masked ones too.

    A kernel whose shapes are not known counts an operation for each element of its results.
    """
    sizes: dict[str, int] = {}
    boxes = (*launch.inputs, *launch.outputs)
    for shape, box in zip(_shapes(launch.signature), boxes, strict=False):
        for letter, size in zip(shape, box.sizes, strict=False):
            sizes.setdefault(letter, size)
    grouped = {letter for letter in sizes if "/" in letter}
    if launch.kernel in {"attention_fwd", "attention_bwd"}:
        pairs = prod(sizes[letter] for letter in ("b", "h", "sq", "sk"))
        per_q, per_v = (1, 1) if launch.kernel == "attention_fwd" else (3, 2)
        return pairs * (per_q * sizes["d"] + per_v * sizes["e"])
    if sizes:
        return prod(size for letter, size in sizes.items() if letter not in grouped)
    return sum(prod(box.sizes) for box in launch.outputs)


def _shapes(signature: str) -> list[list[str]]:
    return [piece.split() for piece in signature.replace("->", ",").split(",") if signature]


def _named(event: Event) -> str:
    boxes = event.outputs or event.inputs
    return ", ".join(dict.fromkeys(box.holds or box.memory for box in boxes))


@dataclass(kw_only=True, eq=False)
class _Transfer:
    """A communication of a rank, from its start to its wait."""

    event: Event
    begin: int
    outstanding: int = 0
    done: int = 0


@dataclass(kw_only=True, eq=False)
class _Rank:
    """How far a rank has come, and when that is."""

    events: Sequence[Event]
    at: int = 0
    time: int = 0
    transfers: dict[int, _Transfer] = field(default_factory=dict)
    leases: dict[int, tuple[tuple[Any, ...], int]] = field(default_factory=dict)
    opened: dict[tuple[str, ...], int] = field(default_factory=lambda: defaultdict(int))


class Timeline:
    """Plays the events of all ranks of a mesh against each other.

    Parameters
    ----------
    mesh
        The ranks.
    events
        What each of them does.

    Attributes
    ----------
    slices, arrows
        What happened, and the messages.

    Raises
    ------
    RunError
        When no rank can go on.
    """

    def __init__(self, mesh: Mesh, events: Sequence[Event]) -> None:
        self.mesh = mesh
        self.slices: list[Slice] = []
        self.arrows: list[Arrow] = []
        own: dict[int, list[Event]] = {rank: [] for rank in range(mesh.size)}
        for event in events:
            own[event.rank].append(event)
        self._ranks = {rank: _Rank(events=done) for rank, done in own.items()}
        self._sends: dict[Any, deque[_Transfer]] = defaultdict(deque)
        self._receives: dict[Any, deque[_Transfer]] = defaultdict(deque)
        self._leases: dict[tuple[Any, ...], Slice] = {}
        self._closing: dict[tuple[Any, ...], dict[int, int]] = defaultdict(dict)
        self._free: dict[tuple[int, str], int] = defaultdict(int)
        self._open: list[tuple[_Transfer, _Transfer | Slice, int, int]] = []
        self._play()
        self._draw()

    def _play(self) -> None:
        moved = True
        while moved:
            moved = False
            for rank in self._ranks.values():
                while rank.at < len(rank.events) and self._step(rank, rank.events[rank.at]):
                    rank.at += 1
                    moved = True
        stuck = [r for r, rank in self._ranks.items() if rank.at < len(rank.events)]
        if stuck:
            event = self._ranks[stuck[0]].events[self._ranks[stuck[0]].at]
            raise RunError(f"rank {stuck[0]} cannot go on at its {event.kind}, {event.source}")

    def _step(self, rank: _Rank, event: Event) -> bool:
        """Do an event, unless it has to wait for another rank."""
        match event.kind:
            case "launch" | "fill" | "copy" | "accumulate":
                self._compute(rank, event)
            case "exchange" | "all_gather":
                self._start(rank, event)
            case "pull":
                return self._pull(rank, event)
            case "wait":
                return self._wait(rank, event)
            case "lease_open":
                rank.opened[event.levels] += 1
                key = (event.levels, event.members, rank.opened[event.levels])
                rank.leases[event.lease] = (key, rank.time)
                self._leases[(*key, event.rank)] = Slice(
                    rank=event.rank,
                    track=event.levels[0],
                    begin=rank.time,
                    end=rank.time,
                    name=f"lease {_named(event)}",
                    event=event,
                )
            case "lease_close":
                return self._close(rank, event)
        return True

    def _compute(self, rank: _Rank, event: Event) -> None:
        launch = event.kind == "launch"
        length = work(event) if launch else sum(box.bytes for box in event.outputs)
        if not length:
            return
        name = event.kernel if launch else f"{event.kind} {_named(event)}"
        begin, rank.time = rank.time, rank.time + length
        self._slice(event, "compute", begin, rank.time, name)

    def _slice(self, event: Event, track: str, begin: int, end: int, name: str) -> Slice:
        made = Slice(rank=event.rank, track=track, begin=begin, end=end, name=name, event=event)
        self.slices.append(made)
        return made

    def _start(self, rank: _Rank, event: Event) -> None:
        own = _Transfer(event=event, begin=rank.time, done=rank.time)
        rank.transfers[event.token] = own
        if not event.happens:
            return
        if event.kind == "exchange":
            to, sender = event.to, event.sender
            ends = [(True, to), (False, sender)]
        else:
            others = [member for member in event.members if member != event.rank]
            ends = [(sends, other) for other in others for sends in (True, False)]
        for sends, peer in ends:
            ranks = (event.rank, peer) if sends else (peer, event.rank)
            channel = (event.levels, event.kind, *ranks)
            (self._sends if sends else self._receives)[channel].append(own)
            own.outstanding += 1
            self._match(channel)

    def _match(self, channel: tuple[Any, ...]) -> None:
        sends, receives = self._sends[channel], self._receives[channel]
        while sends and receives:
            sent, received = sends.popleft(), receives.popleft()
            begin = max(sent.begin, received.begin)
            end = self._carry(sent.event, received, begin, sent)
            for one in (sent, received):
                one.outstanding -= 1
                one.done = max(one.done, end)

    def _carry(self, event: Event, to: _Transfer, begin: int, source: _Transfer | Slice) -> int:
        """Move the bytes of a message; a rank receives one after another on a level."""
        sender = source.rank if isinstance(source, Slice) else source.event.rank
        receiver = to.event.rank
        size = event.inputs[0].bytes
        if sender == receiver or not size:
            return begin
        link = (receiver, crossed_level(self.mesh, sender, receiver))
        begin = max(begin, self._free[link])
        self._free[link] = begin + size
        self._open.append((to, source, begin, begin + size))
        return begin + size

    def _pull(self, rank: _Rank, event: Event) -> bool:
        own = _Transfer(event=event, begin=rank.time, done=rank.time)
        key, _ = rank.leases[event.lease]
        if event.happens:
            lease = self._leases.get((*key, event.sender))
            if lease is None:
                return False
            own.begin = own.done = rank.time = max(rank.time, lease.begin)
            own.done = self._carry(event, own, own.begin, lease)
        rank.transfers[event.token] = own
        return True

    def _wait(self, rank: _Rank, event: Event) -> bool:
        own = rank.transfers[event.token]
        if own.outstanding:
            return False
        begin, rank.time = rank.time, max(rank.time, own.done)
        if begin < rank.time:
            self._slice(event, "compute", begin, rank.time, f"wait {_named(own.event)}")
        if own.event.happens and own.begin < rank.time:
            name = f"{own.event.kind} {_named(own.event)}"
            track = self._track(own.event)
            self._slice(own.event, track, own.begin, rank.time, name)
        return True

    def _track(self, event: Event) -> str:
        moved = list(messages(self.mesh, event))
        if moved:
            return moved[0].level
        if event.sender not in (None, event.rank):
            return crossed_level(self.mesh, event.sender, event.rank)
        return event.levels[0]

    def _close(self, rank: _Rank, event: Event) -> bool:
        key, _ = rank.leases[event.lease]
        closing = self._closing[key]
        closing.setdefault(event.rank, rank.time)
        if len(closing) < len(event.members):
            return False
        rank.time = max(closing.values())
        lease = self._leases[(*key, event.rank)]
        if lease.begin < rank.time:
            # A slice of the level's track, with the bounds that are known now.
            self._leases[(*key, event.rank)] = self._slice(
                lease.event, lease.track, lease.begin, rank.time, lease.name
            )
        return True

    def _draw(self) -> None:
        """Make the messages arrows, now that the slices at both ends are there."""
        drawn = {id(part.event): part for part in self.slices if part.track != "compute"}
        for to, source, begin, end in self._open:
            sent, received = drawn[id(source.event)], drawn[id(to.event)]
            self.arrows.append(
                Arrow(
                    sender=sent.rank,
                    receiver=received.rank,
                    level=crossed_level(self.mesh, sent.rank, received.rank),
                    begin=begin,
                    end=end,
                    bytes=end - begin,
                    sent=sent,
                    received=received,
                )
            )


def to_chrome(mesh: Mesh, events: Sequence[Event]) -> dict[str, Any]:
    """Give the trace in the format that Perfetto and Chrome read.

    One process a rank; in it one track for what it computes and waits for, and for each level
    as many as there are communications at a time, from start to wait. Arrows go from send to
    receive. A unit of time is shown as a nanosecond.

    Parameters
    ----------
    mesh
        The ranks.
    events
        Of all ranks, from `Plan.events`.

    Returns
    -------
    dict
        To be written as JSON.
    """
    timeline = Timeline(mesh, events)
    lanes: dict[tuple[int, str], list[int]] = defaultdict(list)
    numbers: dict[int, int] = {}
    tracks: dict[tuple[int, int], str] = {}
    made: list[dict[str, Any]] = []
    for part in sorted(timeline.slices, key=lambda s: (s.rank, s.track, s.begin, -s.end)):
        ends = lanes[part.rank, part.track]
        lane = next((n for n, end in enumerate(ends) if end <= part.begin), len(ends))
        ends[lane:] = [part.end, *ends[lane + 1 :]]
        first = 0 if part.track == "compute" else 1 + 1000 * (1 + mesh.names.index(part.track))
        thread = numbers[id(part)] = first + lane
        tracks[part.rank, thread] = part.track + (f" ({lane + 1})" if lane else "")
        made.append(
            {
                "ph": "X",
                "name": part.name,
                "cat": part.event.kind,
                "ts": part.begin / 1000,
                "dur": (part.end - part.begin) / 1000,
                "pid": part.rank,
                "tid": thread,
                "args": _arguments(part.event),
            }
        )
    for number, arrow in enumerate(timeline.arrows):
        both = {"name": "message", "cat": arrow.level, "id": number}
        ends_of = (("s", arrow.sent, arrow.begin), ("f", arrow.received, arrow.end - 1))
        for phase, part, time in ends_of:
            bound = {"bp": "e"} if phase == "f" else {}
            at = {"ts": time / 1000, "pid": part.rank, "tid": numbers[id(part)]}
            made.append({"ph": phase, **both, **at, **bound, "args": {"bytes": arrow.bytes}})
    return {
        "displayTimeUnit": "ns",
        "otherData": {"producer": "mercury explain", "times": NOMINAL},
        "traceEvents": [*name_tracks(mesh, tracks), *made],
    }


def name_tracks(mesh: Mesh, tracks: dict[tuple[int, int], str]) -> list[dict[str, Any]]:
    """Give the events of a trace that name its processes, one a rank, and their tracks.

    Parameters
    ----------
    mesh
        The ranks.
    tracks
        The name of each track, by rank and thread.
    """

    def name(what: str, rank: int, thread: int, **args: object) -> dict[str, Any]:
        ends = {"ts": 0, "pid": rank, "tid": thread}
        return {"ph": "M", "name": what, **ends, "args": args}

    found = []
    for rank in range(mesh.size):
        at = ", ".join(f"{level} {place}" for level, place in mesh.coordinates(rank).items())
        found.append(name("process_name", rank, 0, name=f"rank {rank} ({at})"))
        found.append(name("process_sort_index", rank, 0, sort_index=rank))
    for (rank, thread), track in sorted(tracks.items()):
        found.append(name("thread_name", rank, thread, name=track))
        found.append(name("thread_sort_index", rank, thread, sort_index=thread))
    return found


def _arguments(event: Event) -> dict[str, Any]:
    given: dict[str, Any] = {"op": event.op, "steps": list(event.steps)}
    if event.source:
        given["source"] = event.source
    if event.inputs and event.levels:
        given["bytes"] = event.inputs[0].bytes
    if event.to is not None:
        given["to"] = event.to
    if event.sender is not None:
        given["from"] = event.sender
    if event.kernel:
        given["kernel"] = event.kernel
        given["tiles"] = ["x".join(map(str, box.sizes)) for box in event.inputs]
    return given
