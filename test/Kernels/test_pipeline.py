"""The page of the kernels states how they are lowered."""

from __future__ import annotations

from compiled import PIPELINE, TEMPLATES


def test_readme_states_the_pipeline() -> None:
    assert PIPELINE in (TEMPLATES / "README.md").read_text()
