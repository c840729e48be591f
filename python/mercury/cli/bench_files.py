"""The machines that predictions are for, and points of a measurement as a JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .files import write_text

if TYPE_CHECKING:
    from ..dsl import Mesh
    from ..topology import Topology

__all__ = ["machine_for", "write_json"]


def machine_for(topology: str, mesh: str | None) -> tuple[Mesh, Topology]:
    """Read a mesh and the topology, or a host of its kind with as many ranks.

    Parameters
    ----------
    topology
        The name of a preset, or a file.
    mesh
        As text; that of the topology when it is not given.
    """
    from .. import Mesh  # noqa: PLC0415 (loads the compiler)
    from ..topology import load  # noqa: PLC0415

    machine = load(topology)
    ranks = machine.mesh if mesh is None else Mesh.parse(mesh)
    return ranks, machine.with_ranks(ranks.size) if ranks.size > machine.size else machine


def write_json(file: Path | None, points: Sequence[Any]) -> None:
    """Write dataclasses as a list of objects, one a line, where a file is given."""
    if file is None:
        return
    lines = ",\n".join(json.dumps(asdict(point)) for point in points)
    write_text(file, f"[\n{lines}\n]\n")
