"""The kernels that a program computes with, by their meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from ..errors import ProgramError
from .mask import Mask
from .nodes import Axis, Dim, Kernel, Nest, Reduced, Tile, to_dim
from .source import here

__all__ = ["KernelBuilder"]


class KernelBuilder(ABC):
    """Records kernels in the nest that is open."""

    @abstractmethod
    def _open_nest(self) -> Nest:
        """Give the nest, or raise when none is open."""

    def matmul(self, a: Tile, b: Tile) -> Tile:
        """``a[m, k] @ b[k, n]``, a tile of dims ``[m, n]`` in float32 or wider."""
        dim = _dims("matmul", "m k, k n", a, b)
        made = self.kernel("matmul", a, b, results=[(dim["m"], dim["n"])])
        return made[0]

    def attention(
        self,
        q: Tile,
        k: Tile,
        v: Tile,
        *,
        scale: float,
        mask: Mask | str | None = None,
    ) -> tuple[Tile, Tile]:
        """Attention of ``q[b, sq, h, d]`` over ``k[b, sk, h/g, d]``, ``v[b, sk, h/g, e]``.

        Returns
        -------
        tuple of Tile
            The normalised partial output ``o[b, sq, h, e]`` and its log-sum-exp
            ``lse[b, h, sq]``, to be merged by ``"softmax"`` over ``sk``.
        """
        dim = _dims("attention", "b sq h d, b sk h/g d, b sk h/g e", q, k, v)
        b, sq, h = dim["b"], dim["sq"], dim["h"]
        o, lse = self.kernel(
            "attention_fwd",
            q,
            k,
            v,
            results=[(b, sq, h, dim["e"]), (b, h, sq)],
            mask=Mask.of(mask),
            scale=scale,
        )
        return o, lse

    def attention_sink(self, sink: Tile, like: tuple[Tile, Tile]) -> tuple[Tile, Tile]:
        """One more logit a head, of no value: what enters a softmax merge once.

        Parameters
        ----------
        sink
            The logits ``[h]``.
        like
            The pair (o, lse) that `attention` gave.

        Returns
        -------
        tuple of Tile
            The partial result ``(0, sink)`` in the dims of ``like``.
        """
        o, lse = self.kernel("softmax_sink", sink, results=[tile.dims for tile in like])
        return o, lse

    def attention_backward(
        self,
        q: Tile,
        k: Tile,
        v: Tile,
        o: Tile,
        grad_o: Tile,
        lse: Tile,
        *,
        scale: float,
        mask: Mask | str | None = None,
    ) -> tuple[Tile, Tile, Tile]:
        """Give the gradients of `attention`, of the whole rows' ``o`` and ``lse``.

        Parameters
        ----------
        q, k, v
            The operands of `attention`: ``[b, sq, h, d]``, ``[b, sk, h/g, d]``,
            ``[b, sk, h/g, e]``.
        o, lse
            Its results over all keys: ``[b, sq, h, e]``, ``[b, h, sq]``.
        grad_o
            The gradient of the loss by ``o``, of its dims.
        scale, mask
            As in `attention`.

        Returns
        -------
        tuple of Tile
            The gradients by ``q``, to be summed over ``sk``, and by ``k`` and ``v``, to be
            summed over ``sq`` and the heads of a group.
        """
        shapes = "b sq h d, b sk h/g d, b sk h/g e, b sq h e, b sq h e, b h sq"
        _dims("attention_backward", shapes, q, k, v, o, grad_o, lse)
        grad_q, grad_k, grad_v = self.kernel(
            "attention_bwd",
            q,
            k,
            v,
            o,
            grad_o,
            lse,
            results=[q.dims, k.dims, v.dims],
            mask=Mask.of(mask),
            scale=scale,
        )
        return grad_q, grad_k, grad_v

    def attention_sink_backward(self, o: Tile, grad_o: Tile, lse: Tile, sink: Tile) -> Tile:
        """Give the gradient by a sink that `attention_sink` entered into ``o`` and ``lse``.

        Parameters
        ----------
        o, lse
            The results of the whole rows, sink and all: ``[b, sq, h, e]``, ``[b, h, sq]``.
        grad_o
            The gradient of the loss by ``o``, of its dims.
        sink
            The logits ``[h]``.

        Returns
        -------
        Tile
            The gradient ``[h]``, to be summed over ``b`` and ``sq``.
        """
        shapes = "b sq h e, b sq h e, b h sq, h"
        _dims("attention_sink_backward", shapes, o, grad_o, lse, sink)
        made = self.kernel("softmax_sink_bwd", o, grad_o, lse, sink, results=[sink.dims])
        return made[0]

    def kernel(
        self,
        name: str,
        *inputs: Tile,
        results: Sequence[tuple[Axis | Dim | int, ...]],
        mask: Mask | None = None,
        scale: float | None = None,
        signature: str | None = None,
    ) -> tuple[Tile, ...]:
        """Compute on tiles by a kernel's meaning.

        Parameters
        ----------
        name
            The kernel.
        *inputs
            Its operands.
        results
            The dims of each result.
        mask, scale
            For kernels over ``sq`` and ``sk``.
        signature
            The shapes of a kernel that Mercury does not know, as ``"m k, k n -> m n"``.
        """
        nest = self._open_nest()
        for tile in inputs:
            _check_tile(name, tile)
        kernel = Kernel(
            name=name,
            inputs=inputs,
            mask=mask,
            scale=scale,
            signature=signature,
            source=here(),
        )
        nest.ops.append(kernel)
        wide = "f64" if inputs and inputs[0].dtype == "f64" else "f32"
        return tuple(
            Tile(
                dims=tuple(to_dim(dim) for dim in dims),
                dtype=wide,
                source=kernel.source,
                origin=kernel,
                number=number,
            )
            for number, dims in enumerate(results)
        )


def _check_tile(kernel: str, given: object) -> None:
    if isinstance(given, Tile):
        return
    if isinstance(given, Reduced):
        what = (
            "a result that loops reduce, which is whole only behind them; store it to an "
            "output, and compute on that in a program of its own"
        )
    else:
        what = f"{given!r}; give a tile, as A[i, k]"
    raise ProgramError(f"{kernel} takes tiles, got {what}", location=str(here()))


def _dims(kernel: str, shapes: str, *tiles: Tile) -> dict[str, Dim]:
    """Give the dims of a kernel's operands by their names in its shapes, as ``"m k, k n"``."""
    named: dict[str, Dim] = {}
    wanted = [shape.split() for shape in shapes.split(",")]
    for shape, tile in zip(wanted, tiles, strict=True):
        _check_tile(kernel, tile)
        fits = len(shape) == len(tile.dims) and all(
            named.setdefault(name, dim) == dim
            for name, dim in zip(shape, tile.dims, strict=True)
        )
        if not fits:
            raise ProgramError(
                f"{kernel} takes tiles of dims {_listed(wanted)}, got "
                f"{_listed([tile.dims for tile in tiles])}; for other dims give a kernel of "
                "your own and its signature, as p.kernel(name, ..., signature=...)",
                location=str(here()),
            )
    return named


def _listed(shapes: Iterable[Sequence[object]]) -> str:
    return " x ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)
