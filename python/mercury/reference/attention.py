"""Softmax attention in float64, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dsl import Mask

__all__ = ["attention", "attention_backward", "attention_sink_backward"]

Array = NDArray[np.float64]


def _scores(q: Array, k: Array, mask: Mask | str | None, scale: float | None) -> Array:
    """``scale * q k^T``, -inf where the mask hides a pair; k has a head for each of q's."""
    scale = 1 / np.sqrt(q.shape[3]) if scale is None else scale
    allowed = Mask.of(mask).allowed(q.shape[1], k.shape[1])
    return np.where(allowed, scale * np.einsum("bihd,bjhd->bhij", q, k), -np.inf)


def _repeat(q: Array, *grouped: Array) -> list[Array]:
    """Give each query head its own copy of the key heads."""
    group = q.shape[2] // grouped[0].shape[2] if grouped[0].shape[2] else 1
    return [np.repeat(x, group, axis=2) for x in grouped]


def attention(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    *,
    mask: Mask | str | None = None,
    scale: float | None = None,
    sink: NDArray[Any] | None = None,
) -> tuple[Array, Array]:
    """Attention of ``q[b, sq, h, d]`` over ``k[b, sk, h/g, d]`` and ``v[b, sk, h/g, e]``.

    Parameters
    ----------
    q, k, v
        Floating-point numbers of any dtype.
    mask
        Which queries see which keys.
    scale
        Of the scores; ``1 / sqrt(d)`` when not given.
    sink
        One more logit of each row, without a value, for each head ``[h]``.

    Returns
    -------
    tuple of numpy.ndarray
        The output ``[b, sq, h, e]`` and the log-sum-exp ``[b, h, sq]``; 0 and -inf for a
        query that sees no key.
    """
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    k, v = _repeat(q, k, v)
    scores = _scores(q, k, mask, scale)
    if sink is not None:
        column = np.asarray(sink, np.float64)[None, :, None, None]
        scores = np.concatenate(
            [scores, np.broadcast_to(column, (*scores.shape[:3], 1))], axis=-1
        )
        v = np.concatenate([v, np.zeros_like(v, shape=(v.shape[0], 1, *v.shape[2:]))], axis=1)
    top = scores.max(axis=-1, initial=-np.inf, keepdims=True)
    weights = np.exp(scores - np.where(top == -np.inf, 0.0, top))
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + np.where(top == -np.inf, 0.0, top))[..., 0]
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return np.einsum("bhij,bjhe->bihe", shares, v), lse


def attention_backward(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    grad_o: NDArray[Any],
    *,
    o: NDArray[Any] | None = None,
    lse: NDArray[Any] | None = None,
    mask: Mask | str | None = None,
    scale: float | None = None,
) -> tuple[Array, Array, Array]:
    """Gradients of `attention` by q, k and v for the gradient ``grad_o[b, sq, h, e]``.

    The derivative of a softmax ``p`` by its scores is ``diag(p) - p p^T``, so with
    ``dP = grad_o v^T``, ``dS = p * (dP - rowsum(p * dP))``; the row sum equals that of
    ``grad_o * o`` (Dao et al., "FlashAttention", 2022, appendix B.2).

    Parameters
    ----------
    q, k, v, mask, scale
        As for `attention`.
    grad_o
        The gradient of the loss by the output.
    o, lse
        The forward's results as a kernel was given them, of which it makes ``p`` and the
        row sum; the exact ones when not given.

    Returns
    -------
    tuple of numpy.ndarray
        Of the shapes of q, k and v; of grouped heads the sum over a group.
    """
    q, k, v, grad_o = (np.asarray(x, np.float64) for x in (q, k, v, grad_o))
    scale = 1 / np.sqrt(q.shape[3]) if scale is None else scale
    heads = k.shape[2]
    many_k, many_v = _repeat(q, k, v)
    scores = _scores(q, many_k, mask, scale)
    if lse is None:
        lse = attention(q, k, v, mask=mask, scale=scale)[1]
    norm = np.asarray(lse, np.float64)[..., None]
    p = np.where(norm == -np.inf, 0.0, np.exp(scores - np.where(norm == -np.inf, 0.0, norm)))
    grad_p = np.einsum("bihe,bjhe->bhij", grad_o, many_v)
    if o is None:
        delta = np.sum(p * grad_p, axis=-1)
    else:
        delta = np.einsum("bihe,bihe->bhi", grad_o, np.asarray(o, np.float64))
    grad_s = scale * p * (grad_p - delta[..., None])

    def summed(x: Array) -> Array:
        b, sk, _, depth = x.shape
        group = q.shape[2] // heads if heads else 1
        total: Array = x.reshape(b, sk, heads, group, depth).sum(axis=3)
        return total

    return (
        np.einsum("bhij,bjhd->bihd", grad_s, many_k),
        summed(np.einsum("bhij,bihd->bjhd", grad_s, q)),
        summed(np.einsum("bhij,bihe->bjhe", p, grad_o)),
    )


def attention_sink_backward(
    o: NDArray[Any], grad_o: NDArray[Any], lse: NDArray[Any], sink: NDArray[Any]
) -> Array:
    """Gradient of `attention` by its sink for the gradient ``grad_o[b, sq, h, e]``.

    The sink is a logit whose column of the softmax, ``p = exp(sink - lse)``, has no value:
    with ``dP = 0`` there, ``dS = -p * rowsum(grad_o * o)``, summed over all rows.

    Parameters
    ----------
    o, lse
        What `attention` gives with the sink.
    grad_o
        The gradient of the loss by the output.
    sink
        The logits ``[h]``.

    Returns
    -------
    numpy.ndarray
        ``[h]``; a row that saw nothing, not even the sink, adds nothing.
    """
    o, grad_o, lse, sink = (np.asarray(x, np.float64) for x in (o, grad_o, lse, sink))
    empty = lse == -np.inf
    share = np.where(empty, 0.0, np.exp(sink[None, :, None] - np.where(empty, 0.0, lse)))
    delta = np.einsum("bihe,bihe->bhi", grad_o, o)
    total: Array = -np.sum(share * delta, axis=(0, 2))
    return total
