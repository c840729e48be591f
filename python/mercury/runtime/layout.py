"""Who owns which part of a buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dsl.mask import Mask
from ..dsl.mesh import Mesh
from ..dsl.nodes import Axis, Buffer
from ..errors import RunError

__all__ = ["BufferLayout", "Cut"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How one axis of a buffer is cut: factors, outermost first, and the layout.

    Attributes
    ----------
    factors
        Level names (distributed) and numbers (a cut that stays inside a rank).
    layout
        The ``#commir.layout``, which has the arithmetic.
    """

    factors: tuple[str | int, ...]
    layout: Any


@dataclass(frozen=True, kw_only=True)
class BufferLayout:
    """Where the elements of a buffer are, for every rank of a mesh.

    Attributes
    ----------
    buffer, mesh
        Whose elements, and the ranks.
    cuts
        How each axis that is cut is cut; the others are whole on every rank.
    masks
        Of the program.

    Examples
    --------
    >>> import mercury as mc
    >>> s = mc.Schedule(mc.programs.matmul(m=5, n=6, depth=4, dtype="f32"), mc.Mesh(gpu=2))
    >>> layout = s.parallelize("i", "gpu").compile().layout("C")
    >>> layout.indices(1)[0].tolist(), layout.shape(1)
    ([3, 4], (2, 6))
    """

    buffer: Buffer
    mesh: Mesh
    cuts: Mapping[str, Cut]
    masks: tuple[Mask, ...] = ()

    def positions(self, rank: int, axis: str) -> Indices:
        """Give the global positions of an axis that a rank holds, in storage order."""
        extent = next(
            (d.axis.extent for d in self.buffer.dims if d.axis and d.axis.name == axis), None
        )
        if extent is None:
            raise RunError(f"buffer {self.buffer} has no axis '{axis}'")
        cut = self.cuts.get(axis)
        if cut is None:
            return np.arange(extent)
        return np.concatenate(
            [np.arange(0), *(np.arange(a, b) for a, b in self._intervals(rank, cut, extent))]
        )

    def _intervals(self, rank: int, cut: Cut, extent: int) -> list[tuple[int, int]]:
        from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

        at = self.mesh.coordinates(rank)
        sizes = [self.mesh[f] if isinstance(f, str) else f for f in cut.factors]
        shards = prod(sizes)
        held: list[tuple[int, int]] = []
        # A number is a cut inside the rank, which holds all of its parts.
        own = [[at[f]] if isinstance(f, str) else range(f) for f in cut.factors]
        for index in np.ndindex(*[len(choice) for choice in own]):
            flat = 0
            for choice, i, size in zip(own, index, sizes, strict=True):
                flat = flat * size + choice[i]
            held += _mercury.layout_shard(cut.layout, extent, shards, flat)
        return sorted(held)

    def documents(self, rank: int, axis: str | None = None) -> Indices:
        """Give where documents begin among the positions that a rank holds, then their number.

        The program has a mask of packed documents. As `positions` has them, positions of one
        document that the rank holds are next to each other: a rank that holds two parts of a
        document, as in zigzag, has them as one. Documents that it holds nothing of are left
        out. This is the ``cu_seqlens`` of kernels for packed sequences.

        Parameters
        ----------
        rank
            A rank of the mesh.
        axis
            Of the buffer, along which documents are packed; when not given, the one of as many
            positions as they have.

        Returns
        -------
        numpy.ndarray
            Rising from 0.

        Raises
        ------
        RunError
            When the program has no packed documents, or the axis is not there or not clear.

        Examples
        --------
        >>> import mercury as mc
        >>> mask = mc.causal().packed([0, 3, 8])
        >>> program = mc.programs.attention(h=1, sq=8, sk=8, d=2, mask=mask, dtype="f32")
        >>> plan = mc.strategies.get("ring").schedule(mc.Mesh(gpu=2), program).compile()
        >>> plan.layout("Q").documents(0).tolist(), plan.layout("Q").documents(1).tolist()
        ([0, 3, 4], [0, 4])
        """
        bounds = self._document_bounds()
        own = [dim.axis.name for dim in self.buffer.dims if dim.axis and dim.value == 1]
        if axis is None:
            extents = {d.axis.name: d.axis.extent for d in self.buffer.dims if d.axis}
            found = [name for name in own if extents[name] == bounds[-1]]
            if len(found) != 1:
                raise RunError(
                    f"buffer {self.buffer} has {len(found)} axes of {bounds[-1]} positions, as "
                    "many as the documents have; name the axis"
                )
            (axis,) = found
        held = self.positions(rank, axis)
        starts = np.searchsorted(np.asarray(bounds), held, "right")
        changes = np.flatnonzero(np.diff(starts)) + 1
        first = [0] if len(held) else []
        return np.array([*first, *changes, len(held)], np.int64)

    def _document_bounds(self) -> tuple[int, ...]:
        bounds = {mask.documents for mask in self.masks if mask.documents}
        if len(bounds) != 1:
            raise RunError(
                f"the program of buffer {self.buffer} has {len(bounds) or 'no'} masks of "
                "packed documents, expected one; give it mask=mc.causal().packed([0, 5, 14])"
            )
        return bounds.pop()

    def indices(self, rank: int) -> tuple[Indices, ...]:
        """Give, for each dimension, the global indices that a rank holds."""
        found: list[Indices] = []
        for dim in self.buffer.dims:
            if dim.axis is None:
                found.append(np.arange(dim.value))
            else:
                # Grouped heads: a rank holds each key head that one of its heads uses.
                held = self.positions(rank, dim.axis.name)
                found.append(np.unique(held // dim.value) if dim.value != 1 else held)
        return tuple(found)

    def shape(self, rank: int) -> tuple[int, ...]:
        """Give the shape of the shard of a rank."""
        return tuple(
            dim.value if dim.axis is None else self._length(rank, dim.axis, dim.value)
            for dim in self.buffer.dims
        )

    def _length(self, rank: int, axis: Axis, divisor: int) -> int:
        """Count what a rank holds of a dimension, without naming each position."""
        cut = self.cuts.get(axis.name)
        held = [(0, axis.extent)] if cut is None else self._intervals(rank, cut, axis.extent)
        total = end = 0
        for low, high in sorted((a // divisor, -(-b // divisor)) for a, b in held if a < b):
            total += max(0, high - max(low, end))
            end = max(end, high)
        return total

    def permutation(self, axis: str) -> Indices:
        """Give the global positions of an axis in the order of the ranks that own them.

        ``whole[permutation]`` is the concatenation of the shards, replicas once.
        """
        seen: list[Indices] = []
        known: set[bytes] = set()
        for rank in range(self.mesh.size):
            held = self.positions(rank, axis)
            if held.tobytes() not in known:
                known.add(held.tobytes())
                seen.append(held)
        return np.concatenate(seen)

    def inverse(self, axis: str) -> Indices:
        """Give the inverse of `permutation`: where each global position went."""
        return np.argsort(self.permutation(axis), kind="stable")

    def scatter(self, whole: NDArray[Any]) -> list[NDArray[Any]]:
        """Give the shard of every rank."""
        if whole.shape != self.buffer.shape:
            raise RunError(
                f"buffer {self.buffer} has shape {self.buffer.shape}, got {whole.shape}"
            )
        return [
            np.ascontiguousarray(whole[np.ix_(*self.indices(rank))])
            for rank in range(self.mesh.size)
        ]

    def gather(self, shards: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Put shards together; of replicas, the last rank's is taken."""
        if len(shards) != self.mesh.size:
            raise RunError(
                f"buffer {self.buffer} has {self.mesh.size} shards, one a rank, "
                f"got {len(shards)}"
            )
        whole = np.zeros(self.buffer.shape, shards[0].dtype)
        for rank, shard in enumerate(shards):
            if shard.shape != self.shape(rank):
                raise RunError(
                    f"the shard of buffer {self.buffer} on rank {rank} has shape "
                    f"{self.shape(rank)}, got {shard.shape}"
                )
            whole[np.ix_(*self.indices(rank))] = shard
        return whole
