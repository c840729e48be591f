"""USP, of the package yunchang: Ulysses and ring attention, with cuDNN's kernel.

Jiarui Fang and Shangchun Zhao, "USP: A Unified Sequence Parallelism Approach for Long Context
Generative AI", 2024. Its version 0.6.4 calls cuDNN without asking for the log-sum-exp, with
which its ring merges wrongly, and has no gradients of it: the rings are given our call of the
same kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from .. import cudnn
from ..candidate import Candidate, Prepared
from ..errors import AbsentError
from ..problems import AttentionProblem
from ..processes import Processes
from ..shards import block, zigzag
from .need import need_even_rows, need_module, need_ranks

__all__ = ["peers", "rows_of"]

_REMEDY = "install it with: pip install --no-deps yunchang"
_GROUPS: dict[tuple[int, int], tuple[Any, Any]] = {}


def _attention(yunchang: Any, ulysses: int, ring: int, kind: str, on: Processes) -> Any:
    """Make the layer; its communicators are made once for each pair of degrees."""
    singleton = need_module("yunchang.globals", _REMEDY).PROCESS_GROUP
    if (ulysses, ring) not in _GROUPS:
        yunchang.set_seq_parallel_pg(ulysses, ring, on.rank, on.size)
        _GROUPS[ulysses, ring] = singleton.ULYSSES_PG, singleton.RING_PG
    singleton.ULYSSES_PG, singleton.RING_PG = _GROUPS[ulysses, ring]
    return yunchang.LongContextAttention(ring_impl_type=kind)


def _use_cudnn(torch: Any, module: str) -> None:
    """Let the rings of a module call our cuDNN."""

    def forward(q: Any, k: Any, v: Any, *_: Any, causal: bool, **__: Any) -> tuple[Any, Any]:
        return cudnn.attention(torch, q, k, v, causal=causal)

    def backward(*given: Any, **_: Any) -> None:
        grad_o, q, k, v, o, lse = given[:6]
        made = cudnn.attention_backward(
            torch, grad_o, q, k, v, o, lse.contiguous(), causal=given[11]
        )
        for buffer, gradient in zip(given[6:9], made, strict=True):
            buffer.copy_(gradient)

    def select(_: Any, stage: str, **__: Any) -> Any:
        return {"fwd-only": forward, "bwd-only": backward}[stage]

    need_module(module, _REMEDY).select_flash_attn_impl = select


def rows_of(rows: int, ulysses: int, ring: int, rank: int, *, mirrored: bool) -> list[int]:
    """Give a rank's rows: those of its ring, cut into blocks over ranks that share heads.

    Examples
    --------
    >>> [rows_of(16, 2, 2, rank, mirrored=True) for rank in (0, 1)]
    [[0, 1, 2, 3], [12, 13, 14, 15]]
    """
    around, across = divmod(rank, ulysses)
    shared = (zigzag if mirrored else block)(rows, ring, around)
    return [shared[at] for at in block(len(shared), ulysses, across)]


def _prepare(problem: AttentionProblem, on: Processes, ulysses: int) -> Prepared:
    """Share heads among `ulysses` ranks, and put rings over them."""
    need_ranks(on)
    yunchang, torch, workload = need_module("yunchang", _REMEDY), on.torch, problem.workload
    if workload.key_heads % ulysses:
        raise AbsentError(
            f"{ulysses} ranks do not divide {workload.key_heads} key heads, as Ulysses needs"
        )
    ring = on.size // ulysses
    mirrored = ring > 1 and workload.causal
    need_even_rows(workload, 2 * on.size if mirrored else on.size)
    rows = rows_of(workload.rows, ulysses, ring, on.rank, mirrored=mirrored)
    module = "zigzag_ring_flash_attn" if mirrored else "ring_flash_attn"
    _use_cudnn(torch, f"yunchang.ring.{module}")
    layer = _attention(yunchang, ulysses, ring, "zigzag" if mirrored else "basic", on)
    data = {name: problem.part(name, problem.held(name, rows=rows)) for name in problem.whole}
    q, k, v = (data[name] for name in "QKV")

    def forward() -> Mapping[str, Any]:
        return {"O": layer(q, k, v, causal=workload.causal)}

    def backward() -> Mapping[str, Any]:
        made = torch.autograd.grad(o, (q, k, v), data["dO"], retain_graph=True)
        return dict(zip(problem.outputs, made, strict=True))

    if workload.backward:
        for tensor in (q, k, v):
            tensor.requires_grad_()
        o = forward()["O"]
    held = {name: problem.held(name, rows=rows) for name in problem.outputs if name != "LSE"}
    return Prepared(
        run=backward if workload.backward else forward,
        held=held,
        capturable=not workload.backward,
    )


def peers(ranks: int) -> list[Candidate]:
    """Give rings alone, heads alone, and every split between the two."""
    names = {1: "USP ring", ranks: "USP Ulysses"}
    degrees = [ulysses for ulysses in range(1, ranks + 1) if ranks % ulysses == 0]
    return [
        Candidate(
            name=names.get(ulysses, f"USP {ulysses} heads x {ranks // ulysses} ring"),
            prepare=partial(_prepare, ulysses=ulysses),
        )
        for ulysses in degrees
    ]
