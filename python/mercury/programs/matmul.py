"""Matrix product."""

from __future__ import annotations

from ..dsl import ProgramBuilder, program

__all__ = ["matmul"]


@program
def matmul(
    p: ProgramBuilder,
    m: int = 4096,
    n: int = 4096,
    depth: int = 4096,
    dtype: str = "bf16",
    layout: dict[str, str] | None = None,
) -> None:
    """``C[i, j] = sum over k of A[i, k] * B[k, j]``.

    Parameters
    ----------
    p
        The program under construction.
    m, n, depth
        Extents of ``i``, ``j`` and ``k``.
    dtype
        Element type of A, B and C; sums are kept in float32 or wider.
    layout
        How axes are cut into shards, where not by block.
    """
    i, j, k = p.axes(i=m, j=n, k=depth, layout=layout)
    a, b = p.input("A", (i, k), dtype), p.input("B", (k, j), dtype)
    c = p.output("C", (i, j), dtype)
    with p.loops(i, j):
        c[i, j] = p.reduce(k, merge="sum", body=lambda: p.matmul(a[i, k], b[k, j]))
