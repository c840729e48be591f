"""Programs as values, and their IR on a mesh."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec

from ..errors import ProgramError, did_you_mean
from .builder import ProgramBuilder
from .mesh import Mesh
from .nodes import Buffer, Dim, Kernel, Nest, Store, Tile
from .source import Source, here, quote

__all__ = ["Boundary", "Program", "ProgramFactory", "program"]

# A number is a cut that stays inside a rank.
Levels = str | Sequence[str | int]
Boundary = Mapping[str, Mapping[str, Levels]]
"""For each buffer, the levels that each of its axes is cut over, outside the program."""

P = ParamSpec("P")


class Program:
    """A tensor operator written as loops over named axes; no devices yet.

    It is made by calling a function decorated with `program`.

    Attributes
    ----------
    name
        The name of the function.
    buffers
        Inputs and outputs, in the order declared.
    """

    def __init__(self, builder: ProgramBuilder, source: Source) -> None:
        self.name = builder.name
        self.axes = tuple(builder.axis_list)
        # A program's signature lists inputs first.
        self.buffers = tuple(sorted(builder.buffers, key=lambda buffer: buffer.output))
        self.nests: tuple[Nest, ...] = tuple(builder.nests)
        self._source = source

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The buffers that the program reads."""
        return tuple(buffer for buffer in self.buffers if not buffer.output)

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers that the program writes."""
        return tuple(buffer for buffer in self.buffers if buffer.output)

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis.name}={axis.extent}" for axis in self.axes)
        return f"<program {self.name}({axes})>"

    def build(self, mesh: Mesh, boundary: Boundary | None = None) -> Any:
        """Give the program's IR on a mesh.

        Parameters
        ----------
        mesh
            Where it will run.
        boundary
            The placement of buffers outside the program; the program's word (`cut`) where
            none is given, else the schedule's own. An axis is cut over a level or several,
            outermost first; a number among them is a cut that stays inside a rank.

        Returns
        -------
        mercury._mlir.ir.Module
            A module of one ``commir.mesh`` and one ``commir.program``, verified.

        Raises
        ------
        ProgramError
            When the program or the boundary is not legal; it carries the Python line.
        """
        _check_boundary(boundary or {})
        own = {
            buffer.name: {buffer.cut.name: mesh.names}
            for buffer in self.buffers
            if buffer.cut is not None
        }
        return _IRBuilder(self, mesh, {**own, **(boundary or {})}).build()


class ProgramFactory:
    """A decorated program function; calling it gives a `Program`."""

    def __init__(self, function: Callable[Concatenate[ProgramBuilder, ...], None]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.name = function.__name__
        parameters = list(inspect.signature(function).parameters.values())[1:]
        self.parameters = {parameter.name: parameter.default for parameter in parameters}
        """The parameters and their defaults."""

    def __call__(self, **parameters: Any) -> Program:
        """Trace the function with the given parameters."""
        unknown = set(parameters) - set(self.parameters)
        if unknown:
            raise ProgramError(
                f"program '{self.name}' has no parameter {_quoted(sorted(unknown))}; it has "
                f"{_quoted(self.parameters)}{did_you_mean(min(unknown), self.parameters)}",
                location=str(here()),
            )
        builder = ProgramBuilder(self.name)
        self._function(builder, **parameters)
        code = self._function.__code__
        return Program(builder, Source(file=code.co_filename, line=code.co_firstlineno))

    def __repr__(self) -> str:
        return f"<program function {self.name}>"


def program(function: Callable[Concatenate[ProgramBuilder, ...], None]) -> ProgramFactory:
    """Make a function that builds a program into a program.

    The function takes a `ProgramBuilder` and keyword parameters with defaults. It is
    ordinary Python that runs once for each `Program`.

    Examples
    --------
    >>> import mercury as mc
    >>> @mc.program
    ... def double(p, n=8):
    ...     (i,) = p.axes(i=n)
    ...     A, C = p.input("A", (i, 4), "f32"), p.output("C", (i, 4), "f32")
    ...     with p.loops(i):
    ...         a = A[i, :]
    ...         C[i, :] = p.kernel("double", a, results=[(i, 4)], signature="m n -> m n")[0]
    >>> double(n=3)
    <program double(i=3)>
    """
    return ProgramFactory(function)


def _check_boundary(boundary: object) -> None:
    """Refuse what is no `Boundary`: it is written by hand, and one level is easily left out."""
    if isinstance(boundary, Mapping) and all(
        isinstance(axes, Mapping)
        and all(isinstance(levels, str | Sequence) for levels in axes.values())
        for axes in boundary.values()
    ):
        return
    raise ProgramError(
        "a boundary names for each buffer the levels that its axes are cut over, as "
        f"{{'Q': {{'sq': 'gpu'}}}}, got {boundary!r}",
        location=str(here()),
    )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


class _IRBuilder:
    """Writes a program as IR, each op at the user's line."""

    def __init__(self, program: Program, mesh: Mesh, boundary: Boundary) -> None:
        from .._mlir import ir  # noqa: PLC0415 (no work at import)
        from .._mlir.dialects import commir  # noqa: PLC0415

        self.ir, self.commir = ir, commir
        self.program, self.mesh, self.boundary = program, mesh, boundary
        self.context = ir.Context()
        # A module has one function to compile: threads would share nothing but locks.
        self.context.enable_multithreading(False)
        self.values: dict[object, Any] = {}
        self.loops: set[str] = set()
        # Programs and meshes are symbols of one module.
        self.symbol = "mesh" if program.name != "mesh" else "ranks"

    def build(self) -> Any:
        ir = self.ir
        if not self.program.outputs:
            raise ProgramError(
                f"{self.program!r} has no output; declare one with p.output and store to it",
                location=str(self.program._source),
            )
        known = {buffer.name for buffer in self.program.buffers}
        for name in set(self.boundary) - known:
            raise ProgramError(
                f"a boundary is given for '{name}', which is no buffer of {self.program!r}; "
                f"they are {_quoted(sorted(known))}"
            )
        with self.context, self._at(self.program._source):
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                self._mesh()
                self._program()
            try:
                module.operation.verify()
            except ir.MLIRError as error:
                raise self._error(error) from None
        return module

    def _at(self, source: Source) -> Any:
        return self.ir.Location.file(source.file, source.line, 0, context=self.context)

    def _error(self, error: Any) -> ProgramError:
        messages = [
            [(str(d.location), d.message), *((str(n.location), n.message) for n in d.notes)]
            for d in error.error_diagnostics
        ]
        made = ProgramError.from_diagnostics(messages, otherwise=str(error))
        assert isinstance(made, ProgramError)
        return made

    def _unreadable(self, text: str, error: Any) -> ProgramError:
        """Say what is wrong in a piece of the program, at the program's line."""
        why = "; ".join(d.message for d in error.error_diagnostics)
        return ProgramError(
            f"{text}: {why}" if text else why, location=str(self.program._source)
        )

    def _attr(self, text: str) -> Any:
        try:
            return self.ir.Attribute.parse(text)
        except self.ir.MLIRError as error:
            raise self._unreadable("", error) from None

    def _array(self, texts: Sequence[str]) -> Any:
        return self.ir.ArrayAttr.get([self._attr(text) for text in texts])

    def _type(self, kind: str, dims: Sequence[Dim], dtype: str) -> Any:
        text = ", ".join(_dim(dim) for dim in dims)
        whole = f"!commir.{kind}<[{text}], {dtype}>"
        try:
            return self.ir.Type.parse(whole)
        except self.ir.MLIRError as error:
            raise self._unreadable(whole, error) from None

    def _mesh(self) -> None:
        levels = [f"#commir.level<{_name(n)} = {s}>" for n, s in self.mesh.levels]
        self.commir.MeshOp(self.symbol, self._array(levels))

    def _binding(self, buffer: Buffer) -> str:
        cuts = []
        for axis, levels in self.boundary.get(buffer.name, {}).items():
            several = [levels] if isinstance(levels, str) else list(levels)
            if several:
                over = ", ".join(_name(f) if isinstance(f, str) else str(f) for f in several)
                cuts.append(f"{_name(axis)} -> ({over})")
        at = f" at [{', '.join(cuts)}]" if buffer.name in self.boundary else ""
        return f"#commir.binding<{_name(buffer.name)}{at}>"

    def _program(self) -> None:
        program = self.program
        axes = [
            f"#commir.axis<{_name(axis.name)} = {axis.extent} {axis.layout}>"
            for axis in program.axes
        ]
        op = self.commir.ProgramOp(
            program.name,
            self.symbol,
            self._array(axes),
            self._array([self._binding(buffer) for buffer in program.buffers]),
            len(program.inputs),
        )
        block = op.body.blocks.append(
            *[self._type("buffer", b.dims, b.dtype) for b in program.buffers],
            arg_locs=[self._at(buffer.source) for buffer in program.buffers],
        )
        for buffer, argument in zip(program.buffers, block.arguments, strict=True):
            self.values[buffer] = argument
        with self.ir.InsertionPoint(block):
            for nest in program.nests:
                self._nest(nest)

    def _nest(self, nest: Nest) -> None:
        loops = []
        for axis in nest.axes:
            # Loops are spoken of by name: another nest over the axis has its own.
            name = axis.name
            while name in self.loops:
                name += "_"
            self.loops.add(name)
            loops.append(f"#commir.loop<{_name(name)} in {_name(axis.name)}>")
        with self._at(nest.source):
            op = self.commir.ForOp(self._array(loops))
        block = op.body.blocks.append()
        with self.ir.InsertionPoint(block):
            for item in nest.ops:
                with self._at(item.source):
                    if isinstance(item, Tile):
                        tile = self._type("tile", item.dims, item.dtype)
                        load = self.commir.LoadOp(tile, self.values[item.origin])
                        self.values[item] = load.result
                    elif isinstance(item, Kernel):
                        self._kernel(item, nest)
                    else:
                        self._store(item)

    def _kernel(self, kernel: Kernel, nest: Nest) -> None:
        results = _results(kernel, nest)
        op = self.commir.KernelOp(
            [self._type("tile", tile.dims, tile.dtype) for tile in results],
            kernel.name,
            [self._value(tile) for tile in kernel.inputs],
            mask=self._attr(f"#commir.mask<{kernel.mask}>") if kernel.mask else None,
            signature=kernel.signature,
        )
        if kernel.scale is not None:
            scale = self.ir.FloatAttr.get(self.ir.F64Type.get(), kernel.scale)
            op.operation.attributes["scale"] = scale
        for number, result in enumerate(op.operation.results):
            self.values[(kernel, number)] = result

    def _value(self, tile: Tile) -> Any:
        if isinstance(tile.origin, Kernel):
            return self.values[(tile.origin, tile.number)]
        return self.values[tile]

    def _store(self, store: Store) -> None:
        merge = over = None
        if store.merge is not None:
            merge = self._attr(f"#commir.merge<{store.merge.kind}>")
            names = [self.ir.StringAttr.get(axis.name) for axis in store.merge.over]
            over = self.ir.ArrayAttr.get(names)
        self.commir.StoreOp(
            [self._value(tile) for tile in store.tiles],
            [self.values[buffer] for buffer in store.buffers],
            [self._value(tile) for tile in store.merge.once] if store.merge else [],
            merge=merge,
            over=over,
        )


def _results(kernel: Kernel, nest: Nest) -> list[Tile]:
    """Give the results of a kernel that are stored, in order."""
    found: dict[int, Tile] = {}
    for op in nest.ops:
        tiles: list[Tile] = []
        if isinstance(op, Store):
            tiles = [*op.tiles, *(op.merge.once if op.merge else ())]
        elif isinstance(op, Kernel):
            tiles = list(op.inputs)
        for tile in tiles:
            if tile.origin is kernel:
                found[tile.number] = tile
    missing = set(range(max(found, default=-1) + 1)) - set(found)
    if missing or not found:
        raise ProgramError(
            f"results of kernel '{kernel.name}' are not used; store each",
            location=str(kernel.source),
        )
    return [found[number] for number in sorted(found)]


def _name(name: str) -> str:
    """Quote a name that is no identifier of MLIR."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else quote(name)


def _dim(dim: Dim) -> str:
    if dim.axis is None:
        return str(dim.value)
    return _name(dim.axis.name) + (f"/{dim.value}" if dim.value != 1 else "")
