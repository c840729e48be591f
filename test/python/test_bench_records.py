"""Benchmarks: records, tables, predictions and the command."""

import dataclasses
import json
import types

import mercury as mc
import pytest
from bench_by_clock import records
from click.testing import CliRunner
from mercury import bench
from mercury.bench import BenchError, Record, parse_workload
from mercury.bench.operators import agreement_lines
from mercury.bench.ours import plans_of
from mercury.bench.predict import agreement, rank_correlation, repeated_correlation
from mercury.bench.record import read_records, write_records
from mercury.bench.trace import summary
from mercury.cli.bench import bench as command
from mercury.cli.topology import topology

# --- Records and tables --------------------------------------------------------------------


def test_records_survive_a_file(tmp_path):
    path = tmp_path / "results.json"
    write_records(path, records())
    again = read_records(path)
    assert [record.to_json() for record in again] == [r.to_json() for r in records()]
    assert again[0].peers["USP"].absent == "yunchang is not there"
    content = json.loads(path.read_text())
    wanted = {"workload", "plan", "floor_ms", "ours_ms", "ratio_to_floor", "ratio_low"}
    wanted |= {"ratio_high", "best_peer", "best_peer_ms", "ratio_to_peer", "error", "versions"}
    assert wanted <= set(content[0])
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 3}, "there is no key 'speed'"),
        ({"floor_ms": "fast"}, "'floor_ms' must be float, got 'fast'"),
        ({"floor_ms": None}, "'floor_ms' must be float"),
        ({"chosen": 1}, "'chosen' must be bool"),
        ({"rounds": True}, "'rounds' must be int"),
        ({"workload": "matmul"}, "there is no workload 'matmul'"),
        ({"ours_ms": None}, "may only be null where 'failed' says why"),
        ({"peers": {"NCCL": {"time": 1}}}, "peer 'NCCL': there is no key 'time'"),
        ({"peers": []}, "'peers' must be an object"),
    ],
)
def test_a_record_that_is_none_is_refused(change, message):
    value = records()[0].to_json() | change
    with pytest.raises(BenchError, match=message):
        Record.from_json(value)


def test_files_that_hold_no_records_are_refused(tmp_path):
    path = tmp_path / "results.json"
    for content, message in (("{", "cannot be read"), ("{}", "a list of records, got dict")):
        path.write_text(content)
        with pytest.raises(BenchError, match=message):
            read_records(path)
    with pytest.raises(BenchError, match="key 'workload' is missing"):
        Record.from_json({})
    with pytest.raises(BenchError, match="cannot be written"):
        write_records(tmp_path / "none" / "results.json", [])


def test_the_table_shows_the_chosen_plan_its_goal_and_who_is_absent():
    made = records()
    printed = bench.table(made)
    assert "| gemm-rs-16384x8192x8192 | 1.000 | 1.050 | 1.050 [1.050, 1.050] |" in printed
    assert "| 1.06 reached | NCCL 1.400 | 0.750 | 1.0e-03 |" in printed
    assert "ring" not in printed
    every = bench.table(made, every=True)
    assert "| ring | 1.000 | 1.500 | 1.500 [1.500, 1.500] | 1.06 missed |" in every
    peers = bench.peers_table(made)
    assert "- gemm-rs-16384x8192x8192, USP: yunchang is not there" in peers
    alone = [dataclasses.replace(record, ranks=1) for record in made]
    assert "reached" not in bench.table(alone)


# --- Predictions ---------------------------------------------------------------------------


def test_rank_correlation_sees_order_only():
    assert rank_correlation([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # Ties share a rank: 1.5 1.5 3 against 1 2 3.
    assert rank_correlation([5, 5, 9], [1, 2, 3]) == pytest.approx(3**0.5 / 2)
    assert rank_correlation([1, 1], [1, 2]) is None
    with pytest.raises(BenchError, match="as many of both"):
        rank_correlation([1], [1])


def test_times_that_noise_mixes_up_have_no_certain_order():
    sure = [(float(n), n - 0.01, n + 0.01) for n in range(10)]
    assert repeated_correlation(sure) == 1
    noisy = [(float(n), n - 20.0, n + 20.0) for n in range(10)]
    assert -0.5 < repeated_correlation(noisy) < 0.6
    assert repeated_correlation(noisy) == repeated_correlation(noisy)


def test_regret_is_what_trusting_the_simulator_costs():
    predicted = {"a": 1.0, "b": 1.1, "c": 2.0, "not measured": 0.1}
    found = agreement(predicted, {"a": 1.2, "b": 1.0, "c": 2.5})
    assert (found.plans, found.first) == (3, "a")
    assert found.regret == pytest.approx(0.2)
    assert found.correlation == pytest.approx(0.5)
    assert found.off_by == pytest.approx(1 / 6)


def test_gradients_that_a_library_rounds_are_predicted():
    """The generated kernel of the CPU does not round; what is wrong otherwise raises."""
    program = mc.programs.attention_backward(h=4, sq=256, sk=256, d=16, dtype="bf16")
    boundary = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}}
    schedule = mc.Schedule(program, mc.Mesh(gpu=2), boundary)
    schedule.apply(
        "parallelize(sq, gpu); shift(sk, by=sq, reads=pull); defer(dQ, partial=bf16)"
    )
    with pytest.raises(mc.MercuryError, match="partial results of 'dQ' wait in 'bf16'"):
        schedule.compile()
    found = mc.simulate(schedule, "h200-2x1")
    assert 0 < found.time_s < 1
    assert "patch" not in schedule.recipe()
    with pytest.raises(mc.MercuryError, match="no topology"):
        mc.simulate(schedule, "h300")


def test_equal_predictions_have_no_order_to_agree_with():
    equal = agreement({"a": 1.0, "b": 1.0 + 1e-15}, {"a": 2.0, "b": 3.0})
    assert equal.correlation is None
    assert "not defined: all are predicted, or measured, equal" in equal.order
    assert agreement({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 3.0}).correlation is None
    assert "0.50" in agreement({"a": 1.0, "b": 1.1, "c": 2.0}, {"a": 2, "b": 1, "c": 3}).order
    assert repeated_correlation([(1.0, 1.0, 1.0), (1.0, 1.0, 1.0)]) is None
    made = [dataclasses.replace(record, predicted_ms=2.0) for record in records()]
    (line,) = agreement_lines(made)
    assert "2 plans, rank correlation not defined: " in line


def test_agreement_is_told_for_each_workload():
    made = [
        dataclasses.replace(record, predicted_ms=ms)
        for record, ms in zip(records(), (1.0, 1.4), strict=True)
    ]
    assert "| ring | 1.000 | 1.500 | 1.400 |" in bench.table(made, every=True)
    assert "predicted" not in bench.table(made)
    (line,) = agreement_lines(made)
    assert (
        "2 plans, rank correlation 1.00 (of measuring again 1.00), first choice 'pull' " in line
    )
    assert "+0.0% from the best" in line
    told = []
    assert agreement_lines(records(), told.append) == []
    assert "too few plans" in told[0]


def test_a_trace_is_told_in_the_order_of_its_starts():
    events = [
        {"cat": "kernel", "ts": 30.0, "dur": 5.0, "name": "merge", "tid": 7},
        {"cat": "gpu_memcpy", "ts": 10.0, "dur": 15.0, "name": "Memcpy PtoP", "tid": 9},
        {"cat": "cpu_op", "ts": 1.0, "dur": 1.0, "name": "host"},
    ]
    lines = summary({"traceEvents": events}).splitlines()
    assert [line.split()[0] for line in lines] == ["0.0", "20.0"]
    assert "merge" in lines[1]
    assert summary({}) == ""


# --- The command ---------------------------------------------------------------------------


def invoke(*arguments):
    return CliRunner().invoke(command, arguments)


def test_commands_explain_themselves():
    assert "torchrun --nproc-per-node 2 -m mercury bench operators" in invoke("--help").output
    for name in ("operators", "kernels", "links", "table", "predict"):
        assert invoke(name, "--help").exit_code == 0
    listed = invoke("operators", "--list").output
    assert "gemm-rs-4096x4096x14336  at most 1.25 x the floor" in listed


def test_the_table_command_prints_a_file(tmp_path):
    path = tmp_path / "results.json"
    write_records(path, records())
    assert "1.06 reached" in invoke("table", str(path)).output
    assert "ring" in invoke("table", str(path), "--all").output
    assert "yunchang is not there" in invoke("table", str(path), "--peers").output
    brief = invoke("table", str(path), "--brief").output
    assert "| gemm-rs-16384x8192x8192 | 1.050 | 1.06 reached | 0.750 | NCCL |" in brief
    both = invoke("table", str(path), "--brief", "--all")
    assert both.exit_code == 2
    assert "give one of them" in both.output
    missing = invoke("table", str(tmp_path / "none.json"))
    assert missing.exit_code == 1
    assert "results cannot be read" in missing.output


def test_plans_of_a_file_are_predicted_without_a_gpu(tmp_path, monkeypatch):
    times = {"deliver": 3.0, "gemm-rs": 4.5}

    def simulate(schedule, topology):
        ms = times["deliver" if "shift" in schedule.recipe() else "gemm-rs"]
        return types.SimpleNamespace(time_s=ms / 1000)

    monkeypatch.setattr(mc, "simulate", simulate)
    mesh, workload = mc.Mesh(gpu=2), "gemm-rs-16x16x16"
    plans = {p.name: p.recipe for p in plans_of(parse_workload(workload), mesh, wide=True)}
    first, _ = records()
    made = [
        dataclasses.replace(first, workload=workload, name=name, plan=recipe, ours_ms=ms)
        for name, recipe, ms in (
            ("deliver", plans["deliver"], 3.1),
            ("gemm-rs", plans["gemm-rs"], 4.0),
            ("old", "parallelize(i, gpu)", 5.0),
        )
    ]
    path = tmp_path / "results.json"
    write_records(path, made)
    done = invoke("predict", str(path), "--topology", "h200-2x1")
    assert done.exit_code == 0, done.output
    assert [record.predicted_ms for record in read_records(path)] == [3.0, 4.5, None]
    assert "this version has no plan 'old' like it" in done.output
    assert "2 plans, rank correlation 1.00, first" in done.output
    assert "first choice 'deliver'" in done.output
    assert "no topology" in invoke("predict", str(path), "--topology", "h300").output


def test_commands_refuse_what_they_cannot_do():
    wrong = invoke("operators", "matmul-3")
    assert wrong.exit_code == 1
    assert "there is no workload 'matmul-3'" in wrong.output
    assert "--resume needs --json FILE" in invoke("operators", "--resume").output
    assert invoke("operators", "--rounds", "0").exit_code == 2


def test_without_a_gpu_every_measurement_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "999")
    probe = CliRunner().invoke(topology, ["probe", str(tmp_path / "mine.toml")])
    for made in (invoke("operators"), invoke("kernels"), invoke("links"), probe):
        assert made.exit_code == 1
        assert "measuring needs" in made.output
        assert "torchrun --nproc-per-node GPUS -m mercury COMMAND" in made.output
