"""What lies where in the arenas, and for how long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..runtime.events import Box, Event
from ..tuner.quantity import format_bytes
from .html import Html, join, tag
from .names import badge
from .table import grid

__all__ = ["Block", "blocks", "memory_map"]

_WIDTH, _HEIGHT = 1000, 300


@dataclass(frozen=True, kw_only=True)
class Block:
    """Bytes of an arena that hold one thing.

    Attributes
    ----------
    low, high
        The bytes.
    holds
        The buffer whose elements these are; empty where it is not known.
    born, dies
        The numbers of the first and the last event that touch it.
    """

    low: int
    high: int
    holds: str
    born: int
    dies: int


def blocks(events: Sequence[Event], arena: str) -> list[Block]:
    """Read the lives of an arena off a rank's events; each write without a read begins one."""
    waits = {event.token: n for n, event in enumerate(events) if event.kind == "wait"}
    lives: defaultdict[tuple[int, int], list[Block]] = defaultdict(list)

    def touch(box: Box, number: int, until: int, new: bool) -> None:
        place = lives[box.offset, box.end]
        if place and not new:
            last = place[-1]
            place[-1] = Block(
                low=last.low,
                high=last.high,
                holds=last.holds or box.holds,
                born=last.born,
                dies=max(last.dies, until),
            )
        else:
            place.append(
                Block(low=box.offset, high=box.end, holds=box.holds, born=number, dies=until)
            )

    for number, event in enumerate(events):
        if not event.happens:
            continue
        until = waits.get(event.token, number) if event.token else number
        for box in event.inputs:
            if box.memory == arena and box.owner == event.rank and box.bytes:
                touch(box, number, until, new=False)
        # A launch merges into what is there, unless it says otherwise; so does a merge.
        fresh = event.kind not in {"launch", "accumulate"}
        written = event.overwrites or (fresh,) * len(event.outputs)
        for box, new in zip(event.outputs, written, strict=True):
            if box.memory == arena and box.owner == event.rank and box.bytes:
                touch(box, number, until, new=new)
    return sorted(
        (block for place in lives.values() for block in place),
        key=lambda block: (block.low, block.born),
    )


def memory_map(events: Sequence[Event], arena: str, arena_bytes: int, rank: int) -> Html:
    """Draw an arena of a rank: bytes upwards, events to the right."""
    if not arena_bytes:
        return tag("p", f"The plan has nothing in the {arena}.")
    found = blocks(events, arena)
    last = max(len(events), 1)
    kept = sorted({block.holds for block in found if block.holds})
    drawn = [
        tag(
            "rect",
            tag("title", _told(block, events)),
            x=_WIDTH * block.born / last,
            width=max(_WIDTH * (block.dies + 1 - block.born) / last, 2.0),
            y=_HEIGHT * (1 - block.high / arena_bytes),
            height=max(_HEIGHT * (block.high - block.low) / arena_bytes, 1.0),
            class_=f"hue{kept.index(block.holds) % 6}" if block.holds else "unknown",
        )
        for block in found
    ]
    scratch = _untouched(found, arena_bytes)
    whole = [
        tag(
            "rect",
            tag("title", f"scratch of kernels: {format_bytes(high - low)}"),
            x=0,
            width=_WIDTH,
            y=_HEIGHT * (1 - high / arena_bytes),
            height=max(_HEIGHT * (high - low) / arena_bytes, 1.0),
            class_="scratch",
        )
        for low, high in scratch
    ]
    told = f"{arena} of rank {rank}: {format_bytes(arena_bytes)} over {len(events)} events"
    legend = [
        tag("li", tag("span", class_=f"dot hue{n % 6}"), name) for n, name in enumerate(kept)
    ]
    if scratch:
        legend.append(tag("li", tag("span", class_="dot scratch"), "scratch of kernels"))
    if any(not block.holds for block in found):
        legend.append(
            tag("li", tag("span", class_="dot unknown"), "partial results and others")
        )
    figure = tag(
        "svg",
        tag("title", told),
        whole,
        drawn,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        class_="map",
        role="img",
        aria_label=told,
    )
    axes = tag(
        "div",
        tag("span", "first event"),
        tag("span", f"{len(events)} events"),
        class_="marks",
    )
    rows = [
        [
            f"{block.low:,} to {block.high:,}",
            format_bytes(block.high - block.low),
            block.holds or "not known",
            f"{block.born} to {block.dies}",
        ]
        for block in found[:200]
    ]
    rows += [
        [f"{low:,} to {high:,}", format_bytes(high - low), "scratch of kernels", "all"]
        for low, high in scratch
    ]
    heads = ["Bytes", "Size", "Holds", "Events"]
    return join(
        [
            tag(
                "p",
                f"{arena.capitalize()} {format_bytes(arena_bytes)}: the top of the picture.",
                class_="note",
            ),
            figure,
            axes,
            tag("ul", legend, class_="legend"),
            tag(
                "details",
                tag("summary", "The same as a table"),
                grid(
                    join([f"{arena.capitalize()} of rank {rank} ", badge("predicted")]),
                    heads,
                    rows,
                ),
            ),
        ]
    )


def _told(block: Block, events: Sequence[Event]) -> str:
    size = format_bytes(block.high - block.low)
    first, last = (events[n] for n in (block.born, block.dies))
    return f"{block.holds or 'data'}, {size}: from {first.kind} to {last.kind}"


def _untouched(found: Sequence[Block], arena_bytes: int) -> list[tuple[int, int]]:
    """Give the bytes that no event names: the scratch of kernels, where not just padding."""
    gaps, end = [], 0
    for block in sorted(found, key=lambda each: each.low):
        if block.low - end > 256:
            gaps.append((end, block.low))
        end = max(end, block.high)
    if arena_bytes - end > 256:
        gaps.append((end, arena_bytes))
    return gaps
