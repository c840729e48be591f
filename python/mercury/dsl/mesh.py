"""The devices as a grid of named levels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from numbers import Integral

from ..errors import ProgramError

__all__ = ["Mesh"]


@dataclass(frozen=True, init=False)
class Mesh:
    """A mesh: named levels, outermost (slowest link) first; ranks are row-major.

    Parameters
    ----------
    **levels
        The size of each level, at least 1.

    Raises
    ------
    ProgramError
        When there is no level, one is smaller than 1, or the ranks are 2**31 or more.

    Examples
    --------
    >>> mesh = Mesh(node=2, gpu=4)
    >>> mesh.size, mesh.coordinates(5)
    (8, {'node': 1, 'gpu': 1})
    """

    levels: tuple[tuple[str, int], ...]

    def __init__(self, **levels: int) -> None:
        if not levels:
            raise ProgramError("a mesh must have at least one level, as in Mesh(gpu=4)")
        for name, size in levels.items():
            if not isinstance(size, Integral) or size < 1:
                raise ProgramError(
                    f"the size of level '{name}' must be at least 1, got {size!r}"
                )
        whole = {name: int(size) for name, size in levels.items()}
        ranks = prod(whole.values())
        if ranks >= 2**31:
            raise ProgramError(f"a mesh must have less than 2**31 ranks, got {ranks:,}")
        object.__setattr__(self, "levels", tuple(whole.items()))

    @classmethod
    def parse(cls, text: str) -> Mesh:
        """Read a mesh from text such as ``"node=2,gpu=4"``.

        Raises
        ------
        ProgramError
            When the text is not of that form.

        Examples
        --------
        >>> Mesh.parse("node=2,gpu=4")
        Mesh(node=2, gpu=4)
        """
        levels: dict[str, int] = {}
        for piece in text.split(","):
            name, _, size = piece.partition("=")
            if not name.strip().isidentifier() or not re.fullmatch(r"\s*[0-9]+\s*", size):
                raise ProgramError(f"expected a mesh such as 'node=2,gpu=4', got {text!r}")
            if name.strip() in levels:
                raise ProgramError(f"level '{name.strip()}' is given twice in {text!r}")
            levels[name.strip()] = int(size)
        return cls(**levels)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the levels, outermost first."""
        return tuple(name for name, _ in self.levels)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return prod(size for _, size in self.levels)

    def __getitem__(self, level: str) -> int:
        sizes = dict(self.levels)
        if level not in sizes:
            raise ProgramError(f"the mesh has no level '{level}'; it has {list(sizes)}")
        return sizes[level]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self.levels)})"

    def coordinates(self, rank: int) -> dict[str, int]:
        """Give the group rank of a global rank on each level.

        Parameters
        ----------
        rank
            A global rank, from 0 to ``size - 1``.

        Returns
        -------
        dict
            From level name to group rank.
        """
        if not 0 <= rank < self.size:
            raise ProgramError(f"the mesh has ranks 0 to {self.size - 1}, got {rank}")
        found: dict[str, int] = {}
        for name, size in reversed(self.levels):
            rank, found[name] = divmod(rank, size)
        return dict(reversed(found.items()))
