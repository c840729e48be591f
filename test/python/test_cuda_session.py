"""What sessions and plans on GPUs refuse, without a GPU."""

from __future__ import annotations

import sys
import threading
import types
from pathlib import Path
from typing import Any

import mercury as mc
import numpy as np
import pytest
from mercury.cuda.communicators import make_communicator
from mercury.cuda.kernels import registry
from mercury.cuda.native import bus_address
from mercury.cuda.store import FolderStore, Launch, agree, find_launch
from mercury.cuda.tensors import check_apart, shard_of

LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "MERCURY_STORE")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LAUNCHER:
        monkeypatch.delenv(name, raising=False)


def test_a_mesh_of_one_rank_needs_no_launcher() -> None:
    assert find_launch(1, 1000) == Launch(rank=0, size=1, local_rank=0, store=None)


def test_without_a_launcher_the_remedy_is_named() -> None:
    with pytest.raises(mc.RunError, match="RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT") as told:
        mc.cuda.Session(mc.Mesh(gpu=4))
    assert "torchrun --nproc-per-node 4" in str(told.value)


def test_another_number_of_processes_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "3", "MERCURY_STORE": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(mc.RunError, match="the mesh has 2 ranks and this is process 1 of 3"):
        find_launch(2, 1000)


def launch(rank: int, size: int, folder: Path) -> Launch:
    return Launch(rank=rank, size=size, local_rank=rank, store=FolderStore(folder))


def test_every_rank_hears_every_other(tmp_path: Path) -> None:
    heard: dict[int, list[str]] = {}

    def rank(number: int) -> None:
        heard[number] = agree(launch(number, 3, tmp_path), "names/1", f"r{number}", 5000)

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {number: ["r0", "r1", "r2"] for number in range(3)}


def test_silent_ranks_are_named_within_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(mc.RunError, match="rank 0 waited 50 ms for ranks 1, 2, 3 at 'plan'"):
        agree(launch(0, 4, tmp_path), "plan", "x", 50)


class Array:
    """What a GPU library other than PyTorch hands over."""

    def __init__(self, shape: tuple[int, ...], kind: str, address: int, strides: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": kind,
            "data": (address, False),
            "strides": strides,
            "version": 3,
        }


def buffer() -> Any:
    return mc.programs.matmul(m=4, n=6, depth=5, dtype="bf16").inputs[0]


def test_an_array_of_another_library_is_used_where_it_lies() -> None:
    found = shard_of(buffer(), Array((4, 5), "<u2", 4096, None), (4, 5), 0, 0)
    assert (found.address, found.bytes) == (4096, 40)
    found = shard_of(buffer(), Array((4, 5), "<i2", 4096, (10, 2)), (4, 5), 0, 0)
    assert found.address == 4096


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (np.zeros((4, 5)), "got ndarray; copy it to the GPU first"),
        ([1, 2], "got list"),
        (Array((5, 4), "<u2", 64, None), r"got one of shape \(5, 4\); plan.layout\('A'\)"),
        (Array((4, 5), "<f8", 64, None), "got one of float64"),
        (Array((4, 5), "<u2", 64, (2, 8)), "got one not contiguous"),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(tensor: Any, message: str) -> None:
    wanted = (
        r"the shard of 'A' on rank 3 must be a contiguous CUDA tensor of shape \(4, 5\) and "
    )
    with pytest.raises(mc.RunError, match=wanted + "bfloat16 on GPU 1, .*" + message):
        shard_of(buffer(), tensor, (4, 5), 3, 1)


def test_a_tensor_of_the_cpu_is_named() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(mc.RunError, match="got one on the CPU, of float32"):
        shard_of(buffer(), torch.zeros(4, 5), (4, 5), 0, 0)


def test_an_output_may_share_no_memory() -> None:
    shards = {
        name: shard_of(buffer(), Array((4, 5), "<u2", address, None), (4, 5), 0, 0)
        for name, address in (("A", 1000), ("B", 1020), ("C", 1060))
    }
    check_apart(shards, {"C"})  # inputs may share
    with pytest.raises(mc.RunError, match="the memory of 'A' overlaps that of 'B'"):
        check_apart(shards, {"B"})


@pytest.mark.parametrize(
    ("hosts", "local"),
    [
        ("aaaa", {"node": True, "gpu": True}),
        ("aabb", {"node": False, "gpu": True}),
        ("abab", {"node": True, "gpu": False}),
        ("aaab", {"node": False, "gpu": False}),
    ],
)
def test_a_level_is_local_when_each_group_is_of_one_host(
    hosts: str, local: dict[str, bool]
) -> None:
    mesh = mc.Mesh(node=2, gpu=2)
    session = mc.cuda.Session(mc.Mesh(gpu=1))
    session._hosts = list(hosts)
    assert {level: session._is_local(mesh, level) for level in mesh} == local


@pytest.mark.parametrize(
    ("rank", "group", "members"),
    [
        (5, ("gpu",), [4, 5]),
        (5, ("rack",), [1, 5]),
        (5, ("rack", "gpu"), [0, 1, 4, 5]),
        (6, ("rack", "node"), [0, 2, 4, 6]),
        (3, ("rack", "node", "gpu"), list(range(8))),
    ],
)
def test_the_first_of_a_group_names_the_communicator_of_all(
    rank: int, group: tuple[str, ...], members: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, int, bytes]] = []
    nccl = types.SimpleNamespace(
        get_unique_id=lambda: bytes([255]),
        UniqueId=types.SimpleNamespace(from_bytes=lambda given: given),
        Communicator=types.SimpleNamespace(init=lambda *given: made.append(given)),
    )
    monkeypatch.setitem(sys.modules, "nccl", types.ModuleType("nccl"))
    monkeypatch.setitem(sys.modules, "nccl.core", nccl)

    def tell_all(what: str, own: str) -> list[str]:
        assert what == f"communicator of {','.join(group)}"
        assert own == ("ff" if rank == members[0] else "")
        return [bytes([other]).hex() for other in range(8)]

    make_communicator(mc.Mesh(rack=2, node=2, gpu=2), rank, group, tell_all)
    assert made == [(len(members), members.index(rank), bytes([members[0]]))]


def test_without_nccl4py_the_levels_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nccl.core", None)
    with pytest.raises(
        mc.RunError, match="ranks of levels 'node', 'gpu' are on several hosts"
    ) as told:
        make_communicator(mc.Mesh(node=2, gpu=2), 0, ("node", "gpu"), lambda *_: [])
    assert "Session(..., communicators={'node,gpu': ...})" in str(told.value)


def test_a_closed_session_runs_nothing() -> None:
    with mc.cuda.Session(mc.Mesh(gpu=1)) as session:
        pass
    with pytest.raises(mc.RunError, match="the session is closed"):
        session.synchronize()


@pytest.mark.parametrize("named", ["gpus", "", "node,", "node,node", "node, rack"])
def test_a_communicator_of_no_level_is_refused(named: str) -> None:
    with pytest.raises(mc.RunError, match=f"for '{named}', and .* are 'node', 'gpu'; name"):
        mc.cuda.Session(mc.Mesh(node=1, gpu=1), communicators={named: 1})


def test_communicators_are_found_by_their_levels() -> None:
    given = {"gpu": 7, "gpu, node": types.SimpleNamespace(ptr=8)}
    with mc.cuda.Session(mc.Mesh(node=1, gpu=1), communicators=given) as session:
        assert session._communicator(session.mesh, ("gpu",)) == 7
        assert session._communicator(session.mesh, ("node", "gpu")) == 8
        assert session._communicator(session.mesh, ("node",)) == 0


class Ends:
    """A context that cannot end before the messages of a communicator between hosts.

    Parameters
    ----------
    failure
        What its runs ended with.
    """

    def __init__(self, failure: str) -> None:
        self._failure = failure
        self.aborting, self.closed = threading.Event(), threading.Event()
        self.did: list[str] = []

    def failure(self) -> str:
        return self._failure

    def close(self) -> None:
        if self._failure:
            assert self.aborting.wait(10), "its messages are not ended"
        self.did.append("close")
        self.closed.set()

    def abort(self) -> None:  # of the communicator: waits for the context's graphs
        self.aborting.set()
        self.closed.wait()
        self.did.append("abort")

    def destroy(self) -> None:
        self.did.append("destroy")


def session_with(ends: Ends) -> mc.cuda.Session:
    session = mc.cuda.Session(mc.Mesh(gpu=1), deadline_ms=100)
    session._contexts.append(ends)
    session._own.append(ends)
    return session


def test_contexts_end_before_their_communicators() -> None:
    ends = Ends("")
    session_with(ends).close()
    assert ends.did == ["close", "destroy"]


def test_after_a_failure_messages_end_first() -> None:
    ends = Ends("a peer is gone")
    with pytest.raises(mc.RunError, match=r"^a peer is gone$"):
        session_with(ends).close()
    assert ends.did == ["close", "abort"]


def test_an_abort_that_never_returns_is_told() -> None:
    ends = Ends("a peer is gone")
    ends.closed.wait = threading.Event().wait  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="mine") as told, session_with(ends):
        raise ValueError("mine")
    assert ends.did == ["close"]
    (note,) = told.value.__notes__
    assert note.startswith("a peer is gone; NCCL did not abort 1 of 1 communicators between")


def test_a_machine_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERCURY_RT_CUDA_LIBRARY", "/nowhere/libcuda.so")
    schedule = mc.Schedule(mc.programs.matmul(m=4, n=4, depth=4), mc.Mesh(gpu=1))
    plan = schedule.compile(target="cuda")
    tensors = {
        b.name: Array(b.shape, "<u2", 4096 * (number + 1), None)
        for number, b in enumerate(plan.program.buffers)
    }
    with (
        mc.cuda.Session(plan.mesh) as session,
        pytest.raises(mc.RunError, match=r"cannot open '/nowhere/libcuda\.so'"),
    ):
        plan.bind(session, **tensors)


def test_a_gpu_that_does_not_tell_its_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERCURY_RT_CUDA_LIBRARY", "/nowhere/libcuda.so")
    with pytest.raises(mc.RunError, match="cannot ask GPU 3 for its address: cannot open"):
        bus_address(3)


def ring(program: mc.Program) -> mc.Schedule:
    return mc.Schedule(program, mc.Mesh(gpu=2)).parallelize("sq", "gpu").shift("sk", by="sq")


def test_a_plan_for_gpus_tells_what_it_does() -> None:
    schedule = ring(mc.programs.attention(h=2, sq=8, sk=8, d=8)).patch("*", "mine")
    plan = schedule.compile(target="cuda")
    assert plan.layout("Q").shape(1) == (1, 4, 2, 8)
    kinds = [event.kind for event in plan.events(rank=0)]
    # Attention of each part, and the merge of the second one into the first.
    assert kinds.count("launch") == 3
    assert (plan.sends, plan.reads) == (True, False)
    assert plan.digest == schedule.compile(target="cuda").digest
    other = ring(mc.programs.attention(h=2, sq=8, sk=8, d=8, mask="causal")).patch("*", "mine")
    assert plan.digest != other.compile(target="cuda").digest


def test_a_plan_names_its_groups() -> None:
    mesh, program = mc.Mesh(node=2, gpu=2), mc.programs.matmul(m=8, n=8, depth=8)

    def groups(name: str) -> dict[tuple[str, ...], bool]:
        schedule = mc.strategies.get(name).schedule(mesh, program).patch("*", "mine")
        return schedule.compile(target="cuda").groups

    assert groups("ag-gemm") == {("node", "gpu"): True}
    assert groups("async-tp") == {("node", "gpu"): False}
    assert groups("gemm-rs") == {("gpu",): True, ("node",): True}


def test_reads_of_a_peers_memory_need_no_communicator() -> None:
    program = mc.programs.matmul(m=8, n=8, depth=8)
    plan = mc.strategies.get("async-tp").schedule(mc.Mesh(gpu=2), program)
    compiled = plan.patch("*", "mine").compile(target="cuda")
    assert (compiled.sends, compiled.reads) == (False, True)


@pytest.mark.parametrize(
    ("dtype", "patch", "kernel"),
    [
        ("bf16", None, "cudnn.attention_fwd"),
        ("f16", None, "cudnn.attention_fwd"),
        ("bf16", "torch", "torch.attention_fwd"),
    ],
)
def test_libraries_are_chosen_where_the_schedule_is_silent(
    dtype: str, patch: str | None, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_has_torch", lambda: True)
    schedule = ring(mc.programs.attention(h=2, sq=8, sk=8, d=8, dtype=dtype))
    if patch is not None:
        schedule.patch("attention_fwd", patch)
    impl, _, name = kernel.partition(".")
    spmd = schedule.compile(target="cuda").spmd
    assert f'commir.launch "{name}"' in spmd
    assert f'impl("{impl}")' in spmd
    assert 'impl("cudnn")' not in schedule.ir()  # the schedule itself stays as it was


def test_without_pytorch_kernels_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_has_torch", lambda: False)
    schedule = mc.Schedule(mc.programs.matmul(m=8, n=8, depth=8), mc.Mesh(gpu=1))
    assert "impl(" not in schedule.compile(target="cuda").spmd
