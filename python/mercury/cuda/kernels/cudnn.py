"""Attention by cuDNN, into the plan's own memory where ``nvidia-cudnn-frontend`` is there.

The frontend's graphs take pointers and strides, so nothing is copied; each is built once
for its shape. Without it, PyTorch's operator of cuDNN is called, which gives its results
in memory of its own and has the causal mask of squares only. What neither can do goes to
the flash kernels.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .flash import Flash
from .merge import softmax_merge
from .pieces import Piece

__all__ = ["Cudnn"]

Tensor = Any
_LARGEST_HEAD = 128  # of forward and backward on every GPU that has cuDNN's attention


class Cudnn:
    """cuDNN's attention; see `AttentionLibrary`."""

    def __init__(self) -> None:
        self._other = Flash()

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
        """Give the output and the log-sum-exp."""
        if not _fits(q, k, v, piece):
            return self._other.forward(q, k, v, scale=scale, piece=piece, out=out, lse=lse)
        if _frontend() is None:
            return self._by_torch(q, k, v, scale, piece)
        torch = importlib.import_module("torch")
        if out is None or not _can_hold(out, q.dtype):
            out = torch.empty((*q.shape[:3], v.shape[3]), dtype=q.dtype, device=q.device)
        # Rows of a longer tile are written where they lie (9.19).
        if lse is None or lse.dtype != torch.float32 or lse.stride(-1) != 1:
            lse = torch.empty(
                (q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device
            )
        tensors = (*map(_loadable, (q, k, v)), out, lse)
        try:
            graph = _forward_graph(_shapes(tensors), str(q.dtype), scale, piece.is_causal)
        except _unsupported() as why:
            _refuse(why)
            return self._other.forward(q, k, v, scale=scale, piece=piece)
        graph.run(tensors)
        return out, lse

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
        """Give the gradients by q, k and v."""
        if not _fits(q, k, v, piece) or _frontend() is None:
            return self._other.backward(
                q, k, v, o, grad, lse, scale=scale, piece=piece, out=out
            )
        torch = importlib.import_module("torch")
        results = tuple(
            given
            if given is not None and _can_hold(given, q.dtype)
            else torch.empty(like.shape, dtype=q.dtype, device=q.device)
            for like, given in zip((q, k, v), out or (None,) * 3, strict=True)
        )
        lse = lse if lse.stride(-1) == 1 else lse.contiguous()
        inputs = (*map(_loadable, (q, k, v, o, grad)), lse)
        tensors = (*inputs, *results)
        try:
            graph = _backward_graph(_shapes(tensors), str(q.dtype), scale, piece.is_causal)
        except _unsupported() as why:
            _refuse(why)
            return self._other.backward(q, k, v, o, grad, lse, scale=scale, piece=piece)
        graph.run(tensors)
        return results

    def _by_torch(
        self, q: Tensor, k: Tensor, v: Tensor, scale: float, piece: Piece
    ) -> tuple[Tensor, Tensor]:
        torch = importlib.import_module("torch")
        keys, ahead = k.shape[1], k.shape[1] - q.shape[1]
        if k.shape[2] != q.shape[2] or keys == 1:
            return self._other.forward(q, k, v, scale=scale, piece=piece)

        def call(first: int, end: int, causal: bool) -> tuple[Tensor, Tensor]:
            found = torch.ops.aten._scaled_dot_product_cudnn_attention(
                q.transpose(1, 2),
                k[:, first:end].transpose(1, 2),
                v[:, first:end].transpose(1, 2),
                None,
                True,
                0.0,
                causal,
                False,
                scale=scale,
            )
            return found[0].transpose(1, 2), found[1].reshape(
                q.shape[0], q.shape[2], q.shape[1]
            )

        if piece.is_full:
            return call(0, keys, False)
        # Its causal mask begins in the upper left corner.
        part, total = call(ahead, keys, True)
        if ahead:
            softmax_merge(*call(0, ahead, False), part, total)
        return part, total


# --- What it can do -------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _frontend() -> Any:
    """Give the frontend's module, or None."""
    importlib.import_module("torch")  # brings the cuDNN that the frontend is to open
    if importlib.util.find_spec("cudnn") is None:
        return None
    try:
        return importlib.import_module("cudnn")
    except (ImportError, OSError):  # without a cuDNN, or without what it needs itself
        return None


def _fits(q: Tensor, k: Tensor, v: Tensor, piece: Piece) -> bool:
    depths = (q.shape[3], v.shape[3])
    # Of a single query its log-sum-exp differs in the last bit from run to run (9.19).
    return (
        q.is_cuda
        and q.shape[1] > 1
        and str(q.dtype) in ("torch.bfloat16", "torch.float16")
        and all(depth % 8 == 0 and depth <= _LARGEST_HEAD for depth in depths)
        and (piece.is_full or piece.is_causal)
    )


def _is_aligned(tensor: Tensor) -> bool:
    strides = all(stride % 8 == 0 for stride in tensor.stride()[:-1])
    return bool(tensor.stride(-1) == 1 and strides and tensor.data_ptr() % 16 == 0)


def _loadable(tensor: Tensor) -> Tensor:
    return tensor if _is_aligned(tensor) else tensor.contiguous()


def _can_hold(tensor: Tensor, dtype: Any) -> bool:
    return tensor.dtype == dtype and _is_aligned(tensor)


# --- Graphs ---------------------------------------------------------------------------------


Shape = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class _Graph:
    graph: Any
    ids: tuple[int, ...]
    workspace_bytes: int

    def run(self, tensors: tuple[Tensor, ...]) -> None:
        torch = importlib.import_module("torch")
        device = tensors[0].device
        workspace = torch.empty(max(1, self.workspace_bytes), dtype=torch.uint8, device=device)
        handle = _handle(device.index)
        _frontend().set_stream(handle, torch.cuda.current_stream(device).cuda_stream)
        places = {
            number: tensor.data_ptr() for number, tensor in zip(self.ids, tensors, strict=True)
        }
        self.graph.execute(places, workspace.data_ptr(), handle=handle)


@lru_cache(maxsize=8)
def _handle(device: int) -> Any:
    del device  # current already
    return _frontend().create_handle()


def _shapes(tensors: tuple[Tensor, ...]) -> tuple[Shape, ...]:
    """Give sizes and strides in cuDNN's order ``b h s d``; a log-sum-exp is ``b h s 1``."""
    found = []
    for tensor in tensors:
        if tensor.dim() == 3:
            found.append(((*tensor.shape, 1), (*tensor.stride(), 1)))
        else:
            turned = tensor.transpose(1, 2)
            found.append((tuple(turned.shape), tuple(turned.stride())))
    return tuple(found)


def _unsupported() -> tuple[type[Exception], ...]:
    return (_frontend().cudnnGraphNotSupportedError, RuntimeError)


@lru_cache(maxsize=64)
def _warn(text: str) -> None:
    importlib.import_module("warnings").warn(
        f"cuDNN cannot do an attention of the plan, PyTorch's flash does it: {text}",
        RuntimeWarning,
        stacklevel=2,
    )


def _refuse(why: Exception) -> None:
    _warn(str(why).splitlines()[0][:200] if str(why) else type(why).__name__)


def _mask(cudnn: Any, causal: bool, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    if not causal:
        return {}
    (*_, queries, _), (*_, keys, _) = shapes[0][0], shapes[1][0]
    # Of a square both are one, but gradients then take half the time (9.19): only
    # from the upper left does cuDNN leave out the tiles that see nothing.
    corners = cudnn.diagonal_alignment
    return {
        "diagonal_alignment": corners.TOP_LEFT if queries == keys else corners.BOTTOM_RIGHT,
        "diagonal_band_right_bound": 0,
    }


def _begin(dtype: str) -> tuple[Any, Any, Any]:
    cudnn = _frontend()
    torch = importlib.import_module("torch")
    kinds = {
        "torch.bfloat16": cudnn.data_type.BFLOAT16,
        "torch.float16": cudnn.data_type.HALF,
    }
    graph = cudnn.pygraph(
        io_data_type=kinds[dtype],
        intermediate_data_type=cudnn.data_type.FLOAT,
        compute_data_type=cudnn.data_type.FLOAT,
        handle=_handle(torch.cuda.current_device()),
    )
    return cudnn, graph, kinds[dtype]


def _end(cudnn: Any, graph: Any, tensors: list[Any], shapes: tuple[Shape, ...]) -> _Graph:
    for tensor, (sizes, strides) in zip(tensors, shapes, strict=True):
        tensor.set_dim(list(sizes)).set_stride(list(strides))
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    return _Graph(
        graph=graph,
        ids=tuple(tensor.get_uid() for tensor in tensors),
        workspace_bytes=graph.get_workspace_size(),
    )


# The name of a graph is its shape; a plan has few.
@lru_cache(maxsize=256)
def _forward_graph(shapes: tuple[Shape, ...], dtype: str, scale: float, causal: bool) -> _Graph:
    cudnn, graph, kind = _begin(dtype)
    q, k, v = (
        graph.tensor(dim=list(sizes), stride=list(strides), data_type=kind, uid=number + 1)
        for number, (sizes, strides) in enumerate(shapes[:3])
    )
    o, stats = graph.sdpa(
        q=q,
        k=k,
        v=v,
        generate_stats=True,
        attn_scale=scale,
        **_mask(cudnn, causal, shapes),
    )
    o.set_output(True).set_data_type(kind).set_uid(4)
    stats.set_output(True).set_data_type(cudnn.data_type.FLOAT).set_uid(5)
    return _end(cudnn, graph, [q, k, v, o, stats], shapes)


@lru_cache(maxsize=256)
def _backward_graph(
    shapes: tuple[Shape, ...], dtype: str, scale: float, causal: bool
) -> _Graph:
    cudnn, graph, kind = _begin(dtype)
    kinds = [kind] * 5 + [cudnn.data_type.FLOAT]
    q, k, v, o, grad, stats = (
        graph.tensor(dim=list(sizes), stride=list(strides), data_type=each, uid=number + 1)
        for number, ((sizes, strides), each) in enumerate(zip(shapes, kinds, strict=False))
    )
    results = graph.sdpa_backward(
        q=q,
        k=k,
        v=v,
        o=o,
        dO=grad,
        stats=stats,
        attn_scale=scale,
        **_mask(cudnn, causal, shapes),
    )
    for number, result in enumerate(results):
        result.set_output(True).set_data_type(kind).set_uid(7 + number)
    return _end(cudnn, graph, [q, k, v, o, grad, stats, *results], shapes)
