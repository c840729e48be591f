"""Softmax attention in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dsl import Mask

__all__ = ["attention"]

Array = NDArray[np.float64]


def attention(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    *,
    mask: Mask | str | None = None,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """Attention of ``q[b, sq, h, d]`` over ``k[b, sk, h/g, d]`` and ``v[b, sk, h/g, e]``.

    Returns
    -------
    tuple of numpy.ndarray
        The output ``[b, sq, h, e]`` and the log-sum-exp ``[b, h, sq]``; 0 and -inf for a
        query that sees no key.
    """
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[2] // k.shape[2] if k.shape[2] else 1
    k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
    scale = 1 / np.sqrt(q.shape[3]) if scale is None else scale
    scores = scale * np.einsum("bihd,bjhd->bhij", q, k)
    allowed = Mask.of(mask).allowed(q.shape[1], k.shape[1])
    scores = np.where(allowed, scores, -np.inf)
    top = scores.max(axis=-1, initial=-np.inf, keepdims=True)
    weights = np.exp(scores - np.where(top == -np.inf, 0.0, top))
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + np.where(top == -np.inf, 0.0, top))[..., 0]
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return np.einsum("bhij,bjhe->bihe", shares, v), lse
