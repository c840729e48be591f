"""Plans for shapes as they come: each is tuned once, and kept."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from .. import programs
from ..dsl import Mask, Mesh, Program
from ..dsl.program import Boundary
from ..runtime.plan import Plan
from ..schedule import Schedule
from ..topology import Topology, load
from ..tuner import TuneResult, tune
from .errors import OpError

__all__ = ["AttentionShape", "Plans"]


@dataclass(frozen=True, kw_only=True)
class AttentionShape:
    """What attention is called with."""

    b: int
    sq: int
    sk: int
    h: int
    d: int
    dv: int
    group: int
    dtype: str

    @property
    def q(self) -> tuple[int, ...]:
        """Shape of the queries."""
        return self.b, self.sq, self.h, self.d

    @property
    def k(self) -> tuple[int, ...]:
        """Shape of the keys."""
        return self.b, self.sk, self.h // self.group, self.d

    @property
    def v(self) -> tuple[int, ...]:
        """Shape of the values."""
        return self.b, self.sk, self.h // self.group, self.dv


class Plans:
    """Makes a plan for each shape that an operator is called with, and keeps it.

    A plan is for one shape. What is asked for the first time is tuned (or found in the
    tuner's cache) and compiled; after that the same plan is given. Threads may share one.

    Parameters
    ----------
    topology
        The machine that plans are tuned for; see `mercury.tune`.
    mesh
        Where they run; all ranks of the topology when not given.
    boundary
        Where Q, K, V and O live outside the operator.
    recipe
        A schedule to take for every shape, instead of tuning.
    **tuning
        Further arguments of `mercury.tune`, as ``time_limit="10s"``.

    Examples
    --------
    >>> import numpy as np
    >>> import mercury as mc
    >>> plans = mc.ops.Plans("h100-2x1", recipe="parallelize(sq, gpu)")
    >>> for length in (5, 9, 5):
    ...     q = np.ones((1, length, 2, 4), np.float32)
    ...     made = mc.ops.attention(q, q, q, plan=plans, mask="causal")
    >>> made.shape, len(plans)
    ((1, 5, 2, 4), 2)
    """

    def __init__(
        self,
        topology: str | Path | Topology,
        mesh: Mesh | None = None,
        *,
        boundary: Boundary | None = None,
        recipe: str | None = None,
        **tuning: Any,
    ) -> None:
        if recipe is not None and tuning:
            raise OpError(
                f"a recipe is taken as it is, and {', '.join(tuning)} would not be used; give "
                "either"
            )
        self._topology, self._mesh, self._boundary = topology, mesh, boundary
        self._recipe, self._tuning = recipe, tuning
        self._plans: dict[object, Plan] = {}
        self._found: dict[object, TuneResult] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def results(self) -> Mapping[object, TuneResult]:
        """What was found for each question, in the order of the first calls."""
        return dict(self._found)

    def attention(
        self,
        shape: AttentionShape,
        *,
        mask: Mask | str | None = None,
        scale: float | None = None,
    ) -> Plan:
        """Give the plan for attention of some shape, made when it is not there yet.

        Parameters
        ----------
        shape
            Of the tensors.
        mask, scale
            As of `mercury.programs.attention`.
        """
        own = Mask.of(mask)
        key = (shape, own, scale)
        # A second thread that wants the same waits for the first, and does not tune again.
        with self._lock:
            if key not in self._plans:
                program = programs.attention(**asdict(shape), mask=own, scale=scale)
                self._plans[key] = self._make(key, program)
            return self._plans[key]

    def _make(self, key: object, program: Program) -> Plan:
        if self._recipe is not None:
            mesh = self._mesh or _mesh_of(self._topology)
            return Schedule(program, mesh, self._boundary).apply(self._recipe).compile()
        found = tune(
            program,
            self._mesh,
            topology=self._topology,
            boundary=self._boundary,
            **self._tuning,
        )
        self._found[key] = found
        return cast("Plan", found.compile())  # of target "sim"


def _mesh_of(topology: str | Path | Topology) -> Mesh:
    return (topology if isinstance(topology, Topology) else load(topology)).mesh
