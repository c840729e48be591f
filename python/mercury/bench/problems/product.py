"""Matrix products: tensors, and elements of the result in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BenchError
from ..processes import Processes
from ..workload import Product
from .tensors import normal, part, relative_error

__all__ = ["ProductProblem"]

_SAMPLES = 64


class ProductProblem:
    """C = A B of whole matrices that every rank holds.

    Attributes
    ----------
    workload
        Which product.
    whole
        A ``[m, k]`` and B ``[k, n]``, by name.
    outputs
        Names of the results.
    """

    outputs = ("C",)

    def __init__(self, workload: Product, on: Processes) -> None:
        uneven = [size for size in (workload.m, workload.k, workload.n) if size % on.size]
        if uneven:
            raise BenchError(
                f"{workload} is measured on ranks that divide it, got {on.size} ranks and a "
                f"size of {uneven[0]}"
            )
        self.workload, self.on = workload, on
        self.whole = {
            "A": normal(on, workload.m, workload.k, seed=1),
            "B": normal(on, workload.k, workload.n, seed=2, scale=workload.k**-0.5),
        }

    def block(self, size: int) -> range:
        """Give this rank's part of so many rows or columns."""
        own = size // self.on.size
        return range(self.on.rank * own, (self.on.rank + 1) * own)

    @property
    def indices(self) -> dict[str, tuple[range, range]]:
        """What part of each matrix a rank has outside the operator."""
        m, k, n = (range(x) for x in (self.workload.m, self.workload.k, self.workload.n))
        rows, depth, columns = (self.block(len(x)) for x in (m, k, n))
        if self.workload.operator == "ag-gemm":
            return {"A": (rows, k), "B": (k, columns), "C": (m, columns)}
        return {"A": (m, depth), "B": (depth, n), "C": (rows, n)}

    def part(self, name: str, indices: Sequence[Any]) -> Any:
        """Give a rank's own copy of a part of an input."""
        return part(self.on, self.whole[name], indices)

    def own(self, name: str) -> Any:
        """Give a rank's part of an input outside the operator."""
        return self.part(name, self.indices[name])

    def error(self, results: Mapping[str, Any], held: Mapping[str, Sequence[Any]]) -> float:
        """See `Problem.error`."""
        torch, result = self.on.torch, results["C"]
        sizes = [len(index) for index in held["C"]]
        if list(result.shape) != sizes:
            raise ValueError(f"C has shape {list(result.shape)}, expected {sizes}")
        generator = torch.Generator().manual_seed(17 + self.on.rank)
        own = [torch.randint(size, (_SAMPLES,), generator=generator) for size in sizes]
        row, column = (
            torch.as_tensor([int(index[int(i)]) for i in at], device=self.on.device)
            for index, at in zip(held["C"], own, strict=True)
        )
        a = self.whole["A"].index_select(0, row).double()
        b = self.whole["B"].index_select(1, column).double()
        taken = result[own[0].to(self.on.device)][:, own[1].to(self.on.device)]
        return relative_error(self.on, {"C": (taken, a @ b)})
