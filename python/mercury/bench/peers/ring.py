"""Keys and values go around by NCCL's send and receive; results merge as they come.

Causal attention takes the balanced layout (Zhu, "ring-flash-attention", 2024): a rank has a
block of the first half and its mirror of the second, and each step after the first is one
call without a mask, over half of the rank's keys or half of its queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import cudnn
from ..candidate import Candidate, Prepared
from ..problems import AttentionProblem
from ..processes import Processes
from ..shards import block, zigzag
from .merge import Partial, merger
from .need import need_even_rows, need_forward, need_ranks

__all__ = ["PEERS"]


def _prepare(problem: AttentionProblem, on: Processes) -> Prepared:
    dist, torch, workload = need_ranks(on), on.torch, problem.workload
    need_forward(workload, "the ring of USP is measured for gradients")
    need_even_rows(workload, 2 * on.size if workload.causal else on.size)
    cut = zigzag if workload.causal else block
    rows = cut(workload.rows, on.size, on.rank)
    q, k, v = (problem.part(name, problem.held(name, rows=rows)) for name in "QKV")
    own = torch.stack([k, v])
    buffers = [torch.empty_like(own) for _ in range(min(2, on.size - 1))]
    merge, half = merger(torch), q.shape[1] // 2
    to, source = (on.rank + 1) % on.size, (on.rank - 1) % on.size

    def attend(step: int, keys: Any, values: Any, before: Partial | None) -> Partial:
        if before is None:
            return cudnn.attention(torch, q, keys, values, causal=workload.causal)
        if not workload.causal:
            return merge(before, cudnn.attention(torch, q, keys, values))
        if step <= on.rank:  # from a rank before: its first block is seen, its mirror is not
            first = cudnn.attention(torch, q, keys[:, :half], values[:, :half])
            return merge(before, first)
        o, lse = before
        late = cudnn.attention(torch, q[:, half:], keys, values)
        merged = merge((o[:, half:], lse[:, :, half:]), late)
        return (
            torch.cat([o[:, :half], merged[0]], 1),
            torch.cat([lse[:, :, :half], merged[1]], 2),
        )

    def run() -> Mapping[str, Any]:
        moving, made, requests = own, None, []
        for step in range(on.size):
            coming = None
            if step + 1 < on.size:
                coming = buffers[step % len(buffers)]
                requests = dist.batch_isend_irecv(
                    [dist.P2POp(dist.isend, moving, to), dist.P2POp(dist.irecv, coming, source)]
                )
            made = attend(step, moving[0], moving[1], made)
            if coming is not None:
                for request in requests:
                    request.wait()
                moving = coming
        assert made is not None
        return {"O": made[0], "LSE": made[1]}

    held = {name: problem.held(name, rows=rows) for name in problem.outputs}
    return Prepared(run=run, held=held)


PEERS = (Candidate(name="NCCL ring", prepare=_prepare),)
