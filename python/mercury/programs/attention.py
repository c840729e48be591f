"""Softmax attention, forward."""

from __future__ import annotations

from math import sqrt

from ..dsl import Mask, ProgramBuilder, program
from ..errors import ProgramError

__all__ = ["attention", "decode_attention"]


@program
def attention(
    p: ProgramBuilder,
    b: int = 1,
    h: int = 32,
    sq: int = 4096,
    sk: int = 4096,
    d: int = 128,
    dv: int | None = None,
    group: int = 1,
    mask: Mask | str | None = None,
    scale: float | None = None,
    dtype: str = "bf16",
    layout: dict[str, str] | None = None,
) -> None:
    """``O = softmax(scale * Q K^T + mask) V`` and its log-sum-exp.

    Q is ``[b, sq, h, d]``, K ``[b, sk, h/group, d]``, V ``[b, sk, h/group, dv]``, O
    ``[b, sq, h, dv]`` and LSE ``[b, h, sq]`` in float32 or wider. A query that sees no
    key gives 0 and a log-sum-exp of -inf.

    Parameters
    ----------
    p
        The program under construction.
    b, h, sq, sk
        Batch, query heads, queries and keys.
    d, dv
        Head dimension of Q and K, and of V (d when not given).
    group
        Query heads for each key head.
    mask
        ``"full"``, ``"causal"`` or a `Mask`; speaks of global positions.
    scale
        Of the scores; ``1 / sqrt(d)`` when not given.
    dtype
        Element type of Q, K, V and O.
    layout
        How axes are cut into shards, where not by block.
    """
    _attention(p, b, h, sq, sk, d, dv, group, mask, scale, dtype, layout)


@program
def decode_attention(
    p: ProgramBuilder,
    b: int = 1,
    h: int = 32,
    sk: int = 4096,
    d: int = 128,
    group: int = 1,
    scale: float | None = None,
    dtype: str = "bf16",
    layout: dict[str, str] | None = None,
) -> None:
    """Attention of one new query over a cache of keys; see `attention`."""
    _attention(p, b, h, 1, sk, d, None, group, None, scale, dtype, layout)


def _attention(
    p: ProgramBuilder,
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    d: int,
    dv: int | None,
    group: int,
    mask: Mask | str | None,
    scale: float | None,
    dtype: str,
    layout: dict[str, str] | None,
) -> None:
    if d < 1 or group < 1 or heads % group:
        raise ProgramError(
            f"attention needs d of at least 1 and groups that divide the heads, got d={d}, "
            f"h={heads}, group={group}"
        )
    b, h, sq, sk = p.axes(b=batch, h=heads, sq=queries, sk=keys, layout=layout)
    dv = d if dv is None else dv
    wide = "f64" if dtype == "f64" else "f32"
    q = p.input("Q", (b, sq, h, d), dtype)
    k = p.input("K", (b, sk, h / group, d), dtype)
    v = p.input("V", (b, sk, h / group, dv), dtype)
    o = p.output("O", (b, sq, h, dv), dtype)
    lse = p.output("LSE", (b, h, sq), wide)
    with p.loops(b, h, sq):
        o[b, sq, h, :], lse[b, h, sq] = p.reduce(
            sk,
            merge="softmax",
            body=lambda: p.attention(
                q[b, sq, h, :],
                k[b, sk, h / group, :],
                v[b, sk, h / group, :],
                scale=1 / sqrt(d) if scale is None else scale,
                mask=mask,
            ),
        )
