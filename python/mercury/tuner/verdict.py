"""Why a plan was chosen, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .quantity import format_bytes, format_seconds

if TYPE_CHECKING:
    from .result import Choice, TuneResult

__all__ = ["why"]

_ALIKE = 0.005


def why(result: TuneResult) -> list[str]:
    """Say what was chosen and why, for people: first what it does, as part of a sentence.

    Examples
    --------
    >>> import mercury as mc
    >>> best = mc.tune(mc.programs.matmul(m=64), topology="h200-2x1", cache=False)
    >>> why(best)[0]
    'every rank computes its part of i: nothing moves.'
    """
    chosen = result.chosen
    word = "measured" if result.measured else "predicted"
    first = chosen.sentence or "every rank works alone"
    if "; " not in first and first.startswith(f"{_owner(first)} is spread over"):
        first = f"every rank computes its part of {_owner(first)}: nothing moves"
    said = [f"{first}."]
    costs = chosen.costs
    hidden = "all communication is hidden"
    share = costs.exposed / costs.latency if costs.latency else 0.0
    if share > _ALIKE:
        hidden = f"{format_seconds(costs.exposed)} of it ({share:.0%}) is exposed communication"
    latency = format_seconds(costs.latency)
    if chosen.measured_s is None:
        said.append(f"{latency} {word}, which may be off by {costs.error:.0%}; {hidden}.")
    else:
        measured = format_seconds(chosen.measured_s)
        said.append(f"{measured} measured, {latency} predicted; {hidden}.")
    said += _against(chosen, result.plain, "plain library calls", word)
    if result.runner_up is not None and result.runner_up != result.plain:
        said += _against(chosen, result.runner_up, "the runner-up", word)
    said.append(
        f"It needs {format_bytes(chosen.peak_bytes)} of the {format_bytes(result.memory)} that "
        "a rank may use."
    )
    lean = min(result.plans, key=lambda each: (each.peak_bytes, each.rank))
    if lean.peak_bytes < chosen.peak_bytes and chosen.values[0]:
        ratio = lean.values[0] / chosen.values[0]
        need = format_bytes(lean.peak_bytes)
        said.append(f"The leanest plan needs {need}, and takes {ratio:.2f} times as long.")
    if chosen.slow_link and costs.latency:
        more = chosen.slow_latency / costs.latency - 1
        said.append(
            f"With half the bandwidth of '{chosen.slow_link}' it would take {more:.0%} longer."
        )
    return said


def _owner(sentence: str) -> str:
    return sentence.partition(" is spread over")[0]


def _against(chosen: Choice, other: Choice | None, name: str, word: str) -> list[str]:
    if other is None or other.fingerprint == chosen.fingerprint:
        return [] if other is None else [f"It is itself {name}, which nothing beats here."]
    if not chosen.values[0]:
        return []
    ratio = other.values[0] / chosen.values[0]
    memory, subject = format_bytes(other.peak_bytes), f"{name[0].upper()}{name[1:]}"
    if ratio < 1 + _ALIKE:
        return [f"{subject} would be as fast, with {memory}: {other.recipe}."]
    return [f"{subject} would take {ratio:.2f} times as long, with {memory}."]
