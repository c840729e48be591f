"""Matrix products by cuBLAS, through PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

from ..launch import DeviceLaunch

__all__ = ["matmul"]


def matmul(launch: DeviceLaunch) -> None:
    """Add the product of two matrices, ``m k`` and ``k n``, to ``m n``, or write it there.

    The sum is made in float32 or wider; no product is stored on its way to it.
    """
    a, b = (tile.tensor for tile in launch.inputs)
    c = launch.outputs[0].tensor
    if c.numel() == 0:
        return
    overwrites = launch.overwrites(0)
    if a.shape[1] == 0:
        if overwrites:
            c.zero_()
        return
    if a.dtype == c.dtype:
        _same(a, b, c, overwrites)
    else:
        _widened(a, b, c, overwrites)


def _same(a: Any, b: Any, c: Any, overwrites: bool) -> None:
    torch = importlib.import_module("torch")
    if overwrites:
        torch.mm(a, b, out=c)
    else:
        c.addmm_(a, b)


def _widened(a: Any, b: Any, c: Any, overwrites: bool) -> None:
    """Give a float32 result of 16-bit matrices."""
    torch = importlib.import_module("torch")
    operators = torch.ops.aten
    if c.is_cuda and hasattr(operators.addmm, "dtype_out"):
        if overwrites:
            operators.mm.dtype_out(a, b, c.dtype, out=c)
        else:
            operators.addmm.dtype_out(c, a, b, c.dtype, out=c)
        return
    # Before PyTorch 2.8, and on a CPU: both are widened, which changes no bit of the sum.
    _same(a.to(c.dtype), b.to(c.dtype), c, overwrites)
