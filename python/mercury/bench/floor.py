"""The floor: what one GPU needs for its share of the work when all data is there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import cudnn
from .candidate import Prepared
from .errors import BenchError
from .problems import AttentionProblem, ProductProblem
from .processes import Processes
from .shards import block

__all__ = ["one_device", "prepare"]

Results = tuple[Mapping[str, Any], Mapping[str, Sequence[Any]]]


def prepare(problem: AttentionProblem | ProductProblem, on: Processes) -> Prepared:
    """Make one library call for the work of one rank.

    Attention takes a rank's queries and all keys; causal attention and the gradients take all
    rows of a rank's heads, which is the same work on every rank.
    """
    if isinstance(problem, ProductProblem):
        return _product(problem, on)
    return _attention(problem, on)


def one_device(
    problem: AttentionProblem | ProductProblem, floor: Prepared, on: Processes
) -> Results:
    """Give what one device computes: its error is what no method is asked to beat."""
    if isinstance(problem, ProductProblem) and problem.workload.operator == "gemm-rs":
        rows, columns = problem.indices["C"]
        whole = problem.whole
        c = on.torch.mm(whole["A"][rows.start : rows.stop], whole["B"])
        return {"C": c}, {"C": (rows, columns)}
    return floor.run(), floor.held


def _product(problem: ProductProblem, on: Processes) -> Prepared:
    (rows, depth), (_, columns) = problem.indices["A"], problem.indices["B"]
    rows = range(problem.workload.m)
    a, b = (problem.part("A", (rows, depth)), problem.own("B"))
    c = a.new_empty((len(rows), len(columns)))
    return Prepared(run=lambda: {"C": on.torch.mm(a, b, out=c)}, held={"C": (rows, columns)})


def _attention(problem: AttentionProblem, on: Processes) -> Prepared:
    workload, torch = problem.workload, on.torch
    by_heads = workload.causal or workload.backward
    rows = None if by_heads else block(workload.rows, on.size, on.rank)
    heads: dict[int, range | None] = dict.fromkeys((workload.heads, workload.key_heads))
    if by_heads:
        if workload.key_heads % on.size:
            raise BenchError(
                f"the floor of {workload} gives each rank whole heads, and {on.size} ranks do "
                f"not divide {workload.key_heads} key heads; take a number of ranks that does"
            )
        heads = {count: block(count, on.size, on.rank) for count in heads}

    def held(name: str) -> tuple[Any, ...]:
        keys = name in ("K", "V", "dK", "dV")
        count = workload.key_heads if keys else workload.heads
        return problem.held(name, rows=None if keys else rows, heads=heads[count])

    data = {name: problem.part(name, held(name)) for name in problem.whole}
    q, k, v = (data[name] for name in "QKV")

    def forward() -> Mapping[str, Any]:
        o, lse = cudnn.attention(torch, q, k, v, causal=workload.causal)
        return {"O": o, "LSE": lse}

    def backward() -> Mapping[str, Any]:
        made = cudnn.attention_backward(
            torch, data["dO"], q, k, v, data["O"], data["LSE"], causal=workload.causal
        )
        return dict(zip(problem.outputs, made, strict=True))

    return Prepared(
        run=backward if workload.backward else forward,
        held={name: held(name) for name in problem.outputs},
    )
