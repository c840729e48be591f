"""The plans by latency and memory."""

from __future__ import annotations

from math import ceil, floor, log, log10

from ..tuner import Choice, TuneResult
from ..tuner.quantity import format_bytes, format_seconds
from .html import Html, join, tag
from .names import names, word

__all__ = ["pareto_plot"]

_WIDTH, _HEIGHT = 400, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 42


class _Scale:
    """A logarithmic axis when values differ much, else a linear one."""

    def __init__(
        self, values: list[float], first: float, last: float, base: float = 10.0
    ) -> None:
        self._base = base  # of the units that values are written in
        low, high = min(values), max(values)
        self.log = low > 0 and high / low > 20
        if self.log:
            low, high = log10(low), log10(high)
        pad = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
        self._low, self._high, self._first, self._last = low - pad, high + pad, first, last
        if not self.log:
            self._low = max(0.0, self._low)

    def at(self, value: float) -> float:
        own = log10(value) if self.log else value
        share = (own - self._low) / (self._high - self._low)
        return self._first + share * (self._last - self._first)

    def ticks(self) -> list[float]:
        if self.log:
            low, high = floor(self._low), ceil(self._high)
            found = [m * 10.0**e for e in range(low, high + 1) for m in (1, 2, 5)]
            if self._base != 10:
                found = [2.0**e for e in range(floor(low * 3.33), ceil(high * 3.33) + 1)]
            inside = [t for t in found if self._low <= log10(t) <= self._high]
            return inside if len(inside) <= 5 else inside[:: ceil(len(inside) / 5)]
        span = self._high - self._low
        unit = 1.0 if self._base == 10 else self._base ** floor(log(self._high, self._base))
        step = unit * 10.0 ** floor(log10(span / 3 / unit))
        step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= 5)
        return [n * step for n in range(ceil(self._low / step), floor(self._high / step) + 1)]


def pareto_plot(result: TuneResult) -> Html:
    """Draw every plan that was compared, those of the result as links to their rows."""
    plans = result.listed
    points = [(latency, float(peak)) for latency, peak in result.cloud]
    points += [(each.costs.latency, float(each.peak_bytes)) for each in plans]
    x = _Scale([point[0] for point in points], _LEFT, _WIDTH - _RIGHT)
    y = _Scale([point[1] for point in points], _HEIGHT - _BOTTOM, _TOP, base=1024.0)
    cloud = [
        tag("circle", cx=x.at(latency), cy=y.at(float(peak)), r=2.2)
        for latency, peak in result.cloud
    ]
    at = [(x.at(each.costs.latency), y.at(float(each.peak_bytes))) for each in plans]
    labels = _labels(at)
    marks = [
        _mark(result, each, n, at[n - 1], labels[n - 1]) for n, each in enumerate(plans, 1)
    ]
    title = f"Latency ({word(result)}) and memory of {len(points)} plans"
    drawn = tag(
        "svg",
        tag("title", title),
        _axes(x, y, word(result)),
        tag("g", cloud, class_="cloud", aria_hidden="true"),
        # The chosen one is drawn last, above the others.
        list(reversed(marks)),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        class_="plot",
        role="group",
        aria_label=title,
    )
    legend = tag(
        "ul",
        tag("li", tag("span", class_="dot chosen"), "chosen"),
        tag(
            "li", tag("span", class_="dot named"), "runner-up, plain library calls, Pareto set"
        ),
        tag("li", tag("span", class_="dot cloud"), "other plans that were compared")
        if result.cloud
        else None,
        class_="legend",
    )
    return join([drawn, legend])


def _labels(at: list[tuple[float, float]]) -> list[str]:
    """Number the marks; those that lie on another one are named beside it."""
    labels = [""] * len(at)
    for number, (x, y) in enumerate(at):
        first = next(n for n, (a, b) in enumerate(at) if abs(a - x) < 9 and abs(b - y) < 9)
        labels[first] += f"{', ' if labels[first] else ''}{number + 1}"
    return labels


def _mark(
    result: TuneResult, choice: Choice, number: int, at: tuple[float, float], label: str
) -> Html:
    told = (
        f"plan {number}, {names(result)[choice.fingerprint]}: "
        f"{format_seconds(choice.costs.latency)} {word(result)}, "
        f"{format_bytes(choice.peak_bytes)}: {choice.recipe}"
    )
    cx, cy = at
    kind = "chosen" if choice.fingerprint == result.chosen.fingerprint else "named"
    right = cx < _WIDTH * 0.85
    return tag(
        "a",
        tag("title", told),
        tag("circle", cx=cx, cy=cy, r=7.0 if kind == "chosen" else 5.0, class_=kind),
        tag(
            "text",
            label,
            x=cx + (9 if right else -9),
            y=cy - 6,
            text_anchor="start" if right else "end",
        ),
        href=f"#plan-{number}",
        aria_label=told,
    )


def _axes(x: _Scale, y: _Scale, how: str) -> Html:
    drawn = []
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value in x.ticks():
        at = x.at(value)
        drawn.append(tag("line", x1=at, x2=at, y1=_TOP, y2=bottom))
        drawn.append(
            tag("text", format_seconds(value), x=at, y=bottom + 15, text_anchor="middle")
        )
    for value in y.ticks():
        at = y.at(value)
        drawn.append(tag("line", x1=_LEFT, x2=right, y1=at, y2=at))
        drawn.append(tag("text", format_bytes(value), x=_LEFT - 5, y=at + 4, text_anchor="end"))
    drawn.append(
        tag(
            "text",
            f"latency, {how}{', logarithmic' if x.log else ''}",
            x=(_LEFT + right) / 2,
            y=_HEIGHT - 8,
            text_anchor="middle",
        )
    )
    return tag("g", drawn, class_="axes", aria_hidden="true")
