"""A small program of the same kind, on which a schedule can be tried in a moment."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace
from math import lcm, prod

from ..dsl import Program
from ..dsl.nodes import Axis, Buffer, Dim, Kernel, Nest, Store, Tile

__all__ = ["shrink"]

_SMALL = 1 << 22  # iterations that run in well under a second


def shrink(program: Program, ranks: int, kept: Collection[str] = ()) -> Program:
    """Give a program with shorter axes, when the whole one is too much for a trial.

    Names, masks and layouts stay, so schedules of one apply to the other. Axes keep more
    positions than there are ranks, in a number that cuts into uneven shards; an axis of
    given bounds keeps its length.

    Parameters
    ----------
    program
        Any program.
    ranks
        Of the mesh.
    kept
        Axes that keep their length: those that a schedule cuts into parts of given sizes.
    """
    if prod(axis.extent for axis in program.axes) * _width(program) <= _SMALL:
        return program
    return _Copy(program, ranks, kept).program()


def _width(program: Program) -> int:
    return max(
        prod(dim.value for dim in buffer.dims if dim.axis is None) for buffer in program.buffers
    )


class _Copy:
    """Copies a program with other axes; what refers to one another still does."""

    def __init__(self, program: Program, ranks: int, own: Collection[str]) -> None:
        self._program = program
        self._axes: dict[Axis, Axis] = {}
        for axis in program.axes:
            unit = lcm(
                *[
                    dim.value
                    for buffer in program.buffers
                    for dim in buffer.dims
                    if dim.axis is axis
                ]
            )
            # Twice the ranks and half a rank more: some shards are longer than others.
            wanted = unit * (2 * ranks + ranks // 2) if unit == 1 else unit * 2 * ranks
            kept = axis.layout.startswith("bounds") or axis.name in own
            extent = axis.extent if kept else min(axis.extent, wanted)
            self._axes[axis] = replace(axis, extent=extent)
        self._buffers: dict[Buffer, Buffer] = {}
        self._kernels: dict[Kernel, Kernel] = {}
        self._tiles: dict[Tile, Tile] = {}

    def program(self) -> Program:
        made = copy.copy(self._program)
        made.axes = tuple(self._axes[axis] for axis in self._program.axes)
        made.buffers = tuple(self._buffer(buffer) for buffer in self._program.buffers)
        made.nests = tuple(self._nest(nest) for nest in self._program.nests)
        return made

    def _dims(self, dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple(
            dim if dim.axis is None else replace(dim, axis=self._axes[dim.axis]) for dim in dims
        )

    def _buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._buffers:
            self._buffers[buffer] = replace(buffer, dims=self._dims(buffer.dims))
        return self._buffers[buffer]

    def _tile(self, tile: Tile) -> Tile:
        if tile not in self._tiles:
            origin = (
                self._buffer(tile.origin)
                if isinstance(tile.origin, Buffer)
                else self._kernel(tile.origin)
            )
            self._tiles[tile] = replace(tile, dims=self._dims(tile.dims), origin=origin)
        return self._tiles[tile]

    def _kernel(self, kernel: Kernel) -> Kernel:
        if kernel not in self._kernels:
            inputs = tuple(self._tile(tile) for tile in kernel.inputs)
            self._kernels[kernel] = replace(kernel, inputs=inputs)
        return self._kernels[kernel]

    def _nest(self, nest: Nest) -> Nest:
        ops: list[Tile | Kernel | Store] = []
        for op in nest.ops:
            if isinstance(op, Tile):
                ops.append(self._tile(op))
            elif isinstance(op, Kernel):
                ops.append(self._kernel(op))
            else:
                ops.append(self._store(op))
        return replace(nest, axes=[self._axes[axis] for axis in nest.axes], ops=ops)

    def _store(self, store: Store) -> Store:
        merge = store.merge
        if merge is not None:
            merge = replace(merge, over=tuple(self._axes[axis] for axis in merge.over))
        return replace(
            store,
            tiles=[self._tile(tile) for tile in store.tiles],
            buffers=[self._buffer(buffer) for buffer in store.buffers],
            merge=merge,
        )
