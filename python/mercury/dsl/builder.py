"""What a program function is given: axes, buffers, loops and kernels to build with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Literal, overload

from ..errors import ProgramError
from .mask import Mask
from .source import Source, here

__all__ = ["Axis", "Buffer", "Dim", "ProgramBuilder", "Tile"]

DTypes = ("bf16", "f16", "f32", "f64")
DType = Literal["bf16", "f16", "f32", "f64"]
MergeName = Literal["sum", "max", "softmax"]


@dataclass(frozen=True, kw_only=True)
class Dim:
    """One dimension of a buffer: an axis, an axis divided, or a constant."""

    axis: Axis | None
    value: int

    def __str__(self) -> str:
        if self.axis is None:
            return str(self.value)
        return self.axis.name + (f"/{self.value}" if self.value != 1 else "")

    @property
    def extent(self) -> int:
        """The number of positions."""
        return self.value if self.axis is None else self.axis.extent // self.value


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One named logical loop dimension; ``h / 4`` is the axis of grouped heads."""

    name: str
    extent: int
    layout: str = "block"

    def __truediv__(self, divisor: int) -> Dim:
        if not isinstance(divisor, int) or divisor < 1 or self.extent % divisor:
            raise ProgramError(
                f"axis '{self.name}' of extent {self.extent} cannot be divided by "
                f"{divisor!r}; take a whole number that divides it",
                location=str(here()),
            )
        return Dim(axis=self, value=divisor)

    def __str__(self) -> str:
        return self.name


Index = Axis | Dim | int | slice | EllipsisType


@dataclass(frozen=True, kw_only=True, eq=False)
class Tile:
    """The piece of a buffer, or the result of a kernel, that an iteration works on."""

    dims: tuple[Dim, ...]
    dtype: str
    source: Source
    origin: Buffer | Kernel
    number: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """One local computation of a nest."""

    name: str
    inputs: tuple[Tile, ...]
    mask: Mask | None
    scale: float | None
    signature: str | None
    source: Source


@dataclass(frozen=True, kw_only=True, eq=False)
class Merge:
    """How results are reduced, and over which axes."""

    kind: str
    over: tuple[Axis, ...]
    size: int
    once: tuple[Tile, ...]
    source: Source


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduced:
    """A tile that the loops over some axes reduce."""

    tile: Tile
    merge: Merge
    number: int


@dataclass(kw_only=True, eq=False)
class Store:
    """Results on their way to their buffers."""

    tiles: list[Tile]
    buffers: list[Buffer]
    merge: Merge | None
    source: Source


@dataclass(kw_only=True, eq=False)
class Nest:
    """Loops over axes and what they do."""

    axes: list[Axis]
    source: Source
    ops: list[Tile | Kernel | Store] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, eq=False)
class Buffer:
    """A named tensor whose dimensions are axes; indexing it gives a tile.

    Each dimension is indexed by its axis, constant ones by ``:``; ``...`` stands for those
    left out.
    """

    name: str
    dims: tuple[Dim, ...]
    dtype: str
    output: bool
    cut: Axis | None
    source: Source
    builder: ProgramBuilder

    @property
    def shape(self) -> tuple[int, ...]:
        """The whole shape, in elements."""
        return tuple(dim.extent for dim in self.dims)

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.dims))}]"

    def _check(self, index: Index | tuple[Index, ...]) -> None:
        given = index if isinstance(index, tuple) else (index,)
        if given.count(Ellipsis) == 1:
            at = given.index(Ellipsis)
            after = len(given) - at - 1
            own = self.dims[at : len(self.dims) - after]
            given = (*given[:at], *own, *given[at + 1 :])
        said = ", ".join(":" if isinstance(i, slice) else str(i) for i in given)
        wrong = len(given) != len(self.dims)
        for position, dim in zip(given, self.dims, strict=False):
            if isinstance(position, Axis | Dim):
                wrong |= _to_dim(position) != dim
            else:
                wrong |= dim.axis is not None or position != slice(None)
        if wrong:
            raise ProgramError(
                f"buffer {self} is indexed as {self.name}[{said}]; index each dimension by "
                "its axis, and constant ones by ':'",
                location=str(here()),
            )

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Tile:
        self._check(index)
        return self.builder._load(self)

    def __setitem__(self, index: Index | tuple[Index, ...], value: Tile | Reduced) -> None:
        self._check(index)
        self.builder._store(self, value)


def _to_dim(dim: Axis | Dim | int) -> Dim:
    if isinstance(dim, Axis):
        return Dim(axis=dim, value=1)
    return Dim(axis=None, value=dim) if isinstance(dim, int) else dim


class ProgramBuilder:
    """Records a program as its function runs; the first argument of that function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.axis_list: list[Axis] = []
        self.buffers: list[Buffer] = []
        self.nests: list[Nest] = []
        self._open: Nest | None = None

    # -- declarations ---------------------------------------------------------

    def axes(self, *, layout: dict[str, str] | None = None, **extents: int) -> list[Axis]:
        """Declare axes, outermost first.

        Parameters
        ----------
        layout
            How axes are cut into shards, where not by ``"block"``: ``"zigzag"``,
            ``"striped(c)"`` or ``"bounds[0, ..., extent]"``.
        **extents
            The extent of each axis, 0 or more positions.

        Returns
        -------
        list of Axis
            In the order given.

        Raises
        ------
        ProgramError
            For a name given twice, a negative extent, or a layout of no axis.
        """
        layout = layout or {}
        made = []
        for unknown in set(layout) - set(extents):
            raise self._error(f"a layout is given for '{unknown}', which is none of the axes")
        for name, extent in extents.items():
            if any(axis.name == name for axis in self.axis_list):
                raise self._error(f"program '{self.name}' has an axis '{name}' already")
            if not isinstance(extent, int) or extent < 0:
                raise self._error(
                    f"the extent of axis '{name}' must be a number not below 0, got {extent!r}"
                )
            made.append(Axis(name=name, extent=extent, layout=layout.get(name, "block")))
        self.axis_list += made
        return made

    def input(
        self,
        name: str,
        dims: tuple[Axis | Dim | int, ...],
        dtype: str,
        *,
        cut: Axis | None = None,
    ) -> Buffer:
        """Declare a buffer that the program reads.

        Parameters
        ----------
        name
            A name of its own.
        dims
            Axes, ``axis / n``, or whole numbers.
        dtype
            ``"bf16"``, ``"f16"``, ``"f32"`` or ``"f64"``.
        cut
            The axis that the buffer is cut along outside the program, over all levels of
            whatever mesh it is scheduled on; a boundary given to the schedule says
            otherwise. The schedule's own placement when not given.
        """
        return self._buffer(name, dims, dtype, cut, output=False)

    def output(
        self,
        name: str,
        dims: tuple[Axis | Dim | int, ...],
        dtype: str,
        *,
        cut: Axis | None = None,
    ) -> Buffer:
        """Declare a buffer that the program writes; see `input`."""
        return self._buffer(name, dims, dtype, cut, output=True)

    def _buffer(
        self,
        name: str,
        dims: tuple[Axis | Dim | int, ...],
        dtype: str,
        cut: Axis | None,
        *,
        output: bool,
    ) -> Buffer:
        if any(buffer.name == name for buffer in self.buffers):
            raise self._error(f"program '{self.name}' has a buffer '{name}' already")
        if dtype not in DTypes:
            raise self._error(
                f"the dtype of buffer '{name}' must be one of {', '.join(DTypes)}, "
                f"got {dtype!r}"
            )
        made = tuple(_to_dim(dim) for dim in dims)
        for dim in made:
            if dim.axis is not None and dim.axis not in self.axis_list:
                raise self._error(
                    f"buffer '{name}' uses axis '{dim.axis}', which is no axis of program "
                    f"'{self.name}'; its axes are {', '.join(map(str, self.axis_list))}"
                )
        if cut is not None and all(dim.axis != cut for dim in made):
            raise self._error(
                f"buffer '{name}' is to be cut along '{cut}', which is no axis of it; its "
                f"dimensions are {', '.join(map(str, made))}"
            )
        buffer = Buffer(
            name=name,
            dims=made,
            dtype=dtype,
            output=output,
            cut=cut,
            source=here(),
            builder=self,
        )
        self.buffers.append(buffer)
        return buffer

    # -- loops ----------------------------------------------------------------

    @contextmanager
    def loops(self, *axes: Axis) -> Iterator[None]:
        """Open a nest of loops, outermost first; what stands inside is its body."""
        if self._open is not None:
            raise self._error("a nest cannot stand inside another; use p.reduce for more loops")
        self._check_loops(axes)
        nest = Nest(axes=list(axes), source=here())
        self._open = nest
        try:
            yield
        finally:
            self._open = None
        self.nests.append(nest)
        for op in nest.ops:
            if isinstance(op, Store) and op.merge and len(op.tiles) != op.merge.size:
                raise ProgramError(
                    f"a {op.merge.kind} reduction gives {op.merge.size} results, and "
                    f"{len(op.tiles)} of them are stored; store each",
                    location=str(op.source),
                )

    @overload
    def reduce(
        self,
        *axes: Axis,
        merge: MergeName,
        body: Callable[[], Tile],
    ) -> Reduced: ...

    @overload
    def reduce(
        self,
        *axes: Axis,
        merge: MergeName,
        body: Callable[[], tuple[Tile, ...]],
    ) -> tuple[Reduced, ...]: ...

    def reduce(
        self,
        *axes: Axis,
        merge: MergeName,
        body: Callable[[], Tile] | Callable[[], tuple[Tile, ...]],
    ) -> Reduced | tuple[Reduced, ...]:
        """Add inner loops whose iterations give partial results to be merged.

        Parameters
        ----------
        *axes
            The axes that are reduced.
        merge
            ``"sum"``, ``"max"`` or ``"softmax"`` (of a pair ``(o, lse)``).
        body
            Computes the partial results of one iteration.

        Returns
        -------
        Reduced or tuple of Reduced
            As many as ``body`` gives; store each in a buffer without the axes.
        """
        nest = self._nest()
        self._check_loops((*nest.axes, *axes))
        nest.axes += axes
        return self.merged(body(), over=axes, merge=merge)

    @overload
    def merged(
        self,
        tiles: Tile,
        *,
        over: tuple[Axis, ...],
        merge: MergeName,
        once: Tile | tuple[Tile, ...] = (),
    ) -> Reduced: ...

    @overload
    def merged(
        self,
        tiles: tuple[Tile, ...],
        *,
        over: tuple[Axis, ...],
        merge: MergeName,
        once: Tile | tuple[Tile, ...] = (),
    ) -> tuple[Reduced, ...]: ...

    @overload
    def merged(
        self,
        tiles: Tile | tuple[Tile, ...],
        *,
        over: tuple[Axis, ...],
        merge: MergeName,
        once: Tile | tuple[Tile, ...] = (),
    ) -> Reduced | tuple[Reduced, ...]: ...

    def merged(
        self,
        tiles: Tile | tuple[Tile, ...],
        *,
        over: tuple[Axis, ...],
        merge: MergeName,
        once: Tile | tuple[Tile, ...] = (),
    ) -> Reduced | tuple[Reduced, ...]:
        """Say that loops already open reduce results: reduction is the result's own.

        Parameters
        ----------
        tiles
            What an iteration makes.
        over
            The loop axes that the result's buffer lacks. Where it has ``h / g`` and the
            kernel takes all of ``h``, the heads of a group are reduced: name ``h`` too.
        merge
            As in `reduce`.
        once
            Partial results that enter the merge one time, whatever the schedule, made of
            buffers without the reduced axes.
        """
        several = tiles if isinstance(tiles, tuple) else (tiles,)
        how = Merge(
            kind=merge,
            over=tuple(over),
            size=len(several),
            once=once if isinstance(once, tuple) else (once,),
            source=here(),
        )
        made = tuple(
            Reduced(tile=tile, merge=how, number=number) for number, tile in enumerate(several)
        )
        return made if isinstance(tiles, tuple) else made[0]

    # -- kernels --------------------------------------------------------------

    def matmul(self, a: Tile, b: Tile) -> Tile:
        """``a[m, k] @ b[k, n]``, a tile of dims ``[m, n]`` in float32 or wider."""
        made = self.kernel("matmul", a, b, results=[(a.dims[0], b.dims[-1])])
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
        b, sq, h, _ = q.dims
        o, lse = self.kernel(
            "attention_fwd",
            q,
            k,
            v,
            results=[(b, sq, h, v.dims[-1]), (b, h, sq)],
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
        nest = self._nest()
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
                dims=tuple(_to_dim(dim) for dim in dims),
                dtype=wide,
                source=kernel.source,
                origin=kernel,
                number=number,
            )
            for number, dims in enumerate(results)
        )

    # -- loads and stores -----------------------------------------------------

    def _load(self, buffer: Buffer) -> Tile:
        if buffer.output:
            raise self._error(f"output '{buffer.name}' cannot be read; outputs are stored to")
        tile = Tile(dims=buffer.dims, dtype=buffer.dtype, source=here(), origin=buffer)
        self._nest().ops.append(tile)
        return tile

    def _store(self, buffer: Buffer, value: Tile | Reduced) -> None:
        if not buffer.output:
            raise self._error(f"input '{buffer.name}' cannot be stored to; declare an output")
        if not isinstance(value, Tile | Reduced):
            raise self._error(
                f"expected the result of a kernel for '{buffer.name}', got {value!r}"
            )
        tile = value.tile if isinstance(value, Reduced) else value
        if tile.dims != buffer.dims:
            dims = ", ".join(map(str, tile.dims))
            raise self._error(f"a result of dims [{dims}] cannot be stored to buffer {buffer}")
        nest = self._nest()
        merge = value.merge if isinstance(value, Reduced) else None
        for op in nest.ops:
            if isinstance(op, Store) and op.merge is not None and op.merge is merge:
                op.tiles.append(tile)
                op.buffers.append(buffer)
                return
        nest.ops.append(Store(tiles=[tile], buffers=[buffer], merge=merge, source=here()))

    def _check_loops(self, axes: tuple[Axis, ...]) -> None:
        for number, axis in enumerate(axes):
            if axis not in self.axis_list:
                raise self._error(
                    f"'{axis}' is no axis of program '{self.name}'; its axes are "
                    f"{', '.join(map(str, self.axis_list))}"
                )
            if axis in axes[:number]:
                raise self._error(f"there is a loop over axis '{axis}' already")

    def _nest(self) -> Nest:
        if self._open is None:
            raise self._error("buffers and kernels are used inside 'with p.loops(...)'")
        return self._open

    def _error(self, message: str) -> ProgramError:
        return ProgramError(message, location=str(here()))
