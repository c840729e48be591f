"""Lowering a candidate as far as its memory and its traffic can be seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import CompileError
from ..simulator import Workload, for_machine
from ..topology import Topology
from .memory import boundary_bytes
from .space import Candidate

__all__ = ["Lowered", "lower"]


@dataclass(frozen=True, kw_only=True)
class Lowered:
    """A candidate as every rank runs it.

    Attributes
    ----------
    candidate
        What was lowered.
    module
        The SPMD function, as an ``mlir.ir.Module``; do not change it.
    arena_bytes, boundary_bytes
        Memory of the fullest rank: both arenas of the plan, and the user's shards.
    """

    candidate: Candidate
    module: Any
    arena_bytes: int
    boundary_bytes: int

    @property
    def peak_bytes(self) -> int:
        """All of it."""
        return self.arena_bytes + self.boundary_bytes

    @cached_property
    def workload(self) -> Workload:
        """What all ranks do, for the simulator; followed once, when asked for."""
        schedule = self.candidate.schedule
        names = [buffer.name for buffer in schedule.program.buffers]
        return Workload(self.module, schedule.mesh, names)


def lower(candidate: Candidate, topology: Topology | None = None) -> Lowered:
    """Lower a candidate to its SPMD function.

    Parameters
    ----------
    candidate
        What to lower.
    topology
        The machine whose libraries run the kernels; generated ones when not given.

    Raises
    ------
    CompileError
        When it needs something that is not lowered yet.
    """
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

    module = candidate.schedule.module
    lowered = _mercury.clone(module) if topology is None else for_machine(module, topology)
    # The last pass proves the plan, and a plan that is chosen is lowered again with all that
    # checks the compiler itself.
    done, diagnostics, _ = _mercury.run_pipeline(
        lowered, "builtin.module(commir-to-spmd)", verify=False
    )
    if not done:
        raise CompileError.from_diagnostics(diagnostics, otherwise="commir-to-spmd failed")
    arena = sum(
        op.operation.attributes[name].value
        for op in lowered.body.operations
        for name in ("commir.local_bytes", "commir.symmetric_bytes")
        if name in op.operation.attributes
    )
    return Lowered(
        candidate=candidate,
        module=lowered,
        arena_bytes=arena,
        boundary_bytes=boundary_bytes(candidate),
    )
