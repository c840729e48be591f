"""What a program consists of: axes, buffers, tiles, kernels, stores, nests."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Protocol

from ..errors import ProgramError
from .mask import Mask
from .source import Source, here

__all__ = [
    "Axis",
    "Buffer",
    "Dim",
    "Kernel",
    "Merge",
    "Nest",
    "Reduced",
    "Store",
    "Tile",
    "to_dim",
]

_AXIS = re.compile(r'#commir\.axis<("(?:[^"\\]|\\.)*"|[\w.$]+) = (\d+) ?(.*)>')


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

    @classmethod
    def of(cls, attribute: Any) -> Axis:
        """Read an attribute of a program, as ``#commir.axis<b = 4 bounds[0, 1, 4]>``."""
        found = _AXIS.fullmatch(str(attribute))
        assert found is not None, f"no axis: {attribute}"
        name, extent, layout = found.groups()
        plain = str(json.loads(name)) if name.startswith('"') else name
        return cls(name=plain, extent=int(extent), layout=layout or "block")

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


class Accesses(Protocol):
    """What records the loads and stores of a program."""

    def load(self, buffer: Buffer) -> Tile:
        """Record that an iteration reads a tile of a buffer."""

    def store(self, buffer: Buffer, value: Tile | Reduced) -> None:
        """Record that an iteration's result goes to a buffer."""


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
    builder: Accesses

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
                wrong |= to_dim(position) != dim
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
        return self.builder.load(self)

    def __setitem__(self, index: Index | tuple[Index, ...], value: Tile | Reduced) -> None:
        self._check(index)
        self.builder.store(self, value)


def to_dim(dim: Axis | Dim | int) -> Dim:
    """Take an axis or a whole number as a dimension."""
    if isinstance(dim, Axis):
        return Dim(axis=dim, value=1)
    return Dim(axis=None, value=dim) if isinstance(dim, int) else dim
