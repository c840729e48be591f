"""A schedule: a transform module and the program it has shaped so far."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..dsl.mesh import Mesh
from ..dsl.program import Boundary, Program
from ..dsl.source import here
from ..errors import ScheduleError
from . import step as steps
from .recipe import Call, Value, format_recipe, parse_recipe
from .step import Step, names, quote

if TYPE_CHECKING:
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
        its axes is cut over. The schedule's own placement where none is given.

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
        self.program = program
        self._module = program.build(mesh, boundary)
        self._steps: list[Step] = []
        self._calls: list[Call] = []

    # -- transforms -----------------------------------------------------------

    def tile(self, loop: str, into: int | str, names: Sequence[str] | None = None) -> Schedule:
        """Cut a loop into parts, walked by an outer loop.

        Parameters
        ----------
        loop
            A loop that is not cut yet.
        into
            The number of parts, or a level whose size it takes.
        names
            Of the outer and the inner loop; ``L_outer`` and ``L_inner`` when not given.
        """
        pair = None if names is None else cast("tuple[str, str]", tuple(names))
        return self._add(
            steps.tile(loop, into, pair),
            Call(name="tile", args=[loop, into], kwargs=_given(names=names)),
        )

    def join(self, outer: str, inner: str, name: str | None = None) -> Schedule:
        """Merge two adjacent loops into one; of one axis, undo a tile."""
        text = f"{quote(outer)}, {quote(inner)}" + (f" as {quote(name)}" if name else "")
        return self._add(
            Step(op="join", operands=text),
            Call(name="join", args=[outer, inner], kwargs=_given(name=name)),
        )

    def reorder(self, *loops: str) -> Schedule:
        """Let loops take each other's places, in the order given."""
        return self._add(
            Step(op="reorder", operands=names(loops)), Call(name="reorder", args=[*loops])
        )

    def patch(self, pattern: str, impl: str) -> Schedule:
        """Pick the implementation of the kernels whose name fits ``pattern``."""
        return self._add(
            Step(op="patch", operands=f"{quote(pattern)} with {quote(impl)}"),
            Call(name="patch", args=[pattern, impl]),
        )

    def parallelize(self, loop: str, levels: str | Sequence[str]) -> Schedule:
        """Spread the iterations of a loop over one or several levels."""
        return self._add(
            Step(op="parallelize", operands=f"{quote(loop)} over {names(levels)}"),
            Call(name="parallelize", args=[loop, _list(levels)]),
        )

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
            ``"travel"`` or ``"deliver"``.
        via
            How single buffers move, where not by ``reads`` and ``results``.
        chunks
            Into how many pieces a transfer is cut.
        link
            Element type on the wire, as ``"bf16"``.
        """
        options = _given(
            over=None if over is None else _list(over),
            direction=None if direction == 1 else direction,
            offset=offset or None,
            reads=None if reads == "rotate" else reads,
            results=None if results == "travel" else results,
            via=dict(via) if via else None,
            chunks=None if chunks == 1 else chunks,
            link=link,
        )
        return self._add(
            steps.shift(
                loop,
                by,
                over=over,
                direction=direction,
                offset=offset,
                reads=reads,
                results=results,
                via=via,
                chunks=chunks,
                link=link,
            ),
            Call(name="shift", args=[loop], kwargs={"by": _list(by), **options}),
        )

    def shard(self, buffer: str, axis: str, levels: str | Sequence[str]) -> Schedule:
        """Let a buffer live cut along an axis, whatever the loops access."""
        return self._add(
            Step(
                op="shard",
                operands=f"{quote(buffer)} along {quote(axis)} over {names(levels)}",
            ),
            Call(name="shard", args=[buffer, axis, _list(levels)]),
        )

    def replicate(self, buffer: str, level: str) -> Schedule:
        """Let a buffer live whole on every rank of a level."""
        return self._add(
            Step(op="replicate", operands=f"{quote(buffer)} over {quote(level)}"),
            Call(name="replicate", args=[buffer, level]),
        )

    def split_level(self, level: str, into: Mapping[str, int]) -> Schedule:
        """See one level of the mesh as several; the last is the fastest."""
        return self._add(
            steps.split_level(level, into),
            Call(name="split_level", args=[level, dict(into)]),
        )

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
            return self._apply_script(recipe)
        before = (self._module, list(self._steps), list(self._calls))
        try:
            for call in parse_recipe(recipe):
                self._apply_call(call)
        except ScheduleError:
            self._module, self._steps, self._calls = before
            raise
        return self

    def _apply_call(self, call: Call) -> None:
        if call.name not in _TRANSFORMS:
            raise ScheduleError(
                f"there is no transform '{call.name}'; they are {', '.join(_TRANSFORMS)}"
            )
        try:
            getattr(self, call.name)(*call.args, **call.kwargs)
        except (TypeError, AttributeError) as error:
            raise ScheduleError(f"cannot apply {call}: {error}") from None

    def _apply_script(self, script: str) -> Schedule:
        self._module = self._transformed(script)
        ir = _ir()
        with self._module.context:
            for op in _sequence(ir.Module.parse(script)):
                text = _HANDLE.sub("", op)
                name, _, operands = text.removeprefix("transform.commir.").partition(" ")
                self._steps.append(Step(op=name, operands=operands))
                self._calls.append(_call_of(name, operands))
        return self

    def recipe(self) -> str:
        """Give the schedule in one line, which `apply` reads back."""
        return format_recipe(self._calls)

    def __str__(self) -> str:
        return _HEAD + "".join(f"    {step}\n" for step in self._steps) + _TAIL

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

    def compile(self, target: str = "sim") -> Plan:
        """Lower the program to a plan.

        Parameters
        ----------
        target
            ``"sim"``: every rank a thread of this process.

        Raises
        ------
        CompileError
            When the program needs something that is not lowered yet, or the target is
            not there.
        """
        from ..runtime.plan import compile_module  # noqa: PLC0415 (a layer that loads more)

        return compile_module(self._module, self.program, self.mesh, target)

    # -- one step -------------------------------------------------------------

    def _add(self, step: Step, call: Call) -> Schedule:
        source = here()
        where = f" loc({quote(str(Path(source.file)))}:{source.line}:0)"
        self._module = self._transformed(_HEAD + f"    {step}{where}\n" + _TAIL)
        self._steps.append(step)
        self._calls.append(call)
        return self

    def _transformed(self, script: str) -> Any:
        """Give the module after a script; this one stays as it is."""
        from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

        ir = _ir()
        with self._module.context:
            try:
                parsed = ir.Module.parse(script)
            except ir.MLIRError as error:
                messages = [[(str(d.location), d.message)] for d in error.error_diagnostics]
                raise ScheduleError.from_diagnostics(messages, otherwise=str(error)) from None
        module, diagnostics = _mercury.apply_schedule(self._module, parsed)
        if module is None:
            raise ScheduleError.from_diagnostics(
                diagnostics, otherwise="the script cannot be applied"
            )
        return module


_TRANSFORMS = (
    "tile",
    "join",
    "reorder",
    "patch",
    "parallelize",
    "shift",
    "shard",
    "replicate",
    "split_level",
)


def _ir() -> Any:
    from .._mlir import ir  # noqa: PLC0415 (no work at import)

    return ir


def _list(values: str | Sequence[str]) -> Value:
    """One name as it is, several as a list."""
    if isinstance(values, str):
        return values
    return values[0] if len(values) == 1 else list(values)


def _given(**options: Any) -> dict[str, Value]:
    """Keep the options that are given."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if value is not None
    }


def _mesh_of(module: Any) -> Mesh:
    for op in module.body.operations:
        if op.operation.name == "commir.mesh":
            levels = re.findall(r"level<(\w+) = (\d+)>", str(op.levels))
            return Mesh(**{name: int(size) for name, size in levels})
    raise ScheduleError("the module has no commir.mesh")


def _sequence(script: Any) -> list[str]:
    """Give the text of the `transform.commir` ops of a script."""
    found: list[str] = []

    def visit(op: Any) -> None:
        if op.operation.name.startswith("transform.commir."):
            found.append(op.operation.get_asm())
        for region in op.operation.regions:
            for block in region:
                for inner in block:
                    visit(inner)

    visit(script.operation)
    return found


_TOKEN = re.compile(r'\[[^\]]*\]|\([^)]*\)|\{[^}]*\}|"[^"]*"|[\w.+-]+')


def _call_of(name: str, operands: str) -> Call:
    """Turn the operands of a transform's text into the call that makes it.

    Operands are values; keywords stand before theirs, so a keyword starts an option.
    """
    positional = {"into", "with", "along", "over"} - ({"over"} if name == "shift" else set())
    renamed = {"as": "name" if name == "join" else "names"}
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    key = ""
    for token in _TOKEN.findall(operands):
        if token.isidentifier() and not key:
            key = token
            if key in positional:
                key = "+"
            continue
        value = _read(token)
        if key in ("", "+"):
            args.append(value)
        else:
            kwargs[renamed.get(key, key)] = value
        key = ""
    if name == "reorder":
        args = cast("list[Value]", args[0])
    return Call(name=name, args=args, kwargs=kwargs)


def _read(token: str) -> Value:
    if token.startswith("["):
        found = re.findall(r'"([^"]*)"', token)
        return found[0] if len(found) == 1 else list(found)
    if token.startswith(("(", "{")):
        pairs = re.findall(r'"?(\w+)"?\s*=\s*"?(\w+)"?', token)
        return {k: int(v) if v.isdigit() else v for k, v in pairs}
    if token.startswith('"'):
        return token[1:-1]
    return int(token) if re.fullmatch(r"-?\d+", token) else token
