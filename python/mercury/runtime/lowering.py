"""Lowering a schedule as far as what every rank does, without making code of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..dsl.mesh import Mesh
from ..dsl.program import Program
from .compiled import _layouts, _run, to_spmd
from .layout import BufferLayout

__all__ = ["Lowered", "lower"]


@dataclass(frozen=True, kw_only=True)
class Lowered:
    """A plan that cannot run: its text, and where its buffers live.

    Attributes
    ----------
    module
        An ``mlir.ir.Module`` with the SPMD function; do not change it.
    layouts
        Of each buffer outside the program.
    """

    module: Any
    layouts: Mapping[str, BufferLayout]


def lower(module: Any, program: Program, mesh: Mesh, puts: tuple[str, ...] = ()) -> Lowered:
    """Lower a scheduled module; ``puts`` as for `Schedule.compile`.

    Raises
    ------
    CompileError
        When it needs something that is not lowered yet.
    """
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415 (no work at import)

    lowered = _mercury.clone(module)
    _run(_mercury, lowered, "commir-infer-placement")
    layouts = _layouts(lowered, program, mesh)
    _run(_mercury, lowered, to_spmd("sim", puts))
    return Lowered(module=lowered, layouts=layouts)
