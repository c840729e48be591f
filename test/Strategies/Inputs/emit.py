"""Print a strategy as MLIR: `emit.py NAME MESH [payload|script]`, MESH as `node=2,gpu=3`.

Without a third argument, one module holds the program as it is before the schedule and the
script, as `mercury-opt --transform-interpreter` takes them.
"""

from __future__ import annotations

import dataclasses
import sys

import mercury as mc

_OPEN = "module attributes {transform.with_named_sequence} {\n"


def mesh_of(text: str) -> mc.Mesh:
    """Read `node=2,gpu=3`."""
    levels = (level.split("=") for level in text.split(","))
    return mc.Mesh(**{name: int(size) for name, size in levels})


def payload(name: str, mesh: mc.Mesh) -> str:
    """Give the strategy's program and boundary, not scheduled."""
    strategy = mc.strategies.get(name)
    return dataclasses.replace(strategy, recipe=lambda _, __: []).schedule(mesh).ir()


def script(name: str, mesh: mc.Mesh) -> str:
    """Give the strategy's transforms."""
    return str(mc.strategies.get(name).schedule(mesh))


def both(name: str, mesh: mc.Mesh) -> str:
    """Give one module of both."""
    bodies = []
    for text in (payload(name, mesh), script(name, mesh)):
        lines = text.strip().splitlines()
        bodies += lines[1:-1]
    return _OPEN + "\n".join(bodies) + "\n}\n"


if __name__ == "__main__":
    what = {"payload": payload, "script": script}.get((sys.argv[3:] or [""])[0], both)
    print(what(sys.argv[1], mesh_of(sys.argv[2])))
