# RUN: %PYTHON %s
"""Each strategy has its test here, and each test its strategy."""

from __future__ import annotations

import pathlib

import mercury as mc

tests = {path.stem for path in pathlib.Path(__file__).parent.glob("*.test")}
assert tests == set(mc.strategies.names()), tests ^ set(mc.strategies.names())
