"""The tool that times the compiler works; what it measures decides nothing."""

import importlib.util
import re
from importlib.machinery import SourceFileLoader
from pathlib import Path

import mercury as mc
import pytest

TOOL = Path(__file__).parents[2] / "tools" / "bench-compiler"


@pytest.fixture(scope="module")
def tool():
    loader = SourceFileLoader("bench_compiler", str(TOOL))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader)
    )
    loader.exec_module(module)
    return module


def test_the_compiler_is_timed(tool):
    figures = tool.compiler(ranks=[2], rounds=1)
    assert {
        f"{what} {name}, 2 ranks" for what in ("lower", "compile") for name in tool.LOWERED
    } < (figures.keys())
    assert min(figures.values()) > 0


def test_stripes_are_timed(tool):
    assert list(tool.stripes(lengths=[40], rounds=1)) == [
        "lower ring, 8 ranks, 40 positions in striped(1)"
    ]


def test_the_simulator_is_timed(tool):
    cases = [
        ("ring", {"gpu": 2}, "h200-2x1"),
        ("double-ring", {"node": 2, "gpu": 2}, "h200-2x2"),
    ]
    assert list(tool.simulator(cases, rounds=1)) == [
        "simulate ring, 2 ranks, 1 levels",
        "simulate double-ring, 4 ranks, 2 levels",
    ]


def test_a_space_is_timed_and_counted(tool):
    figures = tool.space(ranks=2, machine="h200-2x1")
    assert len(figures) == 4
    for name in figures:
        assert int(re.search(r", 2 ranks: (\d+) schedules$", name).group(1)) > 0


def test_a_space_ends_with_the_first_schedule_that_is_refused(tool, monkeypatch):
    def refuse(candidate, topology):
        raise mc.CompileError("needs rule R6")

    monkeypatch.setattr("mercury.tuner.lower.lower", refuse)
    with pytest.raises(SystemExit, match=r"refused: parallelize\(.*\)\nneeds rule R6"):
        tool.space(ranks=2, machine="h200-2x1")
