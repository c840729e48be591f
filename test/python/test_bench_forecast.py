"""Predictions of workloads on machines that need not be there."""

import json

import mercury as mc
import pytest
from click.testing import CliRunner
from mercury.bench.errors import BenchError
from mercury.bench.forecast import forecast, forecast_table, share_of
from mercury.bench.ours import plans_of
from mercury.bench.workload import parse_workload
from mercury.cli.bench import bench
from mercury.topology import TopologyError, load


def test_more_ranks_are_put_on_a_host_of_the_same_kind():
    pair = load("h200-2x1")
    eight = pair.with_ranks(8)
    assert (eight.size, eight.machine) == (8, pair.machine)
    assert eight.links[-1].curve("p2p") == pair.links[-1].curve("p2p")
    assert load("h200-4x2").with_ranks(16).mesh == mc.Mesh(node=2, gpu=8)
    for ranks in (7, 0):
        with pytest.raises(
            TopologyError, match=f"has 2 nodes, which cannot share {ranks} ranks"
        ):
            load("h200-4x2").with_ranks(ranks)


@pytest.mark.parametrize(
    ("workload", "ranks", "flops_of"),
    [
        ("attention-1x8x64-full", 4, "rows"),
        ("attention-1x8x64-causal-gqa4", 4, "heads"),
        ("attention-1x8x64-full-bwd", 4, "heads"),
        ("ag-gemm-64x32x96", 4, "columns"),
        ("gemm-rs-64x32x96", 4, "depth"),
    ],
)
def test_the_floor_is_an_equal_share_of_the_work(workload, ranks, flops_of):
    whole, share = (share_of(parse_workload(workload), n) for n in (1, ranks))
    sizes, fewer = ({axis.name: axis.extent for axis in each.axes} for each in (whole, share))
    cut = {"rows": {"sq"}, "heads": {"h"}, "columns": {"j"}, "depth": {"k"}}[flops_of]
    for name, size in sizes.items():
        assert fewer[name] == (size // ranks if name in cut else size), name


def test_shares_that_differ_have_no_floor():
    with pytest.raises(BenchError, match="3 ranks do not divide 64 rows"):
        share_of(parse_workload("attention-1x8x64-full"), 3)
    with pytest.raises(BenchError, match="8 ranks do not divide 4 key heads"):
        share_of(parse_workload("attention-1x8x64-causal-gqa4"), 8)


def test_methods_of_two_levels_are_given_every_split():
    workload = parse_workload("attention-1x8x1024-full")
    meshes = {own.name: own.schedule.mesh for own in plans_of(workload, mc.Mesh(gpu=8))}
    assert meshes["usp"] == mc.Mesh(gpu0=4, gpu1=2)
    assert meshes["usp 2x4"] == mc.Mesh(gpu0=2, gpu1=4)
    assert meshes["ring"] == mc.Mesh(gpu=8)
    assert "ring 2x4" not in meshes


def test_the_command_predicts_before_anything_is_measured(tmp_path):
    file = tmp_path / "forecast.json"
    workload = "gemm-rs-512x256x1024"
    settings = ["--topology", "h200-2x1", "--mesh", "gpu=4", "--json", str(file)]
    run = CliRunner().invoke(bench, ["forecast", workload, *settings])
    assert run.exit_code == 0, run.output
    told = json.loads(file.read_text())
    assert len({each["name"] for each in told}) == len(told) > 3
    assert {each["ranks"] for each in told} == {4}
    machine = load("h200-2x1").with_ranks(4)
    found = list(forecast([workload], mc.Mesh(gpu=4), machine))
    assert [each["predicted_ms"] for each in told] == pytest.approx(
        [each.predicted_ms for each in found], rel=1e-3
    )
    best = min(found, key=lambda each: each.predicted_ms)
    assert all(each.predicted_ms > each.floor_ms > 0 for each in found)
    # Each rank holds at least its parts of A, B and C.
    least = 2 * (512 * 1024 + 1024 * 256 + 512 * 256) // 4
    assert all(each.peak_bytes >= least for each in found)
    shown, every = forecast_table(found), forecast_table(found, every=True)
    assert shown in run.output
    assert len(shown.splitlines()) == 3
    assert f"| {best.name} |" in shown
    assert len(every.splitlines()) == 2 + len(found)


def test_a_workload_that_is_not_one_is_refused():
    run = CliRunner().invoke(bench, ["forecast", "attention", "--topology", "h200-2x1"])
    assert run.exit_code == 1
    assert "attention" in run.output
