"""Mercury: a compiler for tensor operators on many GPUs.

A program is an operator written once as loops over named axes. A schedule says where and
when it computes and where its data lives; what must be communicated follows. A plan is a
schedule lowered for one mesh and target, ready to run.

Importing this package does no work: what you use is loaded when you use it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import CompileError, MercuryError, ProgramError, RunError, ScheduleError

if TYPE_CHECKING:
    from . import cuda, ops, programs, strategies, topology
    from .dsl import Mask, Mesh, Program, ProgramBuilder, causal, full, program, window
    from .runtime.plan import Plan
    from .schedule import Schedule
    from .simulator import simulate
    from .tuner import tune

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "Mask",
    "MercuryError",
    "Mesh",
    "Plan",
    "Program",
    "ProgramBuilder",
    "ProgramError",
    "RunError",
    "Schedule",
    "ScheduleError",
    "causal",
    "cuda",
    "full",
    "ops",
    "program",
    "programs",
    "simulate",
    "strategies",
    "topology",
    "tune",
    "window",
]

_HOMES = {
    "Mask": ".dsl",
    "Mesh": ".dsl",
    "Plan": ".runtime.plan",
    "Program": ".dsl",
    "ProgramBuilder": ".dsl",
    "Schedule": ".schedule",
    "causal": ".dsl",
    "full": ".dsl",
    "program": ".dsl",
    "simulate": ".simulator",
    "tune": ".tuner",
    "window": ".dsl",
}


def __getattr__(name: str) -> Any:
    if name in ("cuda", "ops", "programs", "strategies", "topology"):
        return importlib.import_module(f".{name}", __name__)
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module 'mercury' has no attribute '{name}'")
