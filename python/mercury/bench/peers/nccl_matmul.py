"""Collectives of NCCL and products of cuBLAS, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..candidate import Candidate, Prepared
from ..problems import ProductProblem
from ..processes import Processes
from .need import need_ranks

__all__ = ["PEERS"]


def _prepare(problem: ProductProblem, on: Processes) -> Prepared:
    dist, torch = need_ranks(on), on.torch
    a, b = problem.own("A"), problem.own("B")
    held = {"C": problem.indices["C"]}
    whole_rows = problem.workload.m
    if problem.workload.operator == "ag-gemm":
        gathered = a.new_empty((whole_rows, a.shape[1]))
        c = a.new_empty((whole_rows, b.shape[1]))

        def gather_and_multiply() -> Mapping[str, Any]:
            dist.all_gather_into_tensor(gathered, a)
            return {"C": torch.mm(gathered, b, out=c)}

        return Prepared(run=gather_and_multiply, held=held)

    partial = a.new_empty((whole_rows, b.shape[1]))
    own = a.new_empty((whole_rows // on.size, b.shape[1]))

    def multiply_and_scatter() -> Mapping[str, Any]:
        torch.mm(a, b, out=partial)
        dist.reduce_scatter_tensor(own, partial)
        return {"C": own}

    return Prepared(run=multiply_and_scatter, held=held)


PEERS = (Candidate(name="NCCL + cuBLAS", prepare=_prepare),)
