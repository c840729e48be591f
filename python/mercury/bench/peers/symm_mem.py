"""PyTorch's products fused with communication, in symmetric memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..candidate import Candidate, Prepared
from ..errors import AbsentError
from ..problems import ProductProblem
from ..processes import Processes
from .need import need_module, need_ranks

__all__ = ["PEERS"]


def _prepare(problem: ProductProblem, on: Processes) -> Prepared:
    dist = need_ranks(on)
    need_module("torch.distributed._symmetric_memory", "it came with torch 2.5")
    operators = on.torch.ops.symm_mem
    if not hasattr(operators, "fused_all_gather_matmul"):
        raise AbsentError("this torch has no symm_mem.fused_all_gather_matmul")
    gather, scatter = operators.fused_all_gather_matmul, operators.fused_matmul_reduce_scatter
    group = dist.group.WORLD.group_name
    a, b = problem.own("A"), problem.own("B")

    def run() -> Mapping[str, Any]:
        if problem.workload.operator == "ag-gemm":
            return {"C": gather(a, [b], 0, group, return_A=False)[1][0]}
        return {"C": scatter(a, b, "sum", 0, group)}

    return Prepared(run=run, held={"C": problem.indices["C"]})


PEERS = (Candidate(name="symm_mem", prepare=_prepare),)
