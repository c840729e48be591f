"""A plan: a schedule lowered for one mesh and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dsl.mesh import Mesh
from ..dsl.nodes import Buffer
from ..dsl.program import Program
from ..errors import CompileError, RunError
from . import events, sim
from .compiled import Compiled, compile_for
from .dtypes import decode, encode, storage
from .events import Event
from .layout import BufferLayout
from .parts import follow
from .sim import RunReport, SimOptions

__all__ = ["Plan", "compile_module"]

Array = NDArray[Any]
Shards = Sequence[Mapping[str, Array]]


class Plan:
    """Compiled code for every rank, and where its buffers live.

    Made by `Schedule.compile`. A plan has no state: it may run many times.

    Attributes
    ----------
    program, mesh
        What runs, and where.
    local_bytes, symmetric_bytes, arena_bytes
        Memory of each rank beside its buffers: of its own, what peers may read, and both.
    spmd
        The text of what every rank does.
    remarks
        What the compiler decided that the schedule did not ask for, a line each.
    """

    def __init__(
        self,
        *,
        program: Program,
        mesh: Mesh,
        layouts: Mapping[str, BufferLayout],
        spmd: str,
        local_bytes: int,
        symmetric_bytes: int,
        jit: Any,
        context: Any,
        located: str = "",
        remarks: Sequence[str] = (),
    ) -> None:
        self.program = program
        self.mesh = mesh
        self.spmd = spmd
        self._located = located or spmd  # with the user's lines
        self.local_bytes, self.symmetric_bytes = local_bytes, symmetric_bytes
        self.arena_bytes = local_bytes + symmetric_bytes
        self.remarks = tuple(remarks)
        self._layouts = layouts
        self._jit = jit
        self._context = context  # layouts are attributes of it
        self._entry = jit.lookup(program.name)
        self._report: RunReport | None = None

    @classmethod
    def of(cls, compiled: Compiled) -> Plan:
        """Give a compiled program the face of a plan."""
        return cls(
            program=compiled.program,
            mesh=compiled.mesh,
            layouts=compiled.layouts,
            spmd=compiled.spmd,
            located=compiled.located,
            local_bytes=compiled.local_bytes,
            symmetric_bytes=compiled.symmetric_bytes,
            remarks=compiled.remarks,
            jit=compiled.jit,
            context=compiled.context,
        )

    def __repr__(self) -> str:
        return f"<plan of {self.program.name} on {self.mesh}, arena {self.arena_bytes} bytes>"

    def layout(self, buffer: str) -> BufferLayout:
        """Say who owns which part of a buffer outside the program."""
        if buffer not in self._layouts:
            raise RunError(
                f"the program has no buffer '{buffer}'; it has {', '.join(self._layouts)}"
            )
        return self._layouts[buffer]

    def events(self, rank: int | None = None) -> list[Event]:
        """Say what a rank does, in order, or all ranks, one after the other.

        Nothing is run.

        Parameters
        ----------
        rank
            A rank of the mesh; all when not given.

        Raises
        ------
        RunError
            When the mesh has no such rank.

        Examples
        --------
        >>> import mercury as mc
        >>> program = mc.programs.matmul(m=4, n=4, depth=4)
        >>> plan = mc.Schedule(program, mc.Mesh(gpu=2)).parallelize("i", "gpu").compile()
        >>> [event.kind for event in plan.events(rank=1)]
        ['launch']
        """
        from .._mlir import ir  # noqa: PLC0415 (no work at import)

        if rank is not None and not 0 <= rank < self.mesh.size:
            raise RunError(f"the mesh has ranks 0 to {self.mesh.size - 1}, got {rank}")
        with self._context:
            module = ir.Module.parse(self._located)
        names = tuple(buffer.name for buffer in self.program.buffers)
        told = [
            event
            for each in range(self.mesh.size)
            for event in events.read(module, self.program.name, names, each)
        ]
        # What a rank receives is known from what the others sent.
        told = follow(self._layouts, told)
        return [event for event in told if rank in (None, event.rank)]

    def scatter(self, **whole: Array) -> list[dict[str, Array]]:
        """Cut whole inputs into shards, for tests and single processes.

        Parameters
        ----------
        **whole
            Each input of the program, of its whole shape; rounded to its dtype.

        Returns
        -------
        list of dict
            For each rank, its shard of each input (bfloat16 as uint16 bits).

        Raises
        ------
        RunError
            When an input is missing, unknown, of another shape, or of no real numbers.
        """
        self._check_names(whole)
        cut = {
            buffer.name: self.layout(buffer.name).scatter(
                encode(_real(buffer.name, whole[buffer.name]), buffer.dtype)
            )
            for buffer in self.program.inputs
        }
        return [{name: cut[name][rank] for name in cut} for rank in range(self.mesh.size)]

    def gather(self, shards: Shards) -> Any:
        """Put shards of outputs together.

        Parameters
        ----------
        shards
            What `run` gave.

        Returns
        -------
        numpy.ndarray or dict
            The output, or each by name when there are several (bfloat16 as float32).

        Raises
        ------
        RunError
            When there is not one shard of each output from each rank.
        """
        outputs = {buffer.name for buffer in self.program.outputs}
        for rank, shard in enumerate(shards):
            if outputs - set(shard):
                raise RunError(
                    f"expected the outputs {', '.join(sorted(outputs))} of rank {rank}, as "
                    f"plan.run gives them, got {', '.join(shard) or 'none'}"
                )
        whole = {
            buffer.name: decode(
                self.layout(buffer.name).gather([shard[buffer.name] for shard in shards]),
                buffer.dtype,
            )
            for buffer in self.program.outputs
        }
        return whole if len(whole) != 1 else next(iter(whole.values()))

    def run(self, shards: Shards, options: SimOptions | None = None) -> list[dict[str, Array]]:
        """Run the plan on every rank.

        Parameters
        ----------
        shards
            For each rank, its shard of each input, contiguous and of its dtype.
        options
            Of the embedded backend.

        Returns
        -------
        list of dict
            For each rank, its shard of each output.

        Raises
        ------
        RunError
            When the data does not fit, or a rank fails.
        """
        if len(shards) != self.mesh.size:
            raise RunError(f"the mesh has {self.mesh.size} ranks, got {len(shards)} shards")
        outputs: list[dict[str, Array]] = []
        addresses: list[list[int]] = []
        for rank, given in enumerate(shards):
            self._check_names(given)
            made = {
                buffer.name: np.empty(
                    self.layout(buffer.name).shape(rank), storage(buffer.dtype)
                )
                for buffer in self.program.outputs
            }
            outputs.append(made)
            addresses.append(
                [
                    (
                        made[buffer.name]
                        if buffer.output
                        else self._checked(buffer, rank, given[buffer.name])
                    ).ctypes.data
                    for buffer in self.program.buffers
                ]
            )
        self._report = sim.run(
            self._entry,
            self.mesh,
            addresses,
            self.local_bytes,
            self.symmetric_bytes,
            options or SimOptions(),
        )
        return outputs

    @property
    def report(self) -> RunReport:
        """What the last run moved."""
        if self._report is None:
            raise RunError("the plan has not run yet")
        return self._report

    def _check_names(self, given: Mapping[str, Array]) -> None:
        wanted = [buffer.name for buffer in self.program.inputs]
        if set(given) != set(wanted):
            raise RunError(f"expected the inputs {', '.join(wanted)}, got {', '.join(given)}")

    def _checked(self, buffer: Buffer, rank: int, shard: Array) -> Array:
        shape = self.layout(buffer.name).shape(rank)
        dtype = storage(buffer.dtype)
        if shard.shape != shape or shard.dtype != dtype or not shard.flags.c_contiguous:
            kind = "" if shard.flags.c_contiguous else ", not contiguous"
            raise RunError(
                f"the shard of '{buffer.name}' on rank {rank} must be a contiguous array of "
                f"shape {shape} and {dtype}, got {shard.shape} and {shard.dtype}{kind}; "
                "plan.scatter makes it from a whole array"
            )
        return shard


def compile_module(
    module: Any, program: Program, mesh: Mesh, target: str, puts: tuple[str, ...] = ()
) -> Plan:
    """Lower a scheduled module to a plan; see `Schedule.compile`."""
    if target != "sim":
        raise CompileError(f"there is no target {target!r}; targets are 'sim' and 'cuda'")
    return Plan.of(compile_for(target, module, program, mesh, puts=puts))


def _real(name: str, values: Any) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise RunError(
            f"input '{name}' must be an array of real numbers, got one of {array.dtype}; "
            "convert it first"
        )
    return array
