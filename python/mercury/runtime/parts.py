"""Which positions of which buffer each tile of a plan holds, found by following its moves."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import Box, Event
from .layout import BufferLayout

__all__ = ["follow"]

Indices = tuple[NDArray[np.int64], ...]


def follow(layouts: Mapping[str, BufferLayout], events: Sequence[Event]) -> list[Event]:
    """Say for each box which indices of its buffer it holds, where moves tell.

    Parameters
    ----------
    layouts
        Of each buffer of the program.
    events
        Of all ranks.

    Returns
    -------
    list of Event
        The events in the same order; `Box.parts` is set where it is known.
    """
    own: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        own[event.rank].append(event)
    return _Follower(layouts=layouts, own=own).follow()


@dataclass(kw_only=True)
class _Region:
    box: Box
    indices: Indices


@dataclass(kw_only=True)
class _Follower:
    """Plays ranks against each other; a rank stops at a wait for what was not sent yet."""

    layouts: Mapping[str, BufferLayout]
    own: Mapping[int, Sequence[Event]]
    # What lies where, by rank and arena.
    arenas: dict[tuple[int, str], list[_Region]] = field(
        default_factory=lambda: defaultdict(list)
    )
    sent: dict[Any, deque[Indices | None]] = field(default_factory=lambda: defaultdict(deque))
    dealt: dict[Any, deque[list[_Region]]] = field(default_factory=lambda: defaultdict(deque))
    pulled: dict[tuple[int, int], Indices | None] = field(default_factory=dict)
    held: dict[tuple[str, int], Indices] = field(default_factory=dict)

    def follow(self) -> list[Event]:
        told: dict[int, list[Event]] = {rank: [] for rank in self.own}
        starts: dict[int, dict[int, Event]] = {rank: {} for rank in self.own}
        moved = True
        while moved:
            moved = False
            for rank, events in self.own.items():
                while len(told[rank]) < len(events):
                    event = events[len(told[rank])]
                    if event.token and event.kind != "wait":
                        starts[rank][event.token] = event
                    started = starts[rank][event.token] if event.kind == "wait" else event
                    if event.kind == "wait" and not self._receive(started):
                        break
                    told[rank].append(self._tell(event))
                    moved = True
        # A plan that hangs is for the checker to refuse: the rest is told as it is.
        return [
            event
            for rank, events in self.own.items()
            for event in (*told[rank], *events[len(told[rank]) :])
        ]

    def _tell(self, event: Event) -> Event:
        inputs = [self._read(event.rank, box) for box in event.inputs]
        match event.kind:
            case "exchange" if event.happens:
                self.sent[event.levels, event.rank, event.to].append(inputs[0])
            case "all_gather":
                for member in event.members:
                    self.sent[event.levels, event.rank, member].append(inputs[0])
            case "all_to_all":
                self._deal(event)
            case "broadcast" if event.happens and event.sender == event.rank:
                for member in event.members:
                    self.sent[event.levels, event.rank, member].append(inputs[0])
            case "reduce_scatter" | "all_reduce":
                # Members take part together, whatever partial results they give.
                for member in event.members:
                    self.sent[event.levels, event.rank, member].append(None)
            case "pull":
                self.pulled[event.rank, event.token] = inputs[0]
            case "copy":
                self._write(event.rank, event.outputs[0], inputs[0])
            case "launch" | "fill" | "accumulate":
                for box in event.outputs:
                    self._write(event.rank, box, None)
        outputs = [self._read(event.rank, box) for box in event.outputs]
        return replace(
            event, inputs=_set(event.inputs, inputs), outputs=_set(event.outputs, outputs)
        )

    def _receive(self, started: Event) -> bool:
        """End a communication, if what it receives was sent."""
        if not started.happens:
            return True
        if started.kind == "all_gather":
            return self._gather(started)
        if started.kind == "all_to_all":
            return self._take(started)
        if started.kind in {"reduce_scatter", "all_reduce"}:
            return self._reduce(started)
        found: Indices | None = None
        if started.kind in {"exchange", "broadcast"}:
            channel = self.sent[started.levels, started.sender, started.rank]
            if not channel:
                return False
            found = channel.popleft()
        elif started.kind == "pull":
            found = self.pulled[started.rank, started.token]
        self._write(started.rank, started.outputs[0], found)
        return True

    def _reduce(self, started: Event) -> bool:
        """End a reduction: what it makes are partial results."""
        channels = [self.sent[started.levels, who, started.rank] for who in started.members]
        if not all(channels):
            return False
        for channel in channels:
            channel.popleft()
        self._write(started.rank, started.outputs[0], None)
        return True

    def _deal(self, event: Event) -> None:
        """Start an all_to_all: what lies in each member's slot goes to it."""
        source = event.inputs[0]
        slot = source.bytes // len(event.members)
        for number, member in enumerate(event.members):
            begin = source.offset + number * slot
            inside = [
                replace(region, box=replace(region.box, offset=region.box.offset - begin))
                for region in self.arenas[event.rank, source.memory]
                if begin <= region.box.offset and region.box.end <= begin + slot
            ]
            self.dealt[event.levels, event.rank, member].append(inside)

    def _take(self, started: Event) -> bool:
        """End an all_to_all: a member's slot holds what it sent."""
        channels = [self.dealt[started.levels, who, started.rank] for who in started.members]
        if not all(channels):
            return False
        slots = started.outputs[0]
        self._write(started.rank, slots, None)
        for number, channel in enumerate(channels):
            begin = slots.offset + number * (slots.bytes // len(channels))
            for region in channel.popleft():
                box = replace(
                    region.box,
                    memory=slots.memory,
                    owner=started.rank,
                    offset=region.box.offset + begin,
                )
                self._write(started.rank, box, region.indices)
        return True

    def _gather(self, started: Event) -> bool:
        """End an all_gather: what a member sent is packed in its slot."""
        channels = [self.sent[started.levels, who, started.rank] for who in started.members]
        if not all(channels):
            return False
        slots, source = started.outputs[0], started.inputs[0]
        self._write(started.rank, slots, None)
        element = source.bytes // max(1, prod(source.sizes))
        for number, channel in enumerate(channels):
            found = channel.popleft()
            if found is None:
                continue
            sizes = tuple(map(len, found))
            slot = replace(
                slots,
                offset=slots.offset + number * (slots.bytes // len(channels)),
                sizes=sizes,
                strides=_row_major(sizes, element),
                bytes=prod(sizes) * element,
            )
            self._write(started.rank, slot, found)
        return True

    def _write(self, rank: int, box: Box, indices: Indices | None) -> None:
        if not box.in_arena or not box.bytes:
            return
        kept = [
            region
            for region in self.arenas[rank, box.memory]
            if region.box.end <= box.offset or box.end <= region.box.offset
        ]
        if indices is not None and tuple(map(len, indices)) == box.sizes:
            kept.append(_Region(box=box, indices=indices))
        self.arenas[rank, box.memory] = kept

    def _read(self, rank: int, box: Box) -> Indices | None:
        if not box.bytes:
            return None
        if not box.in_arena:
            return self._of_buffer(box)
        for region in self.arenas[rank, box.memory]:
            if region.box.offset <= box.offset and box.end <= region.box.end:
                begin = box.offset - region.box.offset
                return _slice(region.indices, region.box.strides, box, begin)
        return _join(box, self.arenas[rank, box.memory])

    def _of_buffer(self, box: Box) -> Indices | None:
        key = (box.memory, box.owner)
        if key not in self.held:
            self.held[key] = self.layouts[box.memory].indices(box.owner)
        whole = self.held[key]
        element = box.bytes // prod(box.sizes)
        strides = _row_major(tuple(map(len, whole)), element)
        return _slice(whole, strides, box, box.offset)


def _row_major(sizes: tuple[int, ...], element: int) -> tuple[int, ...]:
    """Give the strides of contiguous elements, in bytes."""
    return tuple(element * prod(sizes[dim + 1 :]) for dim in range(len(sizes)))


def _slice(whole: Indices, strides: tuple[int, ...], box: Box, begin: int) -> Indices | None:
    """Give the indices of a box that begins so many bytes into another, if it is in there."""
    if len(whole) != len(box.sizes):
        return None
    found = []
    for held, step, size, stride in zip(whole, strides, box.sizes, box.strides, strict=True):
        at, begin = divmod(begin, step)
        if at + size > len(held) or (size != 1 and stride != step):
            return None
        found.append(held[at : at + size])
    return tuple(found) if begin == 0 else None


def _join(box: Box, regions: Sequence[_Region]) -> Indices | None:
    """Give the indices of a box that was put together of several; None where one is missing."""
    found = [np.full(size, -1) for size in box.sizes]
    filled = 0
    for region in regions:
        if region.box.offset < box.offset or box.end < region.box.end:
            continue
        if len(region.indices) != len(found):
            return None
        begin = region.box.offset - box.offset
        for own, held, step in zip(found, region.indices, box.strides, strict=True):
            at, begin = divmod(begin, step)
            there = own[at : at + len(held)]
            if len(there) != len(held) or np.any((there != -1) & (there != held)):
                return None
            there[:] = held
        filled += region.box.bytes
    return tuple(found) if filled == box.bytes else None


def _set(boxes: tuple[Box, ...], found: Sequence[Indices | None]) -> tuple[Box, ...]:
    return tuple(
        box if indices is None else replace(box, parts=tuple(map(_runs, indices)))
        for box, indices in zip(boxes, found, strict=True)
    )


def _runs(indices: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Give rising indices as half-open intervals."""
    ends = np.flatnonzero(np.diff(indices) != 1)
    pieces = np.split(indices, ends + 1)
    return tuple((int(piece[0]), int(piece[-1]) + 1) for piece in pieces if len(piece))
