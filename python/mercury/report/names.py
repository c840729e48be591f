"""How plans and figures are called, on every part of the page alike."""

from __future__ import annotations

from ..tuner import Choice, TuneResult
from .html import Html, tag

__all__ = ["badge", "measured_s", "names", "predicted_s", "word"]


def predicted_s(result: TuneResult, choice: Choice) -> float | None:
    """Give what a model says of a plan's latency; None when it was never asked."""
    return None if _costs_measured(result) else choice.costs.latency


def measured_s(result: TuneResult, choice: Choice) -> float | None:
    """Give what a clock says of a plan's latency; None when it was not measured."""
    if choice.measured_s is not None:
        return choice.measured_s
    return choice.costs.latency if _costs_measured(result) else None


def _costs_measured(result: TuneResult) -> bool:
    """Whether the cost model itself measures; else only the named plans may have times."""
    return result.measured and all(each.measured_s is None for each in result.plans)


def word(result: TuneResult) -> str:
    """Say what the costs are, by which all plans are compared."""
    return "measured" if _costs_measured(result) else "predicted"


def badge(how: str) -> Html:
    """Mark figures as ``"predicted"`` or ``"measured"``."""
    return tag("span", how, class_=f"badge {how}")


def names(result: TuneResult) -> dict[str, str]:
    """Give the part that each plan plays, by its fingerprint."""
    found: dict[str, list[str]] = {each.fingerprint: [] for each in result.plans}
    found[result.chosen.fingerprint].append("chosen")
    if result.runner_up is not None:
        found[result.runner_up.fingerprint].append("runner-up")
    if result.plain is not None:
        found[result.plain.fingerprint].append("plain library calls")
    for each in result.pareto:
        if not found[each.fingerprint]:
            found[each.fingerprint].append("Pareto set")
    found |= {each.fingerprint: ["Pareto set, simulated only"] for each in result.untried}
    return {fingerprint: ", ".join(parts) for fingerprint, parts in found.items()}
