"""Who owns which part of a buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dsl.builder import Buffer
from ..dsl.mesh import Mesh
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
        return tuple(len(held) for held in self.indices(rank))

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
