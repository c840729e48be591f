"""All keys and values are gathered, then one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import cudnn
from ..candidate import Candidate, Prepared
from ..errors import AbsentError
from ..problems import AttentionProblem
from ..processes import Processes
from ..shards import block
from .need import need_even_rows, need_forward, need_ranks

__all__ = ["PEERS"]


def _prepare(problem: AttentionProblem, on: Processes) -> Prepared:
    dist, torch, workload = need_ranks(on), on.torch, problem.workload
    need_forward(workload, "the ring of USP is measured for gradients")
    need_even_rows(workload, on.size)
    if workload.causal:
        raise AbsentError(
            "cuDNN's causal mask begins at the first query, so a later block of queries over "
            "all keys is no single call; context_parallel gathers too"
        )
    rows = block(workload.rows, on.size, on.rank)
    q, k, v = (problem.part(name, problem.held(name, rows=rows)) for name in "QKV")
    gathered = [k.new_empty((on.size, *k.shape)) for _ in range(2)]

    def run() -> Mapping[str, Any]:
        for part, whole in zip((k, v), gathered, strict=True):
            dist.all_gather_into_tensor(whole.flatten(0, 1), part)
        # [ranks, b, s, h, d] to [b, all s, h, d]: only a batch of one needs no copy.
        keys, values = (
            whole.transpose(0, 1).reshape(k.shape[0], workload.rows, *k.shape[2:])
            for whole in gathered
        )
        o, lse = cudnn.attention(torch, q, keys, values)
        return {"O": o, "LSE": lse}

    held = {name: problem.held(name, rows=rows) for name in problem.outputs}
    return Prepared(run=run, held=held)


PEERS = (Candidate(name="gather KV", prepare=_prepare),)
