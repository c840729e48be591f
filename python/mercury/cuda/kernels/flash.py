"""Attention by the flash kernels of PyTorch, and by plain products where they cannot."""

from __future__ import annotations

import importlib
from typing import Any

from .pieces import Piece

__all__ = ["Flash"]

Tensor = Any
_LARGEST_HEAD = 256
_SCORE_BYTES = 1 << 28  # of a block of rows of plain products


class Flash:
    """``aten._flash_attention_forward`` and its backward; float32 and wider by products."""

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        scale: float,
        piece: Piece,
        out: Tensor | None = None,
        lse: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Give the output and the log-sum-exp; see `AttentionLibrary`."""
        del out, lse  # no call takes a place for its results
        torch = importlib.import_module("torch")
        if not _can_flash(torch, q, v):
            return _forward_by_products(torch, q, k, v, scale, piece)
        # Flash takes -1 as no bound and aligns masks to the lower right corner, as a piece.
        result = torch.ops.aten._flash_attention_forward(
            *(_rows_of(tensor) for tensor in (q, k, v)),
            None,
            None,
            q.shape[1],
            k.shape[1],
            0.0,
            piece.is_causal,
            False,
            scale=scale,
            window_size_left=-1 if piece.left is None else piece.left,
            window_size_right=-1 if piece.right is None else piece.right,
        )
        return result[0], result[1]

    def backward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        o: Tensor,
        grad: Tensor,
        lse: Tensor,
        *,
        scale: float,
        piece: Piece,
        out: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Give the gradients; see `AttentionLibrary`."""
        del out
        torch = importlib.import_module("torch")
        if not _can_flash(torch, q, v):
            return _backward_by_products(torch, q, k, v, o, grad, lse, scale, piece)
        unused = torch.empty(2, dtype=torch.int64, device=q.device)  # for dropout only
        dq, dk, dv = torch.ops.aten._flash_attention_backward(
            _rows_of(grad),
            *(_rows_of(tensor) for tensor in (q, k, v, o)),
            lse.contiguous(),
            None,
            None,
            q.shape[1],
            k.shape[1],
            0.0,
            piece.is_causal,
            unused,
            unused[:0],
            scale=scale,
            window_size_left=-1 if piece.left is None else piece.left,
            window_size_right=-1 if piece.right is None else piece.right,
        )
        return dq, dk, dv


def _can_flash(torch: Any, q: Tensor, v: Tensor) -> bool:
    depth = q.shape[3]
    return (
        q.is_cuda
        and q.dtype in (torch.bfloat16, torch.float16)
        and depth == v.shape[3]
        and depth % 8 == 0
        and depth <= _LARGEST_HEAD
    )


def _rows_of(tensor: Tensor) -> Tensor:
    """Give a tensor whose rows the kernels can load, itself when it can be."""
    aligned = all(stride % 8 == 0 for stride in tensor.stride()[:-1])
    at = tensor.data_ptr() % 16 == 0
    return tensor if tensor.stride(-1) == 1 and aligned and at else tensor.contiguous()


# --- Plain products -------------------------------------------------------------------------


def _wide(torch: Any, tensor: Tensor) -> Any:
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def _spread(torch: Any, tensor: Tensor, heads: int, kind: Any) -> Tensor:
    """Give keys as ``[b, h, s, d]`` with a head for each of the queries'."""
    return tensor.to(kind).repeat_interleave(heads // tensor.shape[2], dim=2).transpose(1, 2)


def _blocks(q: Tensor, k: Tensor) -> range:
    row = q.shape[0] * q.shape[2] * k.shape[1] * 4
    return range(0, q.shape[1], max(1, _SCORE_BYTES // row))


def _hidden(torch: Any, piece: Piece, rows: range, keys: int, count: int, device: Any) -> Any:
    """Which pairs of a block of rows the mask hides, or None where it hides none."""
    if piece.is_full:
        return None
    at = torch.arange(rows.start, rows.stop, device=device)[:, None] + (keys - count)
    ahead = torch.arange(keys, device=device) - at
    hidden = torch.zeros_like(ahead, dtype=torch.bool)
    if piece.right is not None:
        hidden |= ahead > piece.right
    if piece.left is not None:
        hidden |= ahead < -piece.left
    return hidden


def _forward_by_products(
    torch: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, piece: Piece
) -> tuple[Tensor, Tensor]:
    kind, step = _wide(torch, q), _blocks(q, k).step
    heads, count = q.shape[2], q.shape[1]
    wide_k, wide_v = (_spread(torch, tensor, heads, kind) for tensor in (k, v))
    outputs, sums = [], []
    for first in range(0, count, step):
        rows = range(first, min(first + step, count))
        block = q[:, rows.start : rows.stop].to(kind).transpose(1, 2)
        scores = torch.matmul(block, wide_k.transpose(2, 3)) * scale
        hidden = _hidden(torch, piece, rows, k.shape[1], count, q.device)
        if hidden is not None:
            scores.masked_fill_(hidden, -torch.inf)
        total = torch.logsumexp(scores, -1)
        weights = torch.exp(scores - total[..., None])
        outputs.append(torch.matmul(weights, wide_v).transpose(1, 2))
        sums.append(total)
    return torch.cat(outputs, 1), torch.cat(sums, 2)


def _backward_by_products(
    torch: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    grad: Tensor,
    lse: Tensor,
    scale: float,
    piece: Piece,
) -> tuple[Tensor, Tensor, Tensor]:
    kind, step = _wide(torch, q), _blocks(q, k).step
    heads, count, group = q.shape[2], q.shape[1], q.shape[2] // k.shape[2]
    wide_k, wide_v = (_spread(torch, tensor, heads, kind) for tensor in (k, v))
    dk, dv = torch.zeros_like(wide_k), torch.zeros_like(wide_v)
    grads = []
    for first in range(0, count, step):
        rows = range(first, min(first + step, count))
        block, above, out = (
            tensor[:, rows.start : rows.stop].to(kind).transpose(1, 2)
            for tensor in (q, grad, o)
        )
        scores = torch.matmul(block, wide_k.transpose(2, 3)) * scale
        weights = torch.exp(scores - lse[:, :, rows.start : rows.stop, None].to(kind))
        hidden = _hidden(torch, piece, rows, k.shape[1], count, q.device)
        if hidden is not None:
            weights = weights.masked_fill(hidden, 0.0)
        delta = (above * out).sum(-1, keepdim=True)
        slopes = weights * (torch.matmul(above, wide_v.transpose(2, 3)) - delta) * scale
        grads.append(torch.matmul(slopes, wide_k).transpose(1, 2))
        dk += torch.matmul(slopes.transpose(2, 3), block)
        dv += torch.matmul(weights.transpose(2, 3), above)

    def gathered(tensor: Tensor) -> Tensor:
        b, _, s, depth = tensor.shape
        return tensor.reshape(b, heads // group, group, s, depth).sum(2).transpose(1, 2)

    return torch.cat(grads, 1), gathered(dk), gathered(dv)
