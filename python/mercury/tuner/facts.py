"""What the space asks of a program: which axes buffers have, and which are reduced."""

from __future__ import annotations

from dataclasses import dataclass

from ..dsl import Program
from ..dsl.nodes import Buffer, Kernel, Store
from .widths import DTYPE_BYTES

__all__ = ["Facts", "Group"]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Buffers that are placed alike: of the same role and the same axes.

    Attributes
    ----------
    buffers
        Their names.
    axes
        For each axis, how many positions a dimension over it has.
    output
        Whether they are results.
    reduced
        The axes that results are reduced over.
    width
        Bytes of the widest element.
    """

    buffers: tuple[str, ...]
    axes: dict[str, int]
    output: bool
    reduced: frozenset[str]
    width: int

    def moves(self, owner: str, axis: str) -> bool:
        """Whether a loop over ``axis`` that the ranks of ``owner`` stagger moves them."""
        if axis not in self.axes or owner in self.axes:
            return False
        return not self.output or owner in self.reduced


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A program as the space sees it.

    Attributes
    ----------
    extents
        Of each axis that a loop runs over.
    groups
        Its buffers.
    masked
        The axes whose positions a mask compares: for them the direction matters.
    """

    extents: dict[str, int]
    groups: tuple[Group, ...]
    masked: frozenset[str]

    @classmethod
    def of(cls, program: Program, untied: bool = False) -> Facts:
        """Read them off a program.

        Parameters
        ----------
        program
            Any program.
        untied
            Whether buffers of the same role and axes are placed one by one.

        Examples
        --------
        >>> import mercury as mc
        >>> [group.buffers for group in Facts.of(mc.programs.attention()).groups]
        [('Q',), ('K', 'V'), ('O', 'LSE')]
        """
        reduced: dict[str, frozenset[str]] = {}
        loops: set[str] = set()
        masked: set[str] = set()
        for nest in program.nests:
            loops |= {axis.name for axis in nest.axes}
            for op in nest.ops:
                if isinstance(op, Store):
                    over = frozenset(axis.name for axis in op.merge.over) if op.merge else ()
                    reduced |= {buffer.name: frozenset(over) for buffer in op.buffers}
                if isinstance(op, Kernel) and op.mask is not None and str(op.mask) != "full":
                    # Queries and keys are the second dimension of the first two operands.
                    dims = [tile.dims[1] for tile in op.inputs[:2]]
                    masked |= {dim.axis.name for dim in dims if dim.axis is not None}
        groups: dict[object, list[Buffer]] = {}
        for buffer in program.buffers:
            key = (buffer.output, frozenset(_axes(buffer).items()), reduced.get(buffer.name))
            groups.setdefault((key, buffer.name if untied else ""), []).append(buffer)
        return cls(
            extents={a.name: a.extent for a in program.axes if a.name in loops},
            groups=tuple(
                Group(
                    buffers=tuple(buffer.name for buffer in group),
                    axes=_axes(group[0]),
                    output=group[0].output,
                    reduced=reduced.get(group[0].name, frozenset()),
                    width=max(DTYPE_BYTES[buffer.dtype] for buffer in group),
                )
                for group in groups.values()
            ),
            masked=frozenset(masked),
        )


def _axes(buffer: Buffer) -> dict[str, int]:
    return {dim.axis.name: dim.extent for dim in buffer.dims if dim.axis is not None}
