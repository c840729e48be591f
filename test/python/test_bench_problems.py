"""What is right on a workload, and the floor: on a CPU, where there is PyTorch."""

import contextlib
import importlib.util
import math
import sys
import time
from types import ModuleType, SimpleNamespace

import mercury as mc
import pytest
from mercury import reference
from mercury.bench import cudnn, floor, parse_workload
from mercury.bench.errors import AbsentError, BenchError
from mercury.bench.measure import Settings
from mercury.bench.operators import Request, measure_operators
from mercury.bench.ours import OwnPlan, candidate, plans_of
from mercury.bench.peers import peers_of, usp
from mercury.bench.problems import make_problem
from mercury.bench.record import read_records
from mercury.bench.shards import block, zigzag
from mercury.bench.sweep import Limits
from mercury.bench.tuning import seconds_of

torch = pytest.importorskip("torch")


class OnCpu:
    """One rank, or one of several of which the others are not there."""

    torch, device, name = torch, "cpu", "a CPU"

    def __init__(self, rank=0, size=1):
        self.rank, self.size, self.forgot = rank, size, 0

    def maximum(self, value):
        return math.inf if math.isnan(value) else value

    def agree(self, message):
        return message

    def seconds(self):
        return time.perf_counter()

    def milliseconds(self, work, times):
        begin = time.perf_counter()
        for _ in range(times):
            work()
        return 1000 * (time.perf_counter() - begin) / times

    def capture(self, work):
        outputs = work()

        def replay():
            for name, made in work().items():
                outputs[name].copy_(made)

        return replay, outputs

    def synchronize(self):
        pass

    def forget(self):
        self.forgot += 1

    def versions(self):
        return {"torch": str(torch.__version__)}


def plain(torch, q, k, v, *, causal=False):
    """Attention in float64, rounded: what cuDNN is to give."""
    mask = "causal" if causal else "full"
    o, lse = reference.attention(*(x.double().numpy() for x in (q, k, v)), mask=mask)
    return torch.from_numpy(o).to(q.dtype), torch.from_numpy(lse).float()


def plain_backward(torch, grad_o, q, k, v, o, lse, *, causal=False):
    made = reference.attention_backward(
        *(x.double().numpy() for x in (q, k, v, grad_o)),
        o=o.double().numpy(),
        lse=lse.double().numpy(),
        mask="causal" if causal else "full",
    )
    return tuple(torch.from_numpy(x).to(q.dtype) for x in made)


@pytest.fixture(autouse=True)
def _no_cudnn(monkeypatch):
    monkeypatch.setattr(cudnn, "attention", plain)
    monkeypatch.setattr(cudnn, "attention_backward", plain_backward)


WORKLOADS = [
    "attention-2x4x24-full",
    "attention-1x4x24-causal-gqa2",
    "attention-2x4x24-full-bwd",
    "attention-1x4x24-causal-gqa2-bwd",
    "ag-gemm-16x24x32",
    "gemm-rs-16x24x32",
]


@pytest.mark.parametrize("name", WORKLOADS)
def test_samples_tell_right_from_wrong(name):
    on = OnCpu()
    problem = make_problem(parse_workload(name), on)
    ready = floor.prepare(problem, on)
    results = dict(ready.run())
    assert set(results) == set(problem.outputs)
    assert problem.error(results, ready.held) < 5e-3
    for output, right in results.items():
        for wrong, least in ((right * 0, 0.99), (right * 1.1, 0.09), (right * torch.nan, 1e9)):
            assert problem.error({**results, output: wrong}, ready.held) > least
        with pytest.raises(ValueError, match=f"{output} has shape"):
            problem.error({output: right[:, :1]}, ready.held)


def test_a_mask_that_is_ignored_is_seen():
    problem = make_problem(parse_workload("attention-1x4x64-causal"), OnCpu())
    o, lse = plain(torch, *(problem.whole[name] for name in "QKV"), causal=False)
    held = {name: problem.held(name) for name in ("O", "LSE")}
    assert problem.error({"O": o, "LSE": lse}, held) > 0.1


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("size", [1, 2])
def test_floors_of_all_ranks_share_the_work(name, size):
    workload, done = parse_workload(name), 0
    for rank in range(size):
        on = OnCpu(rank, size)
        problem = make_problem(workload, on)
        ready = floor.prepare(problem, on)
        results, held = floor.one_device(problem, ready, on)
        assert problem.error(results, held) < 5e-3
        first = problem.outputs[0]
        assert list(results[first].shape) == [len(index) for index in held[first]]
        done += results[first].numel()
        if name == "gemm-rs-16x24x32" and size > 1:  # a part of the sum is all of C
            assert list(ready.run()["C"].shape) == [16, 32]

    whole = 16 * 32 if "gemm" in name else problem.whole["Q"].numel()
    assert done == whole


def test_what_ranks_cannot_share_is_refused():
    with pytest.raises(BenchError, match="3 ranks and a size of 16"):
        make_problem(parse_workload("ag-gemm-16x24x32"), OnCpu(0, 3))
    on = OnCpu(0, 4)
    problem = make_problem(parse_workload("attention-1x4x24-causal-gqa2"), on)
    with pytest.raises(BenchError, match="4 ranks do not divide 2 key heads"):
        floor.prepare(problem, on)


@pytest.mark.parametrize("name", WORKLOADS)
def test_peers_say_why_they_are_absent(name):
    on = OnCpu()
    workload = parse_workload(name)
    problem = make_problem(workload, on)
    peers = peers_of(workload, 2)
    assert len({peer.name for peer in peers}) == len(peers) >= 2
    if importlib.util.find_spec("mercury._mlir") is not None:
        ours = {own.name for own in plans_of(workload, mc.Mesh(gpu=2), wide=True)}
        assert not ours & {peer.name for peer in peers}
    for peer in peers:
        with pytest.raises(AbsentError, match="needs 2 ranks or more, there is 1"):
            peer.prepare(problem, on)


def test_usp_is_measured_in_every_split():
    names = [peer.name for peer in usp.peers(8)]
    assert names == ["USP ring", "USP 2 heads x 4 ring", "USP 4 heads x 2 ring", "USP Ulysses"]


@pytest.mark.parametrize(("ulysses", "ring"), [(1, 6), (2, 3), (6, 1)])
def test_ranks_that_share_heads_hold_the_rows_of_their_ring(ulysses, ring):
    for mirrored, cut in ((True, zigzag), (False, block)):
        own = [usp.rows_of(48, ulysses, ring, r, mirrored=mirrored) for r in range(6)]
        for around in range(ring):
            shared = own[around * ulysses : (around + 1) * ulysses]
            assert [row for rows in shared for row in rows] == list(cut(48, ring, around))
            assert {len(rows) for rows in shared} == {8}


def run_embedded(own, monkeypatch, fail=()):
    """Let a plan for GPUs be one on embedded ranks, whose other ranks are not measured."""
    log, module = [], ModuleType("mercury.cuda")

    class Session:
        def __init__(self, mesh, deadline_ms):
            self.mesh = mesh

        def __enter__(self):
            log.append("open")
            return self

        def synchronize(self):
            log.append("synchronize")

        def __exit__(self, *_):
            log.append("close")

    def bind(session, **tensors):
        def call():
            log.append("run")
            if "run" in fail:
                raise RuntimeError("no such kernel")
            tensors["C"].copy_(tensors["A"] @ tensors["B"])

        call.capture = lambda: call
        return call

    plan = own.schedule.compile()
    plan.bind = bind
    module.Session = Session
    monkeypatch.setitem(sys.modules, "mercury.cuda", module)
    schedule = SimpleNamespace(compile=lambda target: plan)
    return candidate(OwnPlan(name="p", schedule=schedule)), log


@pytest.mark.parametrize("rank", [0, 1])
def test_a_plan_of_ours_gets_its_own_shards_and_fills_its_outputs(rank, monkeypatch):
    pytest.importorskip("mercury._mlir")
    workload = parse_workload("ag-gemm-16x24x32")
    schedule = mc.Schedule(mc.programs.matmul(m=16, n=32, depth=24), mc.Mesh(gpu=2))
    made, log = run_embedded(
        SimpleNamespace(schedule=schedule.parallelize("j", "gpu")), monkeypatch
    )
    problem = make_problem(workload, OnCpu(rank, 2))
    ready = made.prepare(problem, problem.on)
    for output in ready.run().values():
        output.fill_(torch.nan)
    ready.graph()
    results = ready.run()
    assert list(results["C"].shape) == [16, 16]
    assert list(ready.held["C"][1]) == list(range(16 * rank, 16 * rank + 16))
    assert problem.error(results, ready.held) < 5e-3
    assert log.count("close") == 0
    ready.close()
    assert log[-1] == "close"


def test_a_plan_that_fails_closes_its_session(monkeypatch):
    pytest.importorskip("mercury._mlir")
    schedule = mc.Schedule(mc.programs.matmul(m=16, n=32, depth=24), mc.Mesh(gpu=2))
    made, log = run_embedded(
        SimpleNamespace(schedule=schedule.parallelize("j", "gpu")), monkeypatch, fail=["run"]
    )
    problem = make_problem(parse_workload("ag-gemm-16x24x32"), OnCpu(0, 2))
    with pytest.raises(RuntimeError, match="no such kernel"):
        made.prepare(problem, problem.on)
    assert log == ["open", "run", "close"]


def test_a_list_of_workloads_is_measured_written_and_gone_on_with(tmp_path, capsys):
    path, on = tmp_path / "results.json", OnCpu()

    def measure(*workloads, resume=False):
        request = Request(workloads=workloads, ours=False, file=path, resume=resume)
        settings = Settings(rounds=5, burst_ms=0.5)
        return measure_operators(on, request, settings, Limits(seconds=20))

    measure("ag-gemm-16x24x32", "attention-1x4x24-causal")
    made = read_records(path)
    assert [record.workload for record in made] == [
        "ag-gemm-16x24x32",
        "attention-1x4x24-causal",
    ]
    assert all(record.floor_ms > 0 and record.rounds == 5 for record in made)
    assert made[0].peers["symm_mem"].absent == "it needs 2 ranks or more, there is 1"
    assert on.forgot == 2
    monster = "attention-1x3x24-full-gqa1"
    measure("ag-gemm-16x24x32", "gemm-rs-16x24x32", monster, resume=True)
    again = read_records(path)
    assert again[:2] == made
    assert [record.workload for record in again[2:]] == ["gemm-rs-16x24x32", monster]
    assert "ag-gemm-16x24x32: measured already" in capsys.readouterr().out


def test_a_workload_that_fails_is_told_and_the_next_goes_on(tmp_path, capsys):
    request = Request(workloads=("gemm-rs-5x5x5", "gemm-rs-16x24x32"), ours=False)
    made = measure_operators(OnCpu(0, 2), request, Settings(burst_ms=0.5), Limits())
    assert [record.workload for record in made] == ["gemm-rs-16x24x32"]
    assert "gemm-rs-5x5x5: left out: gemm-rs-5x5x5 is measured on ranks that divide it" in (
        capsys.readouterr().out
    )


def test_schedules_are_timed_for_a_search_and_failures_are_told(monkeypatch):
    pytest.importorskip("mercury._mlir")
    module = ModuleType("mercury.cuda")
    module.Session = lambda mesh, deadline_ms: contextlib.nullcontext(
        SimpleNamespace(synchronize=lambda: None)
    )
    monkeypatch.setitem(sys.modules, "mercury.cuda", module)
    program = mc.programs.matmul(m=16, n=32, depth=24)

    def schedule(work):
        plan = mc.Schedule(program, mc.Mesh(gpu=1)).parallelize("i", "gpu").compile()

        def bind(session, **tensors):
            call = SimpleNamespace(run=lambda: work(**tensors))
            made = type("Call", (), {"__call__": lambda _: call.run()})()
            made.capture = lambda: made
            return made

        plan.bind = bind
        return SimpleNamespace(program=program, compile=lambda target: plan)

    def right(A, B, C):  # noqa: N803 (names of buffers)
        C.copy_(A @ B)

    def slow(A, B, C):  # noqa: N803
        time.sleep(0.01)
        C.copy_(A @ B)

    def half(A, B, C):  # noqa: N803
        C[:8] = A[:8] @ B

    found = seconds_of(
        OnCpu(),
        [schedule(right), schedule(slow), schedule(half)],
        Settings(rounds=5, burst_ms=0.1, slow=1e9),
    )
    assert 0 < found[0] < found[1]
    assert found[1] >= 0.01
    assert found[2] == ("BenchError: 256 elements of 'C' are not written, or not numbers")
    assert seconds_of(OnCpu(), [schedule(half)]) == found[2:]
