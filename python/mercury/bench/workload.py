"""What is measured: an operator and its shape, by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from .errors import BenchError

__all__ = ["Attention", "Product", "Workload", "parse_workload"]

_ATTENTION = re.compile(
    r"attention-(?P<b>\d+)x(?P<h>\d+)x(?P<s>\d+)-(?P<mask>full|causal)"
    r"(-gqa(?P<hk>\d+))?(?P<bwd>-bwd)?"
)
_PRODUCT = re.compile(r"(?P<op>ag-gemm|gemm-rs)-(?P<m>\d+)x(?P<k>\d+)x(?P<n>\d+)")


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Softmax attention of bf16 tensors with a head dimension of 128.

    Attributes
    ----------
    batch, heads, rows
        Batch, query heads, and the length of queries and of keys.
    key_heads
        Heads of K and V.
    causal
        Whether a query sees only the keys up to itself.
    backward
        The gradients, instead of the output.
    """

    batch: int
    heads: int
    rows: int
    key_heads: int
    causal: bool = False
    backward: bool = False
    depth: ClassVar[int] = 128

    def __str__(self) -> str:
        name = f"attention-{self.batch}x{self.heads}x{self.rows}"
        name += "-causal" if self.causal else "-full"
        name += f"-gqa{self.key_heads}" if self.key_heads != self.heads else ""
        return name + ("-bwd" if self.backward else "")

    @property
    def group(self) -> int:
        """Query heads for each key head."""
        return self.heads // self.key_heads

    @property
    def flops(self) -> float:
        """Arithmetic of all ranks: two products forward, five backward; half when causal."""
        pairs = self.batch * self.heads * self.rows**2 / (2 if self.causal else 1)
        return (5 if self.backward else 2) * 2.0 * pairs * self.depth


@dataclass(frozen=True, kw_only=True)
class Product:
    """A matrix product of bf16 tensors of a tensor-parallel layer.

    Attributes
    ----------
    operator
        ``"ag-gemm"``: A is cut by rows, B and C by columns. ``"gemm-rs"``: A is cut by
        columns and B by rows, C by rows.
    m, k, n
        A is m x k, B is k x n, of all ranks.
    """

    operator: str
    m: int
    k: int
    n: int

    def __str__(self) -> str:
        return f"{self.operator}-{self.m}x{self.k}x{self.n}"

    @property
    def flops(self) -> float:
        """Arithmetic of all ranks."""
        return 2.0 * self.m * self.k * self.n


Workload = Attention | Product


def parse_workload(text: str) -> Workload:
    """Read the name of a workload.

    Parameters
    ----------
    text
        ``attention-BxHxS-full``, or ``-causal``, then ``-gqaHK`` for HK key heads and
        ``-bwd`` for the gradients; ``ag-gemm-MxKxN``; ``gemm-rs-MxKxN``.

    Raises
    ------
    BenchError
        When it is none of these, or its numbers do not fit.

    Examples
    --------
    >>> str(parse_workload("attention-1x32x16384-causal-gqa8-bwd"))
    'attention-1x32x16384-causal-gqa8-bwd'
    >>> parse_workload("ag-gemm-8192x8192x28672").flops
    3848290697216.0
    """
    found = _ATTENTION.fullmatch(text)
    if found:
        heads = int(found["h"])
        attention = Attention(
            batch=int(found["b"]),
            heads=heads,
            rows=int(found["s"]),
            key_heads=int(found["hk"] or heads),
            causal=found["mask"] == "causal",
            backward=bool(found["bwd"]),
        )
        sizes: tuple[int, ...] = (
            attention.batch,
            attention.heads,
            attention.rows,
            attention.key_heads,
        )
        made: Workload = attention
    elif found := _PRODUCT.fullmatch(text):
        made = Product(
            operator=found["op"], m=int(found["m"]), k=int(found["k"]), n=int(found["n"])
        )
        sizes = (made.m, made.k, made.n)
    else:
        raise BenchError(
            f"there is no workload '{text}'; write attention-BxHxS-full or -causal, with "
            "-gqaHK and -bwd behind it, ag-gemm-MxKxN or gemm-rs-MxKxN, as in "
            "attention-1x32x16384-causal"
        )
    if min(sizes) < 1:
        raise BenchError(f"workload '{text}' must have sizes of at least 1")
    if isinstance(made, Attention) and made.heads % made.key_heads:
        raise BenchError(
            f"workload '{text}' must have query heads that its key heads divide, got "
            f"{made.heads} and {made.key_heads}"
        )
    return made
