"""Attention problems for kernels, and their results in float64."""

from __future__ import annotations

import dataclasses

import numpy as np
from compiled import UNBOUNDED, Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention:
    """One attention problem; `ahead` is the first query's position, the first key's is 0."""

    b: int = 2
    sq: int = 90
    sk: int = 150
    h: int = 4
    group: int = 1
    d: int = 24
    dv: int = 24
    ahead: int = 0
    left: int = UNBOUNDED
    right: int = UNBOUNDED

    def seen(self, i: slice, j: slice) -> Array:
        """Return which pairs of queries `i` and keys `j` the mask allows."""
        query = np.arange(i.start, i.stop)[:, None] + self.ahead
        key = np.arange(j.start, j.stop)[None, :]
        allowed: Array = (-self.left <= key - query) & (key - query <= self.right)
        return allowed


ATTENTION = {
    "full": Attention(),
    "causal": Attention(sq=150, right=0),
    "causal_offset": Attention(ahead=60, right=0),
    "causal_masked_rows": Attention(ahead=-20, right=0),
    "window": Attention(ahead=30, left=17, right=0),
    "window_both_sides": Attention(ahead=30, left=70, right=5),
    "window_beyond_keys": Attention(ahead=100, left=20, right=0),
    "grouped": Attention(h=6, group=3, right=0),
    "narrow_values": Attention(d=72, dv=8),
    "wide_values": Attention(d=8, dv=130),
    "one_of_each": Attention(b=1, sq=1, sk=1, h=1, d=1, dv=1),
    "decode": Attention(sq=1, sk=300, h=4, group=4, ahead=299, right=0),
}


def reference(
    case: Attention, q: Array, k: Array, v: Array, *, scale: float
) -> tuple[Array, Array, Array]:
    """Return o, lse and sum p * abs(v), the magnitude that errors of o scale with."""
    k, v = np.repeat(k, case.group, axis=2), np.repeat(v, case.group, axis=2)
    s = scale * np.einsum("bihd,bjhd->bhij", q, k)
    s = np.where(case.seen(slice(0, case.sq), slice(0, case.sk)), s, -np.inf)
    with np.errstate(divide="ignore"):
        lse = np.log(np.sum(np.exp(s), axis=-1))
    p = np.exp(s - np.where(np.isneginf(lse), 0, lse)[..., None])
    magnitude = np.einsum("bhij,bjhe->bihe", p, np.abs(v))
    return np.einsum("bhij,bjhe->bihe", p, v), lse, magnitude
