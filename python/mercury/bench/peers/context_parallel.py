"""PyTorch's ``context_parallel``, with cuDNN's kernel and either way to move the keys."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from ..candidate import Candidate, Prepared
from ..errors import AbsentError
from ..problems import AttentionProblem
from ..processes import Processes
from ..shards import block, zigzag
from .need import need_even_rows, need_module, need_ranks

__all__ = ["PEERS"]

_EXPERIMENTAL = "torch.distributed.tensor.experimental"
_REMEDY = "it came with torch 2.7"


def _options() -> Any:
    """Find its switches, which have moved between versions."""
    for name in ("_context_parallel._attention", "_attention"):
        with contextlib.suppress(AbsentError):
            module = need_module(f"{_EXPERIMENTAL}.{name}", _REMEDY)
            if hasattr(module, "_cp_options") and hasattr(module, "set_rotate_method"):
                return module
    raise AbsentError("this torch's context_parallel has no known switch to balance its load")


class _Scope:
    """PyTorch's context, entered once for all candidates that are ready: it does not nest."""

    def __init__(self) -> None:
        self._users, self._stack = 0, contextlib.ExitStack()

    def enter(self, on: Processes) -> None:
        self._users += 1
        if self._users > 1:
            return
        mesh = need_module("torch.distributed.device_mesh", _REMEDY).init_device_mesh(
            "cuda", (on.size,)
        )
        # It wants a tensor to cut; ours are cut already.
        nothing = on.torch.zeros(1, 1, 2 * on.size, 1, device=on.device)
        context = need_module(_EXPERIMENTAL, _REMEDY).context_parallel
        self._stack.enter_context(
            context(
                mesh,
                buffers=[nothing],
                buffer_seq_dims=[2],
                no_restore_buffers={nothing},
            )
        )

    def leave(self) -> None:
        self._users -= 1
        if not self._users:
            self._stack.close()


_SCOPE = _Scope()


def _prepare(problem: AttentionProblem, on: Processes, *, rotate: str) -> Prepared:
    need_ranks(on)
    torch, workload, options = on.torch, problem.workload, _options()
    need_even_rows(workload, 2 * on.size if workload.causal else on.size)
    attention = need_module("torch.nn.attention", _REMEDY)
    rows = (zigzag if workload.causal else block)(workload.rows, on.size, on.rank)
    q, k, v = (
        problem.part(name, problem.held(name, rows=rows)).transpose(1, 2).contiguous()
        for name in "QKV"
    )
    held = {name: problem.held(name, rows=rows) for name in problem.outputs if name != "LSE"}

    def forward() -> Any:
        options._cp_options.enable_load_balance = workload.causal
        options.set_rotate_method(rotate)
        with attention.sdpa_kernel(attention.SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=workload.causal, enable_gqa=workload.group > 1
            )

    def run_forward() -> Mapping[str, Any]:
        return {"O": forward().transpose(1, 2)}

    _SCOPE.enter(on)
    if not workload.backward:
        return Prepared(run=run_forward, held=held, close=_SCOPE.leave)

    for tensor in (q, k, v):
        tensor.requires_grad_()
    o = forward()
    grad_o = problem.part("dO", problem.held("dO", rows=rows)).transpose(1, 2).contiguous()

    def run_backward() -> Mapping[str, Any]:
        options._cp_options.enable_load_balance = workload.causal
        options.set_rotate_method(rotate)
        made = torch.autograd.grad(o, (q, k, v), grad_o, retain_graph=True)
        return {
            name: gradient.transpose(1, 2)
            for name, gradient in zip(problem.outputs, made, strict=True)
        }

    return Prepared(run=run_backward, held=held, capturable=False, close=_SCOPE.leave)


def _candidate(rotate: str) -> Candidate:
    return Candidate(
        name=f"context_parallel {rotate}",
        prepare=lambda problem, on: _prepare(problem, on, rotate=rotate),
    )


PEERS = (_candidate("allgather"), _candidate("alltoall"))
