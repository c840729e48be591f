"""The data of workloads, and samples of what is right."""

from __future__ import annotations

from ..processes import Processes
from ..workload import Attention, Workload
from .attention import AttentionProblem
from .product import ProductProblem

__all__ = ["AttentionProblem", "ProductProblem", "make_problem"]


def make_problem(workload: Workload, on: Processes) -> AttentionProblem | ProductProblem:
    """Make the data of a workload, the same on every rank."""
    if isinstance(workload, Attention):
        return AttentionProblem(workload, on)
    return ProductProblem(workload, on)
