"""Our predicted ratios beside the published ones, and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import Any

from .compare import Comparison

__all__ = ["PUBLISHED", "Claim", "Line", "summary"]

_SAME = 0.15  # a ratio that is nearer is no disagreement


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A ratio of the paper: how many times faster its choice is than others.

    Attributes
    ----------
    what
        In the paper's words, as far as its abstract and evaluation say.
    published
        The ratio.
    groups, operators
        Our cases that it speaks of.
    """

    what: str
    published: float
    groups: tuple[str, ...]
    operators: tuple[str, ...] = ("attention",)


PUBLISHED = (
    Claim(
        what="average over hand-written operators",
        published=1.56,
        groups=("lengths", "products"),
        operators=("attention", "ag_gemm", "gemm_rs"),
    ),
    Claim(what="average over topologies", published=2.91, groups=("topologies",)),
    Claim(what="largest", published=4.0, groups=("lengths", "topologies")),
    Claim(what="AG-GEMM", published=1.9, groups=("products",), operators=("ag_gemm",)),
)

_LOWER = (
    "all methods here are schedules of one compiler, with the same kernels, fused merges, copy "
    "engines and no host in the way; the paper's baselines are programs of their own, and what "
    "those lose outside of the schedule is not in our ratio (on 2 H200 a ring in PyTorch took "
    "1.9 times our plan at batch 16, most of it in merges)"
)
_BOUND = (
    "; the wire between nodes is the limit where the median exposes {exposed:.0%} of its time, "
    "and methods that send as many bytes over it then take as long"
)
_SELF = "; in {same} of {all} cases the fastest is one of these methods itself"
_EQUAL = 1.005
_HIGHER = (
    "the worst method here is one that nobody would run on this machine, such as a ring by "
    "small messages or all-to-alls over a slow wire; the paper compares with tuned programs"
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A claim of the paper, and what we predict for it.

    Attributes
    ----------
    claim
        Of the paper.
    against_best, against_mean
        How many times slower the best of the other methods is, and their geometric mean.
    why
        Why both are not near the claim; empty when one is.
    """

    claim: Claim
    against_best: float
    against_mean: float
    why: str

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "what": self.claim.what,
            "published": self.claim.published,
            "predicted": True,
            "against_best": self.against_best,
            "against_mean": self.against_mean,
            "why": self.why,
        }


def summary(comparisons: Sequence[Comparison]) -> list[Line]:
    """Compare predictions with the paper's ratios; claims without a case are left out."""
    lines = []
    for claim in PUBLISHED:
        cases = [
            each
            for each in comparisons
            if each.case.group in claim.groups
            and each.case.operator in claim.operators
            and each.ratios
        ]
        if not cases:
            continue
        over: Callable[[Iterable[float]], float] = max if claim.what == "largest" else _mean
        best = over(min(each.ratios.values()) for each in cases)
        mean = over(
            (max if claim.what == "largest" else _mean)(each.ratios.values()) for each in cases
        )
        lines.append(
            Line(
                claim=claim,
                against_best=best,
                against_mean=mean,
                why=_why(claim, best, mean, cases),
            )
        )
    return lines


def _mean(values: Iterable[float]) -> float:
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs))


def _why(claim: Claim, best: float, mean: float, cases: Sequence[Comparison]) -> str:
    low, high = claim.published * (1 - _SAME), claim.published * (1 + _SAME)
    if low <= best <= high or low <= mean <= high:
        return ""
    if best > high:
        return _HIGHER
    if mean > high:
        return f"between both: against the best {_LOWER}; against all of them {_HIGHER}"
    exposed = median(
        each.ours.exposed_s / each.ours.time_s for each in cases if each.ours.time_s
    )
    across = any(each.case.nodes > 1 for each in cases)
    same = sum(min(each.ratios.values()) < _EQUAL for each in cases)
    told = _LOWER + (_BOUND.format(exposed=exposed) if across else "")
    return told + _SELF.format(same=same, all=len(cases))
