"""A schedule: a transform module and the program it has shaped so far."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from ..dsl.mesh import Mesh
from ..dsl.program import Boundary, Program
from ..dsl.source import here, quote
from ..errors import CompileError, ProgramError, ScheduleError, did_you_mean
from .recipe import Call, format_recipe, parse_recipe
from .step import OPS, call_of, into_text, shard_text, shift_text
from .step import names as as_list

if TYPE_CHECKING:
    from ..cuda.plan import CudaPlan
    from ..runtime.plan import Plan

__all__ = ["Schedule"]

_HEAD = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
"""
_TAIL = "    transform.yield\n  }\n}\n"
_HANDLE = re.compile(r" in %[\w]+ : !transform\.any_op$")


class Schedule:
    """Transforms of a program, applied as they are given.

    Each method is one transform, returns the schedule, and either succeeds or raises
    with the schedule as it was. What is legal is decided by the compiler alone.

    Parameters
    ----------
    program
        What to schedule.
    mesh
        Where it runs.
    boundary
        Where buffers live outside the program: for each buffer, the levels that each of
        its axes is cut over. Where none is given, what the program says, else the
        schedule's own placement.

    Raises
    ------
    ProgramError
        When the program does not fit the mesh or the boundary.

    Examples
    --------
    >>> import mercury as mc
    >>> s = mc.Schedule(mc.programs.matmul(m=8, n=6, depth=4), mc.Mesh(gpu=2))
    >>> s.parallelize("j", "gpu").shard("A", "i", "gpu").recipe()
    'parallelize(j, gpu); shard(A, i, gpu)'
    """

    def __init__(self, program: Program, mesh: Mesh, boundary: Boundary | None = None) -> None:
        if not isinstance(program, Program) or not isinstance(mesh, Mesh):
            raise ProgramError(
                f"expected a program and a mesh, as in Schedule(matmul(m=8), Mesh(gpu=2)), got "
                f"{program!r} and {mesh!r}",
                location=str(here()),
            )
        self.program = program
        self._module = program.build(mesh, boundary)
        self._mesh: Mesh | None = mesh
        self._scripts: tuple[Any, ...] = ()  # modules of the transforms that made it

    # -- transforms -----------------------------------------------------------

    def tile(
        self,
        loop: str,
        into: int | str | Sequence[int],
        names: Sequence[str] | None = None,
    ) -> Schedule:
        """Cut a loop into parts, walked by an outer loop.

        Parameters
        ----------
        loop
            A loop that is not cut yet.
        into
            The number of parts, or a level whose size it takes, or the size of each part. A
            small first slice is there soon, and what follows comes under the work.
        names
            Of the outer and the inner loop; ``L_outer`` and ``L_inner`` when not given.
        """
        text = f"{quote(loop)} into {quote(into) if isinstance(into, str) else into_text(into)}"
        return self._add("tile", text + (f" as {as_list(names)}" if names else ""))

    def join(self, outer: str, inner: str, name: str | None = None) -> Schedule:
        """Merge two adjacent loops into one; of one axis, undo a tile."""
        text = f"{quote(outer)}, {quote(inner)}" + (f" as {quote(name)}" if name else "")
        return self._add("join", text)

    def reorder(self, *loops: str) -> Schedule:
        """Let loops take each other's places, in the order given."""
        return self._add("reorder", as_list(loops))

    def patch(self, pattern: str, impl: str) -> Schedule:
        """Pick the implementation of the kernels whose name fits ``pattern``."""
        return self._add("patch", f"{quote(pattern)} with {quote(impl)}")

    def parallelize(self, loop: str, levels: str | Sequence[str]) -> Schedule:
        """Spread the iterations of a loop over one or several levels."""
        return self._add("parallelize", f"{quote(loop)} over {as_list(levels)}")

    def shift(
        self,
        loop: str,
        by: str | Sequence[str],
        *,
        over: str | Sequence[str] | None = None,
        direction: int = 1,
        offset: int = 0,
        reads: str = "rotate",
        results: str = "travel",
        via: Mapping[str, str] | None = None,
        chunks: int = 1,
        link: str | None = None,
    ) -> Schedule:
        """Stagger the parts of a loop over the ranks of parallel loops.

        Step t touches part ``(direction * t + sum(m * rank) + offset) mod parts``.

        Parameters
        ----------
        loop
            The loop.
        by
            Parallel loops. Several add (Cannon); one over several levels nests, a loop a
            level (double ring).
        over
            The levels of ``by`` to use; all when not given.
        direction
            1 receives from the next rank, -1 from the one before.
        offset
            0 starts with the rank's own part; ``direction * m`` ends with it.
        reads
            ``"rotate"`` or ``"pull"``.
        results
            ``"travel"`` (the sum of a part goes from rank to rank), ``"deliver"`` (each
            partial result to its owner) or ``"fetch"`` (the owner reads it where it was
            made).
        via
            How single buffers move, where not by ``reads`` and ``results``.
        chunks
            Into how many pieces a transfer is cut. Where chunks do not serve (results
            whose own part is not last, say) it is not cut, and a remark says why.
        link
            Element type on the wire, as ``"bf16"``: what is wider is rounded to it. By
            default inputs move as they are, and partial results in float32.
        """
        options = {
            "over": over,
            "direction": direction,
            "offset": offset,
            "reads": reads,
            "results": results,
            "via": via or None,
            "chunks": chunks,
            "link": link,
        }
        for key in ("direction", "offset", "chunks"):
            if not isinstance(options[key], int):
                raise ScheduleError(
                    f"cannot shift loop '{loop}': {key} must be a whole number, got "
                    f"{options[key]!r}",
                    location=str(here()),
                )
        for key in ("reads", "results", "link"):
            if options[key] is not None and not str(options[key]).isidentifier():
                raise ScheduleError(
                    f"cannot shift loop '{loop}': {key} must be a word, got {options[key]!r}",
                    location=str(here()),
                )
        return self._add("shift", shift_text(loop, by, options))

    def overlap(self, loop: str) -> Schedule:
        """Let the steps of a loop run beside each other.

        Of a shifted loop, two steps compute beside each other on a GPU: the second one begins
        as soon as its part is there, where the last blocks of the first one leave room. Each
        must write memory of its own: where they merge, defer that. Where they cannot, they
        run in turn, and a remark says why.

        Of the outermost loop in sequence, what the next step needs of other ranks comes, and
        what the last one made for them leaves, while a step computes, where inside placements
        differ from the boundary. Ranks must read each other's memory.
        """
        return self._add("overlap", quote(loop))

    def shard(
        self,
        buffer: str,
        axis: str,
        levels: str | Sequence[str],
        *,
        reads: str = "gather",
    ) -> Schedule:
        """Let a buffer live cut along an axis, whatever the loops access.

        Parameters
        ----------
        buffer
            The buffer.
        axis
            One of its axes.
        levels
            One or several, the outermost first.
        reads
            How ranks come by what they need of each other's shards of an input:
            ``"gather"`` (all of it, before the loops) or ``"broadcast"`` (one panel a step
            of the loop over the axis, in the memory of two; a loop that is not cut gets the
            fewest panels that refine all cuts so read).
        """
        if not reads.isidentifier():
            raise ScheduleError(
                f"cannot shard buffer '{buffer}': reads must be a word, got {reads!r}",
                location=str(here()),
            )
        return self._add("shard", shard_text(buffer, axis, levels, reads))

    def replicate(self, buffer: str, level: str) -> Schedule:
        """Let a buffer live whole on every rank of a level."""
        return self._add("replicate", f"{quote(buffer)} over {quote(level)}")

    def defer(self, buffer: str, *, partial: str | None = None) -> Schedule:
        """Merge the partial results of an output once, at the end.

        Each step then writes its own, and one kernel merges them into the output's type:
        memory for all of them, and no pass over the sum at each step.

        Parameters
        ----------
        buffer
            An output that is merged; of a softmax pair, either.
        partial
            Element type in which they wait, as ``"bf16"``; float32 when not given.
        """
        if partial is not None and not partial.isidentifier():
            raise ScheduleError(
                f"cannot defer the merge of buffer '{buffer}': partial must be a word, got "
                f"{partial!r}",
                location=str(here()),
            )
        return self._add("defer", quote(buffer) + (f" partial {partial}" if partial else ""))

    def split_level(self, level: str, into: Mapping[str, int]) -> Schedule:
        """See one level of the mesh as several; the last is the fastest."""
        parts = ", ".join(f"{quote(name)} = {size}" for name, size in into.items())
        return self._add("split_level", f"{quote(level)} into ({parts})")

    # -- whole schedules ------------------------------------------------------

    def apply(self, recipe: str) -> Schedule:
        """Apply a recipe, or a script of the transform dialect, as a whole.

        Parameters
        ----------
        recipe
            ``"parallelize(sq, gpu); shift(sk, by=sq)"``, or the text of a transform
            module (what ``str(schedule)`` gives).

        Raises
        ------
        ScheduleError
            When a step is not legal; then none is applied.
        """
        if "transform.named_sequence" in recipe:
            return self._transform(recipe)
        before = (self._module, self._mesh, self._scripts)
        try:
            for call in parse_recipe(recipe):
                self._apply_call(call)
        except ScheduleError:
            self._module, self._mesh, self._scripts = before
            raise
        return self

    def _apply_call(self, call: Call) -> None:
        if call.name not in OPS:
            raise ScheduleError(
                f"there is no transform '{call.name}'; they are {', '.join(OPS)}"
                + did_you_mean(call.name, OPS)
            )
        try:
            getattr(self, call.name)(*call.args, **call.kwargs)
        except (TypeError, AttributeError) as error:
            takes = str(inspect.signature(getattr(self, call.name))).partition(" ->")[0]
            raise ScheduleError(
                f"cannot apply {call}: {error}; it is {call.name}{takes}, "
                "and a list is [node, gpu]"
            ) from None

    def recipe(self) -> str:
        """Give the schedule in one line, which `apply` reads back."""
        return format_recipe([call_of(op) for op in self._steps()])

    def __str__(self) -> str:
        texts = (op.operation.get_asm() for op in self._steps())
        steps = (_HANDLE.sub(" in %program : !transform.any_op", text) for text in texts)
        return _HEAD + "".join(f"    {step}\n" for step in steps) + _TAIL

    def __copy__(self) -> Schedule:
        made = object.__new__(Schedule)
        made.program, made._module = self.program, self._module
        made._mesh, made._scripts = self._mesh, self._scripts
        return made

    def copy(self) -> Schedule:
        """Give a schedule that goes its own way from here; steps never change a module."""
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<schedule of {self.program.name}: {self.recipe() or 'nothing yet'}>"

    # -- results --------------------------------------------------------------

    @property
    def module(self) -> Any:
        """The scheduled program as an ``mlir.ir.Module``; do not change it."""
        return self._module

    @property
    def mesh(self) -> Mesh:
        """The mesh, with the levels that the schedule split."""
        return _mesh_of(self._module)

    def ir(self) -> str:
        """Give the text of the scheduled program."""
        return str(self._module.operation.get_asm())

    @overload
    def compile(self, target: Literal["sim"] = "sim", *, puts: str = "") -> Plan: ...

    @overload
    def compile(self, target: Literal["cuda"], *, puts: str = "") -> CudaPlan: ...

    @overload
    def compile(self, target: str, *, puts: str = "") -> Plan | CudaPlan: ...

    def compile(self, target: str = "sim", *, puts: str = "") -> Plan | CudaPlan:
        """Lower the program to a plan.

        Parameters
        ----------
        target
            ``"sim"``: every rank a thread of this process. ``"cuda"``: every rank a process
            with an NVIDIA GPU; kernels that the schedule does not patch are those of cuDNN
            and cuBLAS where PyTorch is installed, else generated.
        puts
            The level, or the levels as ``"node,gpu"``, whose messages go by one-sided puts
            where they can (the transport ``rma``). On GPUs that takes NCCL 2.29, and 2.30 for
            a graph; it is proved on a fake of NCCL only.

        Raises
        ------
        CompileError
            When the program needs something that is not lowered yet, no message of ``puts``
            can be a put, or the target is not there.
        """
        group = self.group(puts)
        if target == "cuda":
            from ..cuda.plan import compile_plan  # noqa: PLC0415 (a layer that loads more)

            return compile_plan(self._module, self.program, self.mesh, group)
        from ..runtime.plan import compile_module  # noqa: PLC0415

        return compile_module(self._module, self.program, self.mesh, target, group)

    def group(self, named: str) -> tuple[str, ...]:
        """Give the levels of a group that is named as ``"node,gpu"``, in the mesh's order."""
        levels = [level.strip() for level in named.split(",") if named]
        if unknown := [level for level in levels if level not in self.mesh.names]:
            raise CompileError(
                f"there is no level {unknown[0]!r} to put over; the levels of the mesh are "
                f"{', '.join(map(repr, self.mesh.names))}"
            )
        return tuple(level for level in self.mesh.names if level in levels)

    # -- one step -------------------------------------------------------------

    def _add(self, transform: str, operands: str) -> Schedule:
        source = here()
        where = f"loc({quote(source.file)}:{source.line}:0)"
        line = f"transform.commir.{transform} {operands} in %program : !transform.any_op"
        step = f"{transform} {operands}"
        return self._transform(f"{_HEAD}    {line} {where}\n{_TAIL}", step)

    def _transform(self, script: str, step: str = "") -> Schedule:
        """Apply a script to a clone, and take the clone when all of it was legal."""
        from .._mlir import ir  # noqa: PLC0415 (no work at import)
        from .._mlir._mlir_libs import _mercury  # noqa: PLC0415

        with self._module.context:
            try:
                parsed = ir.Module.parse(script)
            except ir.MLIRError as error:
                why = "; ".join(d.message for d in error.error_diagnostics) or str(error)
                raise ScheduleError(
                    f"{step or 'the script'} does not read as a transform: {why}",
                    location=str(here()),
                ) from None
            module, diagnostics = _mercury.apply_schedule(self._module, parsed)
            if module is None:
                raise ScheduleError.from_diagnostics(
                    diagnostics, otherwise="the script cannot be applied"
                )
        self._module, self._mesh = module, None
        self._scripts += (parsed,)
        return self

    def _steps(self) -> Iterator[Any]:
        """Give the transforms that made it, in order."""
        for script in self._scripts:
            yield from _transforms(script)


def _mesh_of(module: Any) -> Mesh:
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

    for op in module.body.operations:
        if op.operation.name == "commir.mesh":
            return Mesh(**dict(map(_mercury.level, op.levels)))
    raise ScheduleError("the module has no commir.mesh")


def _transforms(script: Any) -> Iterator[Any]:
    """Give the `transform.commir` ops that a script applies, in order.

    Other sequences of the script may be called by it, but are steps of none.
    """
    for op in script.body.operations:
        attributes = op.operation.attributes
        if op.operation.name == "builtin.module":
            yield from _transforms(op)
        elif "sym_name" in attributes and attributes["sym_name"].value == "__transform_main":
            for step in op.operation.regions[0].blocks[0].operations:
                if step.operation.name.startswith("transform.commir."):
                    yield step
