"""Configures lit: `source build/env`, then `lit test` or `lit test/Dialect`."""

# ruff: noqa: F821 -- lit defines config and lit_config.
from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import lit.formats

root = pathlib.Path(__file__).resolve().parent
config.name = "Mercury"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".py"]
config.test_source_root = str(root)
config.test_exec_root = str(root.parent / "build" / "lit")
# What pytest, ctest and the other groups of tools/test run.
config.excludes = {
    "Docs",
    "Fuzz",
    "Gpu",
    "Matrix",
    "Inputs",
    "Kernels",
    "Mutation",
    "Runtime",
    "python",
    "lit.cfg.py",
    "conftest.py",
}
config.excludes |= {path.name for path in root.rglob("test_*.py")}

for variable in ("PATH", "PYTHONPATH"):
    config.environment[variable] = os.environ.get(variable, "")
config.substitutions.append(("%PYTHON", f'"{sys.executable}"'))


def mercury_opt(*arguments: str) -> str:
    """Run mercury-opt on an empty module; what it prints."""
    done = subprocess.run(
        ["mercury-opt", *arguments],
        input="module {}",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


for tool in ("mercury-opt", "FileCheck", "not"):
    if not shutil.which(tool):
        lit_config.fatal(f"{tool} is not in PATH: run tools/setup, then source build/env")
if "with assertions" in mercury_opt("--version"):
    config.available_features.add("asserts")
if "num-buffers" in mercury_opt("--commir-infer-placement", "--mlir-pass-statistics"):
    config.available_features.add("statistics")
if importlib.util.find_spec("torch"):
    config.available_features.add("torch")
