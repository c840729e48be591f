"""The driver of all that many GPUs are asked: its parts, and how one is stopped."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from mercury.bench import MANY_GPUS
from mercury.cli.tune import tune

sys.path.insert(0, str(Path(__file__).parents[1] / "Gpu"))
import many_ranks


def test_every_workload_and_mesh_has_its_part(tmp_path):
    parts = {part.name: part for part in many_ranks.parts(8, tmp_path)}
    correct = {name.removeprefix("correct-") for name in parts if name.startswith("correct-")}
    assert correct == {"8", "2x4", "4x2", "3", "4", "5", "7"}
    assert {f"tune-{workload}" for workload in MANY_GPUS} <= set(parts)
    assert set(MANY_GPUS) <= set(parts["operators"].command)
    assert parts["correct-7"].line()[-1] == "100"
    assert {part.ranks for part in parts.values()} == {3, 4, 5, 7, 8}
    assert [p.name for p in many_ranks.parts(4, tmp_path) if p.name.startswith("correct-")] == [
        "correct-4",
        "correct-2x2",
        "correct-2",
        "correct-3",
    ]


@pytest.mark.parametrize(
    "workload",
    ["attention-1x4x32-causal-gqa2", "attention-1x4x32-full-bwd", "gemm-rs-64x64x64"],
)
def test_a_search_has_the_boundary_of_the_operators(workload, monkeypatch, tmp_path):
    monkeypatch.setenv("MERCURY_CACHE_DIR", str(tmp_path))
    settings = ["--topology", "h200-2x1", "--time-limit", "5s", "--top", "1"]
    found = CliRunner().invoke(tune, [*many_ranks.searched(workload), *settings])
    assert found.exit_code == 0, found.output
    assert "chosen" in found.output


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('well')", "done"),
        ("raise SystemExit(3)", "failed with 3"),
        ("import time; print('long', flush=True); time.sleep(60)", "stopped"),
    ],
)
def test_only_what_ends_well_is_done(tmp_path, code, said):
    part = SimpleNamespace(name="some", line=lambda: [sys.executable, "-c", code])
    assert many_ranks.run(part, tmp_path, 3.0) == said
    assert (tmp_path / "some.done").exists() == (said == "done")
    assert (tmp_path / "some.log").read_text().startswith(f"$ {sys.executable} -c ")
