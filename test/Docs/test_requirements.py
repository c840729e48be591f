"""tools/setup and an isolated build use the same tools."""

from __future__ import annotations

import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_requirements_hold_what_the_build_requires() -> None:
    """A pin changed in one file only would test what users do not build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pinned = set((ROOT / "tools" / "requirements.txt").read_text().splitlines())
    assert set(project["build-system"]["requires"]) <= pinned
