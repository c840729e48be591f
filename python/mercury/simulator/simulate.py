"""Simulating a plan, or a schedule, on a topology."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dsl.mesh import Mesh
from ..errors import CompileError, MercuryError
from ..implementations import implement
from ..runtime.dtypes import storage
from ..runtime.lowering import lower
from ..schedule import Schedule
from ..topology import Topology, load
from .machine import to_json
from .result import Simulation, Span

if TYPE_CHECKING:
    from ..runtime.layout import BufferLayout
    from ..runtime.plan import Plan

__all__ = ["SimulationError", "Workload", "for_machine", "simulate", "simulate_module"]


class SimulationError(MercuryError):
    """A plan cannot be simulated on a machine: it lacks what the plan needs."""


def simulate(
    plan: Plan | Schedule, topology: str | Path | Topology, *, puts: str = ""
) -> Simulation:
    """Predict the time of a plan on a machine. Nothing is run; the result is always the same.

    Discrete events over what all ranks do: kernels from curves of speed by shape, with the
    last wave of blocks; fills, copies and merges from curves of their kind; launch gaps;
    messages, collectives and pulls over links that they share, each direction by itself.
    Messages slow the kernels beside them, copy engines do not. As on a GPU the host runs
    ahead, and a wait holds the stream of kernels alone.

    Not modelled: kernels and copies that share the bandwidth of memory, clocks that fall
    with what ran before, ranks that are late, hosts that do not keep up.

    Parameters
    ----------
    plan
        What `Schedule.compile` gave, for any target, with the kernels that it has; or a
        schedule, whose kernels are those of the machine's libraries where it names some and
        the schedule patches none, as ``compile("cuda")`` takes them there.
    topology
        The machine: a preset as ``"h100-8x2"``, a file, or a `Topology`.
    puts
        As for `Schedule.compile`, of a schedule; a plan has its own.

    Returns
    -------
    Simulation
        Times, bytes, memory and the timeline; all *predicted*.

    Raises
    ------
    SimulationError
        When the machine lacks what the plan needs, as a way to pull.
    TopologyError
        When the topology is not right, or too small for the mesh.
    CompileError
        When a schedule cannot be lowered.

    Examples
    --------
    >>> import mercury as mc
    >>> program = mc.programs.attention(sq=65536, sk=65536)
    >>> schedule = mc.strategies.get("ring").schedule(mc.Mesh(gpu=2), program)
    >>> ring = mc.simulate(schedule, "h200-2x1")
    >>> 0.05 < ring.time_s < 0.07, ring.exposed_s < 0.1 * ring.time_s
    (True, True)
    """
    machine = topology if isinstance(topology, Topology) else load(topology)
    if isinstance(plan, Schedule):
        scheduled = for_machine(plan.module, machine)
        made = lower(scheduled, plan.program, plan.mesh, plan.group(puts))
        module, layouts, mesh = made.module, list(made.layouts.values()), plan.mesh
    elif puts:
        raise SimulationError("a plan goes as it was compiled; compile the schedule with puts")
    else:
        module, mesh = _parse(plan), plan.mesh
        layouts = [plan.layout(buffer.name) for buffer in plan.program.buffers]
    names = [layout.buffer.name for layout in layouts]
    return simulate_module(module, mesh, machine, names, _shards(layouts, mesh))


def for_machine(scheduled: Any, topology: Topology) -> Any:
    """Give the scheduled module that a machine runs: by its libraries, where it has them.

    Parameters
    ----------
    scheduled
        An ``mlir.ir.Module``, which is not changed; what it patches stays.
    topology
        The machine; see `KernelCurve.library`.
    """
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

    module = _mercury.clone(scheduled)
    implement(module, lambda kernel: topology.machine.kernel(kernel).library)
    return module


def simulate_module(
    module: Any,
    mesh: Mesh,
    topology: Topology,
    buffers: Sequence[str] = (),
    shards: Sequence[int] = (),
) -> Simulation:
    """Simulate a lowered plan; see `simulate`.

    Parameters
    ----------
    module
        An ``mlir.ir.Module`` that holds it.
    mesh, topology
        The ranks, and the machine.
    buffers
        The names of its arguments, for the timeline.
    shards
        The bytes of each rank's shards; none when not given.
    """
    return Workload(module, mesh, buffers, shards).on(topology)


class Workload:
    """What all ranks of a plan do, followed once, for any number of machines.

    Parameters
    ----------
    module, mesh, buffers, shards
        As for `simulate_module`.
    """

    def __init__(
        self,
        module: Any,
        mesh: Mesh,
        buffers: Sequence[str] = (),
        shards: Sequence[int] = (),
    ) -> None:
        from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

        found, diagnostics = _mercury.workload(module)
        if found is None:
            raise CompileError.from_diagnostics(
                diagnostics, otherwise="the plan cannot be traced"
            )
        self._found, self._mesh, self._buffers = found, mesh, tuple(buffers)
        self.peak_bytes = [found.arena_bytes + shard for shard in shards or [0] * found.ranks]

    @property
    def bytes_by_level(self) -> dict[str, int]:
        """What all ranks send over each level."""
        return dict(self._found.bytes_by_level)

    def on(self, topology: Topology) -> Simulation:
        """Simulate it on a machine."""
        machine = to_json(topology, self._mesh)
        figures = self._run(machine, spans=False)
        names = [link.name for link in topology.links]
        return Simulation(
            mesh=self._mesh,
            topology=topology.name,
            time_s=figures["seconds"],
            compute_s=figures["seconds"] - figures["exposed"],
            exposed_s=figures["exposed"],
            bytes_by_level=self.bytes_by_level,
            link_seconds=dict(zip(names, figures["link_seconds"], strict=True)),
            peak_bytes=self.peak_bytes,
            _record=lambda: list(map(self._span, self._run(machine, spans=True)["spans"])),
        )

    def _run(self, machine: str, *, spans: bool) -> dict[str, Any]:
        try:
            figures: dict[str, Any] = self._found.simulate(machine, spans)
        except RuntimeError as error:
            raise SimulationError(str(error)) from None
        return figures

    def _span(self, fields: tuple[Any, ...]) -> Span:
        rank, kind, lane, group, peer, name, buffer, start, end, size, step = fields
        if lane == "pulls":
            lane = f"pulls from {peer}"
        elif group:
            lane = f"{lane} {group}"
        if kind != "kernel" and 0 <= buffer < len(self._buffers):
            name = f"{name} {self._buffers[buffer]}"
        return Span(
            rank=rank,
            lane=lane,
            name=name,
            kind=kind,
            start_s=start,
            end_s=end,
            bytes=size,
            step=None if step < 0 else step,
        )


def _parse(plan: Plan) -> Any:
    from .._mlir import ir  # noqa: PLC0415 (no work at import)

    with ir.Context():
        return ir.Module.parse(plan.spmd)


def _shards(layouts: Sequence[BufferLayout], mesh: Mesh) -> list[int]:
    """Add up the bytes of each rank's shards."""
    return [
        sum(
            prod(layout.shape(rank)) * storage(layout.buffer.dtype).itemsize
            for layout in layouts
        )
        for rank in range(mesh.size)
    ]
