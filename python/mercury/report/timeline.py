"""What ranks do when, of two plans on one clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..simulator import Simulation, Span
from ..tuner.quantity import format_bytes, format_seconds
from .html import Html, join, tag
from .names import badge
from .table import grid

__all__ = ["KINDS", "timeline"]

KINDS = {"kernel": "kernel", "copy": "copy", "transfer": "transfer", "wait": "waits"}
_RANKS = 8
_BARS = 600  # of a lane; what is shorter than a pixel is drawn as one


def timeline(name: str, found: Simulation, clock: float) -> Html:
    """Draw one plan.

    Parameters
    ----------
    name
        Of the plan.
    found
        Its simulation.
    clock
        The time at the right end, in seconds: the same for plans side by side.
    """
    lanes: defaultdict[tuple[int, str], list[Span]] = defaultdict(list)
    for span in found.spans:
        lanes[span.rank, span.lane].append(span)
    ranks = sorted({rank for rank, _ in lanes})
    shown = ranks if len(ranks) <= _RANKS else [*ranks[: _RANKS - 1], _latest(found)]
    rows = [
        _lane(rank, lane, spans, clock)
        for (rank, lane), spans in sorted(lanes.items(), key=_order)
        if rank in shown
    ]
    left_out = len(ranks) - len(set(shown))
    head = tag(
        "h3",
        f"{name}: {format_seconds(found.time_s)}, {format_seconds(found.exposed_s)} exposed ",
        badge("predicted"),
    )
    note = (
        tag("p", f"{left_out} more ranks are not drawn.", class_="note") if left_out else None
    )
    return tag(
        "section",
        head,
        tag(
            "div",
            rows,
            _clock(clock),
            class_="lanes",
            role="list",
            aria_label=f"lanes of {name}",
        ),
        tag("p", note, class_="note"),
        tag(
            "details",
            tag("summary", "The same as a table"),
            _table(name, lanes, found.time_s),
        ),
        class_="timeline",
    )


def _order(item: tuple[tuple[int, str], list[Span]]) -> tuple[int, bool, str]:
    (rank, lane), _ = item
    return rank, lane != "compute", lane


def _latest(found: Simulation) -> int:
    return max(found.spans, key=lambda span: span.end_s).rank


def _lane(rank: int, lane: str, spans: Sequence[Span], clock: float) -> Html:
    bars = []
    step = max(1, len(spans) // _BARS)
    for number in range(0, len(spans), step):
        span = spans[number]
        # Of what is too short to be told apart, neighbours of one kind are drawn as one.
        last = spans[min(number + step, len(spans)) - 1]
        size = f", {format_bytes(span.bytes)}" if span.bytes else ""
        told = (
            f"{span.name}{size}: {format_seconds(span.start_s)} to {format_seconds(last.end_s)}"
        )
        bars.append(
            tag(
                "rect",
                tag("title", told),
                x=1000 * span.start_s / clock,
                width=max(1000 * (last.end_s - span.start_s) / clock, 1.0),
                y=0,
                height=10,
                class_=KINDS.get(span.kind, "copy"),
            )
        )
    busy = sum(span.end_s - span.start_s for span in spans if span.kind != "wait")
    told = f"rank {rank}, {lane}: busy for {format_seconds(busy)}"
    drawn = tag(
        "svg",
        tag("title", told),
        bars,
        viewBox="0 0 1000 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=told,
    )
    label = tag("span", f"{rank} " if lane == "compute" else "", tag("small", lane))
    return tag("div", label, drawn, class_="lane", role="listitem", tabindex="0")


def _clock(clock: float) -> Html:
    marks = [tag("span", format_seconds(clock * part / 4)) for part in range(5)]
    return tag("div", tag("span"), tag("div", marks, class_="marks"), class_="lane clock")


def _table(name: str, lanes: dict[tuple[int, str], list[Span]], time: float) -> Html:
    rows = []
    for (rank, lane), spans in sorted(lanes.items(), key=_order):
        by_kind: defaultdict[str, float] = defaultdict(float)
        for span in spans:
            by_kind[span.kind] += span.end_s - span.start_s
        moved = sum(span.bytes for span in spans if span.kind == "transfer")
        rows.append(
            [
                f"rank {rank}, {lane}",
                *(format_seconds(by_kind[kind]) for kind in KINDS),
                format_bytes(moved),
                f"{sum(by_kind[k] for k in KINDS if k != 'wait') / time:.0%}" if time else "",
            ]
        )
    heads = ["Lane", "Kernels", "Copies", "Transfers", "Waits", "Sent", "Busy"]
    return grid(join([f"{name}, by lane ", badge("predicted")]), heads, rows)
