"""Attention: tensors, and rows of the result in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import cudnn
from ..processes import Processes
from ..workload import Attention
from .tensors import normal, part, relative_error

__all__ = ["AttentionProblem"]

_SAMPLES = 24
_QUERY_ROWS = {"Q": 1, "O": 1, "dO": 1, "dQ": 1, "LSE": 2}


class AttentionProblem:
    """Attention of whole tensors that every rank holds.

    Attributes
    ----------
    workload
        Which attention.
    whole
        By the names of the program's buffers: Q ``[b, s, h, d]``, K and V ``[b, s, hk, d]``;
        for the gradients also O, LSE ``[b, h, s]`` and dO.
    outputs
        Names of the results.
    """

    def __init__(self, workload: Attention, on: Processes) -> None:
        self.workload, self.on = workload, on
        queries = (workload.batch, workload.rows, workload.heads, workload.depth)
        keys = (workload.batch, workload.rows, workload.key_heads, workload.depth)
        self.whole: dict[str, Any] = {
            "Q": normal(on, *queries, seed=1),
            "K": normal(on, *keys, seed=2),
            "V": normal(on, *keys, seed=3),
        }
        self.outputs: tuple[str, ...] = ("O", "LSE")
        if workload.backward:
            self.outputs = ("dQ", "dK", "dV")
            self.whole["dO"] = normal(on, *queries, seed=4)
            self.whole["O"], self.whole["LSE"] = self._forward()

    def _forward(self) -> tuple[Any, Any]:
        """Give the output of all rows and its log-sum-exp, by one device."""
        torch, workload = self.on.torch, self.workload
        q, k, v = (self.whole[name] for name in "QKV")
        o, lse = cudnn.attention(torch, q, k, v, causal=workload.causal)
        return o.contiguous(), lse.contiguous()

    def held(
        self,
        name: str,
        *,
        rows: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> tuple[Any, ...]:
        """Give the indices of a buffer's part: rows and heads of it, all when not given."""
        workload = self.workload
        query = name in _QUERY_ROWS
        every = range(workload.heads if query else workload.key_heads)
        row = range(workload.rows) if rows is None else rows
        head = every if heads is None else heads
        batch = range(workload.batch)
        if name == "LSE":
            return batch, head, row
        return batch, row, head, range(workload.depth)

    def part(self, name: str, indices: Sequence[Any]) -> Any:
        """Give a rank's own copy of a part of an input."""
        return part(self.on, self.whole[name], indices)

    def error(self, results: Mapping[str, Any], held: Mapping[str, Sequence[Any]]) -> float:
        """See `Problem.error`."""
        generator = self.on.torch.Generator().manual_seed(17 + self.on.rank)
        pairs = {}
        for name, result in results.items():
            at, indices = self._sampled(result, held[name], name, generator)
            reference = self._reference(name)
            pairs[name] = (
                self.on.torch.stack(at),
                self.on.torch.stack([reference(*index) for index in indices]),
            )
        return relative_error(self.on, pairs)

    def _sampled(
        self, result: Any, held: Sequence[Any], name: str, generator: Any
    ) -> tuple[list[Any], list[tuple[int, int, int]]]:
        """Take random rows; give them, and the batch, row and head of each."""
        torch, taken, indices = self.on.torch, [], []
        sizes = [len(index) for index in held]
        if list(result.shape) != sizes:
            raise ValueError(f"{name} has shape {list(result.shape)}, expected {sizes}")
        for _ in range(_SAMPLES):
            own = [int(torch.randint(size, (1,), generator=generator)) for size in sizes[:3]]
            b, x, y = (int(held[dim][own[dim]]) for dim in range(3))
            taken.append(result[tuple(own)])
            indices.append((b, y, x) if name == "LSE" else (b, x, y))
        return taken, indices

    def _reference(self, name: str) -> Any:
        return {
            "O": self._output,
            "LSE": self._log_sum_exp,
            "dQ": self._grad_query,
            "dK": lambda b, row, head: self._grad_key(b, row, head)[0],
            "dV": lambda b, row, head: self._grad_key(b, row, head)[1],
        }[name]

    def _scores(self, b: int, row: int, head: int) -> Any:
        """Give the scores of a query with the keys that it sees."""
        seen = row + 1 if self.workload.causal else self.workload.rows
        keys = self.whole["K"][b, :seen, head // self.workload.group].double()
        return keys @ self.whole["Q"][b, row, head].double() / self.workload.depth**0.5

    def _output(self, b: int, row: int, head: int) -> Any:
        weights = self.on.torch.softmax(self._scores(b, row, head), 0)
        return (
            weights @ self.whole["V"][b, : len(weights), head // self.workload.group].double()
        )

    def _log_sum_exp(self, b: int, row: int, head: int) -> Any:
        return self.on.torch.logsumexp(self._scores(b, row, head), 0)

    def _grad_query(self, b: int, row: int, head: int) -> Any:
        key_head = head // self.workload.group
        scores = self._scores(b, row, head)
        seen, grad = len(scores), self.whole["dO"][b, row, head].double()
        weights = self.on.torch.exp(scores - self.whole["LSE"][b, head, row].double())
        products = self.whole["V"][b, :seen, key_head].double() @ grad
        delta = grad @ self.whole["O"][b, row, head].double()
        keys = self.whole["K"][b, :seen, key_head].double()
        return (weights * (products - delta)) @ keys / self.workload.depth**0.5

    def _grad_key(self, b: int, row: int, key_head: int) -> tuple[Any, Any]:
        """Give the gradients of a row of K and V: sums over the queries that see it."""
        group, scale = self.workload.group, self.workload.depth**-0.5
        first = row if self.workload.causal else 0
        key, value = (self.whole[name][b, row, key_head].double() for name in "KV")
        grad_key, grad_value = key * 0, key * 0
        for head in range(key_head * group, (key_head + 1) * group):
            q, o, grad = (self.whole[x][b, first:, head].double() for x in ("Q", "O", "dO"))
            lse = self.whole["LSE"][b, head, first:].double()
            weights = self.on.torch.exp(q @ key * scale - lse)
            grad_value += weights @ grad
            grad_key += scale * ((weights * (grad @ value - (grad * o).sum(1))) @ q)
        return grad_key, grad_value
