"""The key of a search: everything that its answer depends on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from .. import __version__
from ..dsl import Mesh, Program
from ..dsl.program import Boundary
from ..libraries import ABI_VERSION
from ..schedule import Schedule
from ..topology import Topology
from .space import SpaceOptions

__all__ = ["IR_VERSION", "Key"]

# Raise it when schedules of an older version may mean something else now.
IR_VERSION = 1
# Raise it when answers have other fields.
ANSWER_VERSION = 3


@dataclass(frozen=True, kw_only=True)
class Key:
    """A question that a search answers.

    Attributes
    ----------
    question
        The program as IR (with shapes, types, masks, layouts, mesh and boundary), the
        figures of the topology, the memory limit, the target, what was searched and how it
        was compared, and the versions of package, IR and runtime.
    label
        The question in a line.
    """

    question: dict[str, Any]
    label: str

    @classmethod
    def of(
        cls,
        program: Program,
        mesh: Mesh,
        boundary: Boundary | None,
        *,
        topology: Topology,
        memory: int | None,
        target: str,
        options: SpaceOptions,
        cost: str,
    ) -> Key:
        """Put a question together.

        Parameters
        ----------
        program, mesh, boundary
            What is scheduled.
        topology
            The machine.
        memory
            Limit of a rank, in bytes.
        target
            Where the plan will run.
        options
            What the space holds.
        cost
            The name of what candidates are compared by.
        """
        question = {
            "program": Schedule(program, mesh, boundary).ir(),
            "topology": topology.fingerprint(),
            "memory": memory,
            "target": target,
            "space": json.loads(json.dumps(asdict(options), default=list)),
            "cost": cost,
            "versions": {
                "package": __version__,
                "ir": IR_VERSION,
                "abi": ABI_VERSION,
                "answer": ANSWER_VERSION,
            },
        }
        limit = "" if memory is None else f", {memory / (1 << 30):g} GiB"
        axes = ", ".join(f"{axis.name}={axis.extent}" for axis in program.axes)
        return cls(
            question=question,
            label=f"{program.name}({axes}) on {mesh}, {topology.name}{limit}, {target}",
        )

    @property
    def hash(self) -> str:
        """The key itself."""
        text = json.dumps(self.question, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]
