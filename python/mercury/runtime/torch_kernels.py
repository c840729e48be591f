"""Kernels by PyTorch, which is imported when the first of them runs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .kernels import Kernel, Launch, Tile

__all__ = ["KERNELS"]


def _tensor(torch: Any, tile: Tile) -> Any:
    """Give a tile as a tensor of the same memory."""
    if tile.dtype != "bf16":
        return torch.from_numpy(tile.array)
    return torch.from_numpy(tile.array.view(np.int16)).view(torch.bfloat16)


def _import_torch() -> Any:
    try:
        return importlib.import_module("torch")  # optional, and not typed here
    except ImportError as error:
        raise RuntimeError(
            f"a kernel is patched with 'torch' but PyTorch is not there ({error}); install "
            "torch or patch the kernel with 'generated'"
        ) from None


def _matmul(launch: Launch) -> None:
    """Add the product of two matrices, ``m k`` and ``k n``, to ``m n``."""
    torch = _import_torch()
    a, b = (_tensor(torch, tile) for tile in launch.inputs)
    sums = _tensor(torch, launch.outputs[0])
    if not a.shape[1]:
        return
    if sums.dtype in (torch.float32, torch.float64):
        sums.addmm_(a.to(sums.dtype), b.to(sums.dtype))
    else:  # summed in float32, and rounded once
        sums.add_(torch.matmul(a.to(torch.float32), b.to(torch.float32)))


def _attention_fwd(launch: Launch) -> None:
    """Merge softmax(q k^T) v, and its log-sum-exp, into both results."""
    # q: b sq h d; k: b sk h/g d; v: b sk h/g e -> o: b sq h e; lse: b h sq
    torch = _import_torch()
    tiles = [_tensor(torch, tile) for tile in (*launch.inputs, *launch.outputs)]
    # PyTorch's own attention divides by zero where there are no queries or keys.
    if any(tile.numel() == 0 for tile in tiles):
        return
    q, k, v, o, lse = tiles
    given = launch.parameters
    heads = (torch.arange(q.shape[2]) + given["at_h"]) // given["group"] - given["at_h/g"]
    q, k, v = (
        tile.to(lse.dtype).transpose(1, 2) for tile in (q, k[:, :, heads], v[:, :, heads])
    )
    scores = torch.matmul(q, k.transpose(2, 3)) * given["scale"]
    ahead = (torch.arange(k.shape[2]) + given["at_sk"]) - (
        torch.arange(q.shape[2])[:, None] + given["at_sq"]
    )
    scores.masked_fill_((ahead < -given["left"]) | (ahead > given["right"]), -torch.inf)

    merged = torch.logaddexp(lse, torch.logsumexp(scores, -1))
    # A row that has seen no key yet weighs nothing, and -inf less -inf is no number.
    at = torch.where(merged == -torch.inf, 0.0, merged)
    before = torch.exp(lse - at).transpose(1, 2)[..., None]
    part = torch.matmul(torch.exp(scores - at[..., None]), v).transpose(1, 2)
    o.mul_(before).add_(part)
    lse.copy_(merged)


KERNELS: Mapping[str, Kernel] = {
    "torch.matmul": _matmul,
    "torch.attention_fwd": _attention_fwd,
}
