"""Which levels of a mesh a method uses."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from ..dsl import Mesh

__all__ = ["Levels", "even_split"]


def even_split(size: int) -> tuple[int, int]:
    """Split a level into an outer and an inner one, as evenly as its size divides.

    Examples
    --------
    >>> even_split(8), even_split(9), even_split(7)
    ((4, 2), (3, 3), (7, 1))
    """
    inner = next(n for n in range(isqrt(size), 0, -1) if size % n == 0)
    return size // inner, inner


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The levels of a mesh as a method sees them.

    Attributes
    ----------
    all
        Every level, outermost first.
    slow, fast
        The two levels of a method that needs two: the outermost of the mesh and the
        rest. A mesh of one level is split.
    split
        The recipe of that split; empty when there is none.
    parts
        The number of ranks of ``slow``.
    """

    all: tuple[str, ...]
    slow: tuple[str, ...]
    fast: tuple[str, ...]
    split: str
    parts: int

    @classmethod
    def of(cls, mesh: Mesh) -> Levels:
        """Take a mesh's levels; one level is split as evenly as it divides.

        Examples
        --------
        >>> Levels.of(Mesh(gpu=8)).split
        'split_level(gpu, dict(gpu0=4, gpu1=2))'
        >>> Levels.of(Mesh(node=2, gpu=4)).fast
        ('gpu',)
        """
        if len(mesh.levels) > 1:
            slow, *fast = mesh.names
            return cls(
                all=mesh.names, slow=(slow,), fast=tuple(fast), split="", parts=mesh[slow]
            )
        ((name, size),) = mesh.levels
        outer, inner = even_split(size)
        return cls(
            all=mesh.names,
            slow=(f"{name}0",),
            fast=(f"{name}1",),
            split=f"split_level({name}, dict({name}0={outer}, {name}1={inner}))",
            parts=outer,
        )
