"""Attention of a tile by a library: cut into its calls, and its partial results merged."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from ..launch import DeviceLaunch
from .merge import softmax_merge
from .pieces import Piece, pieces

__all__ = ["AttentionLibrary", "attention_backward", "attention_forward"]

_UNBOUNDED = 1 << 40  # as masks are, and longer than any axis
Tensor = Any  # PyTorch is not typed here


class AttentionLibrary(Protocol):
    """Calls of one library. Tensors are ``[b, s, h, d]``; log-sum-exps ``[b, h, s]``."""

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        scale: float,
        piece: Piece,
        out: Tensor | None,
        lse: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Give the output and the log-sum-exp, in ``out`` and ``lse`` where they are given.

        A library that cannot write there gives its own; the caller copies.
        """

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
        out: tuple[Tensor, Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Give the gradients by q, k and v, in ``out`` where it is given and can be."""


def attention_forward(library: AttentionLibrary) -> Callable[[DeviceLaunch], None]:
    """Make the kernel ``attention_fwd`` of a library."""

    def kernel(launch: DeviceLaunch) -> None:
        q, k, v = (tile.tensor for tile in launch.inputs)
        o, lse = (tile.tensor for tile in launch.outputs)
        if q.numel() == 0:
            return
        calls = _pieces(launch)
        overwrites = launch.overwrites(0)
        if overwrites and _covered(calls) < q.shape[1] * q.shape[2]:
            # Rows that see no key of this tile.
            o.zero_()
            lse.fill_(-float("inf"))
        for piece in calls:
            rows, heads = slice(*piece.rows), slice(*piece.heads)
            own, sums = o[:, rows, heads], lse[:, heads, rows]
            own_k, own_v = _keys(piece, k, v)
            part, total = library.forward(
                q[:, rows, heads],
                own_k,
                own_v,
                scale=launch.parameters["scale"],
                piece=piece,
                out=own if overwrites else None,
                lse=sums if overwrites else None,
            )
            if overwrites:
                _put(part, own)
                _put(total, sums)
            else:
                softmax_merge(part, total, own, sums)

    return kernel


def attention_backward(library: AttentionLibrary) -> Callable[[DeviceLaunch], None]:
    """Make the kernel ``attention_bwd`` of a library."""

    def kernel(launch: DeviceLaunch) -> None:
        torch = importlib.import_module("torch")
        q, k, v, o, grad, lse = (tile.tensor for tile in launch.inputs)
        results = tuple(tile.tensor for tile in launch.outputs)
        calls = _pieces(launch) if q.numel() and k.numel() else []
        whole = (0, q.shape[1]), (0, k.shape[1]), (0, q.shape[2]), (0, k.shape[2])
        writes = [(p.rows, p.keys, p.heads, p.key_heads) for p in calls] == [whole]
        for number, result in enumerate(results):
            if launch.overwrites(number) and not writes:
                result.zero_()
        if not _sees_first_key(launch):
            # A query that saw no key has a log-sum-exp of -inf, and p = exp(s - lse) must be 0.
            lse = torch.where(lse == -torch.inf, 1e30, lse)
        for piece in calls:
            rows, heads = slice(*piece.rows), slice(*piece.heads)
            keys, key_heads = slice(*piece.keys), slice(*piece.key_heads)
            views = (
                results[0][:, rows, heads],
                results[1][:, keys, key_heads],
                results[2][:, keys, key_heads],
            )
            direct = writes and all(launch.overwrites(number) for number in range(3))
            own_k, own_v = _keys(piece, k, v)
            parts = library.backward(
                q[:, rows, heads],
                own_k,
                own_v,
                o[:, rows, heads],
                grad[:, rows, heads],
                lse[:, heads, rows],
                scale=launch.parameters["scale"],
                piece=piece,
                out=views if direct else None,
            )
            for number, (part, view) in enumerate(zip(parts, views, strict=True)):
                if launch.overwrites(number) and writes:
                    _put(part, view)
                else:
                    view.add_(part)

    return kernel


def _pieces(launch: DeviceLaunch) -> list[Piece]:
    q, k = launch.inputs[0].shape, launch.inputs[1].shape
    names = ("at_sq", "at_sk", "at_h", "at_h/g")
    at_row, at_key, at_head, at_key_head = (launch.integer(name) for name in names)
    return pieces(
        rows=q[1],
        keys=k[1],
        heads=q[2],
        at=(at_row, at_key, at_head, at_key_head),
        group=launch.integer("group"),
        left=launch.integer("left"),
        right=launch.integer("right"),
    )


def _sees_first_key(launch: DeviceLaunch) -> bool:
    """Say whether every query of the program sees the first of its keys."""
    return launch.integer("right") >= 0 and launch.integer("left") >= _UNBOUNDED


def _covered(calls: list[Piece]) -> int:
    """Count the rows of heads that see a key."""
    return sum((p.rows[1] - p.rows[0]) * (p.heads[1] - p.heads[0]) for p in calls)


def _keys(piece: Piece, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    keys, heads = slice(*piece.keys), slice(*piece.key_heads)
    return k[:, keys, heads], v[:, keys, heads]


def _put(given: Tensor, place: Tensor) -> None:
    """Copy unless the library wrote there already."""
    if given.data_ptr() != place.data_ptr():
        place.copy_(given)
