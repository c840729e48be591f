"""The ranked plans, and those that were left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..tuner import Choice, TuneResult
from ..tuner.quantity import format_bytes, format_seconds
from .checks import Check
from .html import Html, tag
from .names import badge, measured_s, names, predicted_s

__all__ = ["failures", "grid", "ranking"]


def grid(
    caption: object, heads: Sequence[object], rows: Sequence[Sequence[object]], class_: str = ""
) -> Html:
    """Write a table whose rows become cards on a narrow screen.

    Parameters
    ----------
    caption
        Above it.
    heads
        Of the columns; their plain text labels the cells of a card.
    rows
        Their cells; the first one heads the row. A row may be an `Html` of its own.
    class_
        Of the table.
    """
    labels = [_plain(head) for head in heads]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", role="rowheader", data_label=labels[0]),
            [
                tag("td", cell, role="cell", data_label=label)
                for cell, label in zip(row[1:], labels[1:], strict=True)
            ],
            role="row",
            id=getattr(row, "id", None),
        )
        for row in rows
    ]
    head = tag(
        "tr",
        [tag("th", each, scope="col", role="columnheader") for each in heads],
        role="row",
    )
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", head, role="rowgroup"),
        tag("tbody", body, role="rowgroup"),
        role="table",
        class_=f"cards {class_}".strip(),
    )


class _Row(list[object]):
    """A row that links lead to."""

    def __init__(self, cells: Sequence[object], id_: str) -> None:
        super().__init__(cells)
        self.id = id_


def _plain(head: object) -> str:
    """Drop the tags of a heading."""
    text, inside = [], False
    for letter in str(head):
        inside = letter == "<" or (inside and letter != ">")
        if not inside and letter != ">":
            text.append(letter)
    return "".join(text).strip()


def ranking(result: TuneResult, checks: Mapping[str, Check]) -> Html:
    """Write the plans of the result, the chosen one first, then by latency."""
    first, *others = result.listed
    number = {each.fingerprint: n for n, each in enumerate(result.listed, 1)}
    untried = {each.fingerprint for each in result.untried}
    ranked = [first, *sorted(others, key=lambda each: each.rank)]
    how = badge("predicted")
    heads = [
        "Plan",
        tag("span", "Latency ", how),
        tag("span", "Latency ", badge("measured")),
        tag("span", "May be off by ", how),
        tag("span", "Exposed ", how),
        "Memory of a rank",
        tag("span", "With half a link ", how),
        tag("span", "On embedded ranks ", badge("measured")),
        "Schedule",
    ]
    rows = []
    for choice in ranked:
        costs = choice.costs
        n = number[choice.fingerprint]
        predicted, measured = predicted_s(result, choice), measured_s(result, choice)
        rows.append(
            _Row(
                [
                    f"{n}. {names(result)[choice.fingerprint]}",
                    "not predicted" if predicted is None else format_seconds(predicted),
                    "not measured" if measured is None else format_seconds(measured),
                    f"{costs.error:.0%}",
                    format_seconds(costs.exposed),
                    format_bytes(choice.peak_bytes),
                    _slower(choice),
                    "not run"
                    if choice.fingerprint in untried
                    else _checked(checks.get(choice.fingerprint)),
                    tag("code", choice.recipe or "(nothing)"),
                ],
                f"plan-{n}",
            )
        )
    ran = next((f" On embedded ranks ran {each.program}." for each in checks.values()), "")
    caption = f"The chosen plan, then the others by latency.{ran}"
    if result.untried:
        caption += (
            " What was simulated only was not run, because the search ended before its trial;"
            " more time has it tried."
        )
    return grid(caption, heads, rows, "ranking")


def _slower(choice: Choice) -> str:
    if not choice.costs.latency or not choice.slow_link:
        return "no link"
    return (
        f"{choice.slow_latency / choice.costs.latency:.2f} times as long ({choice.slow_link})"
    )


def _checked(found: Check | None) -> object:
    if found is None:
        return "right, in the search"
    verdict = "right" if found.right else "WRONG"
    moved = ", ".join(
        f"{level} {found.measured_bytes[level]:,} B"
        + (
            " as predicted"
            if found.measured_bytes[level] == found.predicted_bytes[level]
            else f", predicted {found.predicted_bytes[level]:,} B"
        )
        for level in found.measured_bytes
    )
    return f"{verdict}: error {found.error:.1e} against float64; {moved}"


def failures(result: TuneResult) -> Html:
    """Say what became of every schedule that is not compared, and why."""
    counts = result.counts
    rows: list[list[object]] = []
    if counts.pruned:
        reason = "a lower bound shows that others are faster, and no worse in memory"
        rows.append([reason, counts.pruned, "surely slower"])
    if counts.too_large:
        limit = format_bytes(result.memory)
        rows.append([f"need more memory than {limit}", counts.too_large, "left out"])
    rows += [[reason, count, "not lowered yet"] for reason, count in counts.refused.items()]
    rows += [[reason, count, "lacking"] for reason, count in counts.lacking.items()]
    shown = list(counts.failed.items())[:50]
    rows += [[tag("span", reason, ": ", tag("code", r)), 1, "failed"] for r, reason in shown]
    if len(counts.failed) > len(shown):
        rows.append(["others that failed", len(counts.failed) - len(shown), "failed"])
    if not rows:
        return tag("p", "None: every schedule of the space was compared.")
    return grid(
        "Schedules that were not compared, by reason", ["Reason", "How many", "What"], rows
    )
