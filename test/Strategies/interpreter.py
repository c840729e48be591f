# RUN: %PYTHON %s
"""What mercury-opt makes of a strategy's program and script is what Python makes of it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import mercury as mc
from mercury._mlir import ir

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import emit

MESHES = ("gpu=4", "node=2,gpu=3", "gpu=5", "gpu=1", "rack=2,node=2,gpu=2")
SPLIT = "// -----\n"


def programs(text: str) -> list[str]:
    """Give the mesh and program of a module, printed."""
    with ir.Context():
        module = ir.Module.parse(text)
        return [
            str(op) for op in module.body.operations if not op.name.startswith("transform.")
        ]


cases = [(name, mesh) for name in mc.strategies.names() for mesh in MESHES]
asked = [emit.both(name, emit.mesh_of(mesh)) for name, mesh in cases]
done = subprocess.run(
    ["mercury-opt", "--transform-interpreter", "--split-input-file", "-"],
    input=SPLIT.join(asked),
    capture_output=True,
    text=True,
    check=False,
)
assert done.returncode == 0, done.stderr
answers = done.stdout.split(SPLIT)
assert len(answers) == len(cases)

for (name, mesh), answer in zip(cases, answers, strict=True):
    strategy = mc.strategies.get(name)
    schedule = strategy.schedule(emit.mesh_of(mesh))
    where = f"{name} on {mesh}"
    assert programs(answer) == programs(schedule.ir()), where

    # A schedule is what its script says, and its recipe says the same.
    for text in (str(schedule), schedule.recipe()):
        copy = mc.Schedule(strategy.program(), emit.mesh_of(mesh)).apply(text)
        assert str(copy) == str(schedule), where
        assert copy.recipe() == schedule.recipe(), where

    # A method is a few lines.
    few = 8 if len(emit.mesh_of(mesh).levels) <= 2 else 10
    assert len(strategy.steps(emit.mesh_of(mesh))) <= few, where
