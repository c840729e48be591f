"""Records as a table, for people and for pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .goals import GOALS
from .record import Record

__all__ = ["brief_table", "peers_table", "table"]


def table(records: Sequence[Record], *, every: bool = False) -> str:
    """Give a Markdown table: floor, ours and the best peer of each workload.

    Parameters
    ----------
    records
        What was measured.
    every
        Show every plan; only the chosen ones when not.
    """
    shown = [record for record in records if every or record.chosen]
    foretold = every and any(record.predicted_ms is not None for record in shown)
    head = [
        "workload",
        *(["plan"] if every else []),
        "floor, ms",
        "ours, ms",
        *(["predicted, ms"] if foretold else []),
        "ratio to floor",
        "goal",
        "best peer, ms",
        "ours / peer",
        "error",
    ]
    rows = [
        [
            record.workload,
            *([record.name] if every else []),
            _ms(record.floor_ms),
            _ms(record.ours_ms),
            *([_ms(record.predicted_ms)] if foretold else []),
            _ratio(record),
            _goal(record),
            f"{record.best_peer} {_ms(record.best_peer_ms)}" if record.best_peer else "-",
            _peer_ratio(record),
            record.failed or ("-" if record.error is None else f"{record.error:.1e}"),
        ]
        for record in shown
    ]
    return _markdown(head, rows)


def brief_table(records: Sequence[Record]) -> str:
    """Give a Markdown table of ratios alone: the chosen plan of each workload, for a README."""
    rows = [
        [
            record.workload,
            "-" if record.ratio_to_floor is None else f"{record.ratio_to_floor:.3f}",
            _goal(record),
            _peer_ratio(record),
            record.best_peer or "-",
        ]
        for record in records
        if record.chosen
    ]
    return _markdown(["workload", "to floor", "goal", "to best peer", "best peer"], rows)


def peers_table(records: Sequence[Record]) -> str:
    """Give a Markdown table of every peer's time on each workload, and what is absent."""
    first = {record.workload: record for record in reversed(records)}
    names = sorted({name for record in records for name in record.peers})
    rows, notes = [], []
    for workload, record in reversed(first.items()):
        cells = [workload, _ms(record.floor_ms)]
        for name in names:
            peer = record.peers.get(name)
            cells.append(_ms(peer.ms) if peer and peer.ms is not None else "-")
            if peer and peer.absent:
                notes.append(f"- {workload}, {name}: {peer.absent}")
        rows.append(cells)
    return _markdown(["workload", "floor, ms", *names], rows) + "".join(
        f"\n{note}" for note in dict.fromkeys(notes)
    )


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _ratio(record: Record) -> str:
    if record.ratio_to_floor is None:
        return "-"
    return f"{record.ratio_to_floor:.3f} [{record.ratio_low:.3f}, {record.ratio_high:.3f}]"


def _peer_ratio(record: Record) -> str:
    return "-" if record.ratio_to_peer is None else f"{record.ratio_to_peer:.3f}"


def _goal(record: Record) -> str:
    goal = GOALS.get(record.workload)
    if goal is None or record.ranks != 2:
        return "-"
    if record.ratio_to_floor is None:
        return f"{goal:.2f}"
    return f"{goal:.2f} {'reached' if record.ratio_to_floor <= goal else 'missed'}"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
