"""A named method: a program, its boundary and a recipe for any mesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..dsl import Mesh, Program, ProgramFactory
from ..errors import ScheduleError
from ..schedule import Schedule
from .levels import Levels

__all__ = ["Strategy"]

Axes = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A hand-written method as a schedule.

    Attributes
    ----------
    name
        What it is called.
    summary
        What it does, in a line.
    program
        The shipped program that it schedules; those of attention take its backward program
        too.
    recipe
        Its transforms for the levels of a mesh and the buffers of a program, each a line of
        a recipe.
    boundary
        The levels that axes are cut over outside the program, in every buffer that has
        them; empty when the schedule's own placement is the boundary.
    buffers
        The buffers that the boundary speaks of; all when empty.
    """

    name: str
    summary: str
    program: ProgramFactory
    recipe: Callable[[Levels, Program], list[str]]
    boundary: Callable[[Levels], Axes] = lambda _: {}
    buffers: tuple[str, ...] = ()

    def steps(self, mesh: Mesh, program: Program | None = None) -> list[str]:
        """Give the transforms for a mesh and a program like ``self.program``."""
        return self.recipe(Levels.of(mesh), self.program() if program is None else program)

    def schedule(self, mesh: Mesh, program: Program | None = None) -> Schedule:
        """Schedule a program on a mesh by this method.

        Parameters
        ----------
        mesh
            Any mesh. A method that needs two levels takes the outermost and the others,
            or splits the only one.
        program
            A program like ``self.program``; that with its default extents when not given.

        Returns
        -------
        Schedule
            With every transform applied.
        """
        program = self.program() if program is None else program
        try:
            return self.start(mesh, program).apply("; ".join(self.steps(mesh, program)))
        except ScheduleError as error:
            if {axis.name for axis in self.program().axes} <= {a.name for a in program.axes}:
                raise
            raise ScheduleError(
                f"strategy '{self.name}' is for programs like '{self.program.name}', which "
                f"'{program.name}' is not: {error.message}",
                notes=error.notes,
            ) from error

    def start(self, mesh: Mesh, program: Program) -> Schedule:
        """Give a program with the boundary of this method, and no transform yet."""
        cuts = self.boundary(Levels.of(mesh))
        boundary = {
            buffer.name: {
                dim.axis.name: cuts[dim.axis.name]
                for dim in buffer.dims
                if dim.axis is not None and dim.axis.name in cuts
            }
            for buffer in program.buffers
            if cuts and (not self.buffers or buffer.name in self.buffers)
        }
        return Schedule(program, mesh, boundary)
