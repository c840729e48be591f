"""Lowering a candidate as far as its memory and its traffic can be seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import CompileError
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
        Memory of the fullest rank: what the plan takes, and the user's shards.
    """

    candidate: Candidate
    module: Any
    arena_bytes: int
    boundary_bytes: int

    @property
    def peak_bytes(self) -> int:
        """All of it."""
        return self.arena_bytes + self.boundary_bytes


def lower(candidate: Candidate) -> Lowered:
    """Lower a candidate to its SPMD function.

    Raises
    ------
    CompileError
        When it needs something that is not lowered yet.
    """
    from .._mlir import ir  # noqa: PLC0415 (no work at import)
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415

    module = candidate.schedule.module
    with module.context:
        lowered = ir.Module.parse(module.operation.get_asm())
    done, diagnostics = _mercury.run_pipeline(lowered, "builtin.module(commir-to-spmd)")
    if not done:
        raise CompileError.from_diagnostics(diagnostics, otherwise="commir-to-spmd failed")
    arena = 0
    for op in lowered.body.operations:
        if "commir.arena_bytes" in op.operation.attributes:
            arena = max(arena, op.operation.attributes["commir.arena_bytes"].value)
    return Lowered(
        candidate=candidate,
        module=lowered,
        arena_bytes=arena,
        boundary_bytes=boundary_bytes(candidate),
    )
