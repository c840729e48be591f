"""What a program function is given: axes, buffers, loops and kernels to build with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Literal, overload

from ..errors import ProgramError
from .kernels import KernelBuilder
from .nodes import Axis, Buffer, Dim, Merge, Nest, Reduced, Store, Tile, to_dim
from .source import here

__all__ = ["ProgramBuilder"]

DTypes = ("bf16", "f16", "f32", "f64")
DType = Literal["bf16", "f16", "f32", "f64"]
MergeName = Literal["sum", "max", "softmax"]

_LAYOUT = re.compile(r"block|zigzag|striped\(\s*[1-9]\d*\s*\)|bounds\[\s*\d+(\s*,\s*\d+)*\s*\]")


class ProgramBuilder(KernelBuilder):
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
        if not isinstance(layout, Mapping):
            raise self._error(
                f"a layout is given for axes by name, as {{'sq': 'zigzag'}}, got {layout!r}"
            )
        made: list[Axis] = []
        for unknown in set(layout) - set(extents):
            raise self._error(f"a layout is given for '{unknown}', which is none of the axes")
        for name, extent in extents.items():
            if any(axis.name == name for axis in self.axis_list):
                raise self._error(f"program '{self.name}' has an axis '{name}' already")
            if not isinstance(extent, Integral) or not 0 <= extent < 2**63:
                raise self._error(
                    f"the extent of axis '{name}' must be a whole number from 0 to 2**63 - 1, "
                    f"got {extent!r}"
                )
            cut = layout.get(name, "block")
            if not isinstance(cut, str) or not _LAYOUT.fullmatch(cut):
                raise self._error(
                    f"the layout of axis '{name}' must be block, zigzag, striped(c) or "
                    f"bounds[0, ..., {extent}], got {cut!r}"
                )
            made.append(Axis(name=name, extent=int(extent), layout=cut))
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
        made = tuple(to_dim(dim) for dim in dims)
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
        nest = self._open_nest()
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

    # -- loads and stores -----------------------------------------------------

    def load(self, buffer: Buffer) -> Tile:
        """Record that an iteration reads a tile of a buffer; ``buffer[...]`` calls it."""
        if buffer.output:
            raise self._error(f"output '{buffer.name}' cannot be read; outputs are stored to")
        tile = Tile(dims=buffer.dims, dtype=buffer.dtype, source=here(), origin=buffer)
        self._open_nest().ops.append(tile)
        return tile

    def store(self, buffer: Buffer, value: Tile | Reduced) -> None:
        """Record that a result goes to a buffer; ``buffer[...] = value`` calls it."""
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
        nest = self._open_nest()
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

    def _open_nest(self) -> Nest:
        if self._open is None:
            raise self._error("buffers and kernels are used inside 'with p.loops(...)'")
        return self._open

    def _error(self, message: str) -> ProgramError:
        return ProgramError(message, location=str(here()))
