"""How plans and figures are called, on every part of the page alike."""

from __future__ import annotations

from ..tuner import TuneResult
from .html import Html, tag

__all__ = ["badge", "names", "word"]


def word(result: TuneResult) -> str:
    """Say what latencies are."""
    return "measured" if result.measured else "predicted"


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
    return {fingerprint: ", ".join(parts) for fingerprint, parts in found.items()}
