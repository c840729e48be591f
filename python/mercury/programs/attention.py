"""Softmax attention, forward and backward."""

from __future__ import annotations

from math import sqrt

from ..dsl import Mask, ProgramBuilder, program
from ..dsl.nodes import Axis
from ..errors import ProgramError

__all__ = ["attention", "attention_backward", "decode_attention"]


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
    sink: bool = False,
    dtype: str = "bf16",
    layout: dict[str, str] | None = None,
) -> None:
    """``O = softmax(scale * Q K^T + mask) V`` and its log-sum-exp.

    Q is ``[b, sq, h, d]``, K ``[b, sk, h/group, d]``, V ``[b, sk, h/group, dv]``, O
    ``[b, sq, h, dv]`` and LSE ``[b, h, sq]`` in float32 or wider. A query that sees no
    key gives 0 and a log-sum-exp of -inf.

    With a sink, SINK ``[h]`` in float32 or wider is one more logit of each row, without a value
    (Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023,
    section 3.1): ``LSE' = logaddexp(LSE, SINK)`` and ``O' = O * exp(LSE - LSE')``.

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
    sink
        Whether each head has a sink.
    dtype
        Element type of Q, K, V and O.
    layout
        How axes are cut into shards, where not by block.

    Raises
    ------
    ProgramError
        When ``d`` is below 1 or the groups do not divide the heads.
    """
    _attention(p, b, h, sq, sk, d, dv, group, mask, scale, sink, dtype, layout)


@program
def decode_attention(
    p: ProgramBuilder,
    b: int = 1,
    h: int = 32,
    sk: int = 4096,
    d: int = 128,
    group: int = 1,
    scale: float | None = None,
    sink: bool = False,
    dtype: str = "bf16",
    layout: dict[str, str] | None = None,
) -> None:
    """Attention of one new query over a cache of keys; see `attention`."""
    _attention(p, b, h, 1, sk, d, None, group, None, scale, sink, dtype, layout)


@program
def attention_backward(
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
    sink: bool = False,
    dtype: str = "bf16",
    layout: dict[str, str] | None = None,
) -> None:
    """Give the gradients dQ, dK and dV of `attention` from that of its output, dO.

    The inputs are Q, K and V, the output O and the log-sum-exp LSE of the forward program,
    and dO; shapes and dtypes are those of `attention`, dQ, dK and dV have those of Q, K
    and V. With ``P = exp(S - LSE)`` and ``dS = P * (dO V^T - rowsum(dO * O))``,
    ``dV = P^T dO``, ``dQ = scale * dS K`` and ``dK = scale * dS^T Q`` (Dao,
    "FlashAttention-2", 2023, algorithm 2). A query that sees no key, with a log-sum-exp of
    -inf, adds nothing.

    It is one nest: dQ is reduced over the keys, dK and dV over the queries and over the
    query heads of their group.

    With a sink, O and LSE are those that SINK has entered, and dSINK ``[h]`` is its
    gradient. The sink is a column of the softmax without a value, so what its share of a
    row loses is all of ``rowsum(dO * O)``: ``dSINK = -sum_b,sq exp(SINK - LSE) *
    rowsum(dO * O)``. No key takes part, so it is a nest of its own, over the queries; a
    schedule that says nothing of its loops has it run where O lies.

    Parameters
    ----------
    p
        The program under construction.
    b, h, sq, sk, d, dv, group, mask, scale, sink, dtype, layout
        As for `attention`.

    Raises
    ------
    ProgramError
        When ``d`` is below 1 or the groups do not divide the heads.
    """
    heads, depth, values = h, d, d if dv is None else dv
    _check(d, h, group)
    axes = p.axes(b=b, h=heads, sq=sq, sk=sk, layout=layout)
    batch, head, query, key = axes
    rows, columns = (batch, query, head), (batch, key, head / group)
    wide = "f64" if dtype == "f64" else "f32"
    q = p.input("Q", (*rows, depth), dtype)
    k = p.input("K", (*columns, depth), dtype)
    v = p.input("V", (*columns, values), dtype)
    o = p.input("O", (*rows, values), dtype)
    grad_o = p.input("dO", (*rows, values), dtype)
    lse = p.input("LSE", (batch, head, query), wide)
    sinks = p.input("SINK", (head,), wide) if sink else None
    grad_q = p.output("dQ", (*rows, depth), dtype)
    grad_k = p.output("dK", (*columns, depth), dtype)
    grad_v = p.output("dV", (*columns, values), dtype)
    over: tuple[Axis, ...] = (query, head) if group > 1 else (query,)
    with p.loops(*axes):
        made = p.attention_backward(
            q[...],
            k[...],
            v[...],
            o[...],
            grad_o[...],
            lse[...],
            scale=1 / sqrt(depth) if scale is None else scale,
            mask=mask,
        )
        grad_q[...] = p.merged(made[0], over=(key,), merge="sum")
        grad_k[...] = p.merged(made[1], over=over, merge="sum")
        grad_v[...] = p.merged(made[2], over=over, merge="sum")
    if sinks is None:
        return
    grad_sink = p.output("dSINK", (head,), wide)
    with p.loops(batch, head, query):
        lost = p.attention_sink_backward(o[...], grad_o[...], lse[...], sinks[...])
        grad_sink[...] = p.merged(lost, over=(batch, query), merge="sum")


def _check(d: int, heads: int, group: int) -> None:
    if d < 1 or group < 1 or heads % group:
        raise ProgramError(
            f"attention needs d of at least 1 and groups that divide the heads, got d={d}, "
            f"h={heads}, group={group}"
        )


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
    sink: bool,
    dtype: str,
    layout: dict[str, str] | None,
) -> None:
    _check(d, heads, group)
    b, h, sq, sk = p.axes(b=batch, h=heads, sq=queries, sk=keys, layout=layout)
    dv = d if dv is None else dv
    wide = "f64" if dtype == "f64" else "f32"
    q = p.input("Q", (b, sq, h, d), dtype)
    k = p.input("K", (b, sk, h / group, d), dtype)
    v = p.input("V", (b, sk, h / group, dv), dtype)
    sinks = p.input("SINK", (h,), wide) if sink else None
    o = p.output("O", (b, sq, h, dv), dtype)
    lse = p.output("LSE", (b, h, sq), wide)
    with p.loops(b, h, sq, sk):
        pair = p.attention(
            q[b, sq, h, :],
            k[b, sk, h / group, :],
            v[b, sk, h / group, :],
            scale=1 / sqrt(d) if scale is None else scale,
            mask=mask,
        )
        o[b, sq, h, :], lse[b, h, sq] = p.merged(
            pair,
            over=(sk,),
            merge="softmax",
            once=p.attention_sink(sinks[h], pair) if sinks else (),
        )
