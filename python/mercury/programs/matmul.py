"""Matrix product, and the two products of a tensor-parallel layer."""

from __future__ import annotations

from ..dsl import ProgramBuilder, program

__all__ = ["ag_gemm", "gemm_rs", "matmul"]


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
    _matmul(p, m, n, depth, dtype, layout)


@program
def ag_gemm(
    p: ProgramBuilder,
    m: int = 4096,
    n: int = 4096,
    depth: int = 4096,
    dtype: str = "bf16",
    layout: dict[str, str] | None = None,
) -> None:
    """`matmul` whose A is cut by rows over all ranks: gather, then multiply.

    The first product of a tensor-parallel layer with sequence parallelism (Korthikanti et
    al., "Reducing Activation Recomputation in Large Transformer Models", 2022, section
    4.2.2), usually with its columns in parallel. Parameters are those of `matmul`.
    """
    _matmul(p, m, n, depth, dtype, layout, cut="A")


@program
def gemm_rs(
    p: ProgramBuilder,
    m: int = 4096,
    n: int = 4096,
    depth: int = 4096,
    dtype: str = "bf16",
    layout: dict[str, str] | None = None,
) -> None:
    """`matmul` whose C is cut by rows over all ranks: multiply, then reduce and scatter.

    The second product of a tensor-parallel layer with sequence parallelism, usually with
    its sum over k in parallel; see `ag_gemm`. Parameters are those of `matmul`.
    """
    _matmul(p, m, n, depth, dtype, layout, cut="C")


def _matmul(
    p: ProgramBuilder,
    m: int,
    n: int,
    depth: int,
    dtype: str,
    layout: dict[str, str] | None,
    cut: str = "",
) -> None:
    i, j, k = p.axes(i=m, j=n, k=depth, layout=layout)
    a = p.input("A", (i, k), dtype, cut=i if cut == "A" else None)
    b = p.input("B", (k, j), dtype)
    c = p.output("C", (i, j), dtype, cut=i if cut == "C" else None)
    with p.loops(i, j):
        c[i, j] = p.reduce(k, merge="sum", body=lambda: p.matmul(a[i, k], b[k, j]))
