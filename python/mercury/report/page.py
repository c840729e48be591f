"""The page: sections in the order in which questions come up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from .. import __version__
from ..errors import MercuryError
from ..runtime.events import ARENAS
from ..schedule import Schedule
from ..simulator import Simulation
from ..tuner import Choice, TuneError, TuneResult
from ..tuner.quantity import format_bytes
from ..tuner.verdict import why
from .checks import Check
from .html import Html, join, tag
from .memory import memory_map
from .names import badge, names, word
from .plot import pareto_plot
from .table import failures, grid, ranking
from .timeline import KINDS, timeline

__all__ = ["Simulate", "page", "write"]

Simulate = Callable[[Schedule], Simulation]
"""Predicts the timeline of a schedule, as ``lambda s: mercury.simulate(s, topology)``."""


def write(
    path: str | Path,
    result: TuneResult,
    *,
    simulate: Simulate | None = None,
    checks: Sequence[Check] = (),
) -> None:
    """Write the page of a search to a file; see `page`.

    Raises
    ------
    TuneError
        When the file cannot be written.
    """
    text = page(result, simulate=simulate, checks=checks)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise TuneError(f"'{path}' cannot be written: {error}") from None


def page(
    result: TuneResult, *, simulate: Simulate | None = None, checks: Sequence[Check] = ()
) -> str:
    """Put together the page of a search: one file, no scripts, nothing loaded.

    Parameters
    ----------
    result
        What was found.
    simulate
        Predicts timelines; without it there are none.
    checks
        What small runs measured.
    """
    by_plan = {each.fingerprint: each for each in checks}
    program = result.program.name
    sections = [
        ("answer", "What was chosen, and why", _answer(result)),
        ("plans", "All plans by latency and memory", _plans(result)),
        ("table", "Ranked plans", ranking(result, by_plan)),
        ("timeline", "What the ranks do when", _timelines(result, simulate)),
        ("schedule", "The schedule", _schedule(result)),
        ("memory", "Memory of the plan", _memory(result)),
        ("assumptions", "What the plan assumes", _assumptions(result)),
        ("left-out", "What was left out, and why", failures(result)),
    ]
    body = [
        tag("section", tag("h2", title, id=f"{name}-title"), content, id=name)
        for name, title, content in sections
    ]
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in sections]
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return "<!doctype html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            tag("title", f"{program} on {result.topology}: a report of mercury tune"),
            tag("style", Html(style)),
        ),
        tag(
            "body",
            tag("header", tag("h1", f"{program} on {result.topology}"), _subject(result)),
            tag("nav", tag("ul", links), aria_label="Sections"),
            tag("main", body),
            tag("footer", tag("p", f"Mercury {__version__}, mercury tune --report")),
        ),
        lang="en",
    )


def _subject(result: TuneResult) -> Html:
    axes = ", ".join(f"{axis.name} = {axis.extent:,}" for axis in result.program.axes)
    mesh = " x ".join(f"{size} {name}" for name, size in result.mesh.levels)
    return tag(
        "p",
        f"{axes}; {result.program.inputs[0].dtype}; {result.mesh.size} ranks ({mesh}); "
        f"{format_bytes(result.memory)} of memory a rank",
        class_="subject",
    )


def _answer(result: TuneResult) -> Html:
    first, *rest = why(result)
    counts = result.counts
    left = [
        f"{counts.pruned:,} surely slower",
        f"{counts.too_large:,} too large",
        f"{sum(counts.refused.values()):,} not lowered yet",
        f"{sum(counts.lacking.values()):,} need what the machine lacks",
        f"{len(counts.failed):,} failed",
    ]
    facts = [
        ("Looked at", f"{counts.seen:,} distinct schedules"),
        ("Compared", f"{counts.costed:,}"),
        ("Left out", "; ".join(left)),
        ("Run on embedded ranks", f"{counts.tried:,}, and right against float64"),
        ("Latencies by", result.cost),
        ("Search", f"{result.seconds:.1f} s, {_ended(result)}"),
    ]  # fmt: skip
    return join(
        [
            tag("p", "The fastest plan that fits: ", first, class_="lead"),
            tag("ul", [tag("li", sentence) for sentence in rest]),
            tag("p", badge("predicted"), " comes from a model of the machine; ",
                badge("measured"), " from a clock, or a count of what was moved."),
            tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts]),
        ]
    )  # fmt: skip


def _ended(result: TuneResult) -> str:
    ways = {"complete": "all of the space", "time limit": "until the time limit"}
    found = ways.get(result.ended, result.ended)
    return f"{found}, found in the cache" if result.from_cache else found


def _plans(result: TuneResult) -> Html:
    return tag(
        "figure",
        pareto_plot(result),
        tag(
            "figcaption",
            "Latency ",
            badge(word(result)),
            "; memory of the fullest rank. Less is better in both. Each "
            "number leads to its row of the table, which has the same figures.",
        ),
    )


def _timelines(result: TuneResult, simulate: Simulate | None) -> Html:
    if simulate is None:
        return tag("p", "No timeline: the search was not given a simulator.")
    told = names(result)
    shown = [result.chosen, *([result.runner_up] if result.runner_up else [])]
    found: list[tuple[Choice, Simulation]] = []
    said = []
    for choice in shown:
        try:
            found.append((choice, simulate(result.schedule_of(choice))))
        except MercuryError as error:
            said.append(tag("p", f"{told[choice.fingerprint]}: not simulated: {error.message}"))
    clock = max((each.time_s for _, each in found), default=0.0)
    drawn = [timeline(told[choice.fingerprint], each, clock) for choice, each in found if clock]
    legend = [
        tag("li", tag("span", class_=f"dot {kind}"), name)
        for kind, name in zip(
            KINDS.values(),
            ("kernel", "copy in own memory", "transfer", "wait for a transfer or a peer"),
            strict=True,
        )
    ]
    return join(
        [
            tag("p", "Both on one clock, a lane for each of a rank's queues."),
            tag("ul", legend, class_="legend"),
            tag("div", drawn, class_="beside"),
            said,
        ]
    )


def _schedule(result: TuneResult) -> Html:
    return join(
        [
            tag("p", result.chosen.sentence or "every rank works alone", class_="lead"),
            tag("p", "In a line: ", tag("code", result.chosen.recipe or "(nothing)")),
            tag("p", "As a script of the transform dialect:"),
            tag(
                "pre",
                tag("code", result.script),
                tabindex="0",
                role="region",
                aria_label="script of the schedule",
            ),
        ]
    )


def _memory(result: TuneResult) -> Html:
    try:
        plan = result.schedule.compile()
    except MercuryError as error:
        return tag("p", f"No map: {error.message}")
    outside = result.chosen.peak_bytes - plan.arena_bytes
    said = (
        f"{format_bytes(result.chosen.peak_bytes)} on the fullest rank: "
        f"{format_bytes(max(outside, 0))} of shards of its buffers, which are the user's, and "
        f"arenas of {format_bytes(plan.arena_bytes)}, whose bytes are used again when what "
        f"lies there is dead: {format_bytes(plan.symmetric_bytes)} of them peers may read. The "
        "arenas of rank 0, by bytes (up) and events (right):"
    )
    events, sizes = plan.events(rank=0), (plan.local_bytes, plan.symmetric_bytes)
    maps = [
        memory_map(events, arena, size, 0) for arena, size in zip(ARENAS, sizes, strict=True)
    ]
    return join([tag("p", said), *maps])


def _assumptions(result: TuneResult) -> Html:
    assumed = result.assumptions(result.chosen)
    rows = [
        [
            link.name,
            f"{link.bandwidth / 1e9:.3g} GB/s",
            f"{link.error:.0%} more time",
            f"{link.slowest / 1e9:.3g} GB/s",
        ]
        for link in assumed.links
    ]
    heads = ["Link", "Assumed, large messages", "Within", "At the least"]
    links: Mapping[bool, Html] = {
        True: grid(join(["Links that it sends over ", badge("predicted")]), heads, rows),
        False: tag("p", "It sends over no link."),
    }
    return join(
        [
            tag("p", f"Each rank has {format_bytes(assumed.free_bytes)} of memory free."),
            links[bool(rows)],
            tag(
                "p",
                "Where one of these does not hold, the next safe plan of the table is taken, "
                "and a line says so.",
            ),
        ]
    )
