"""What sessions and plans on GPUs refuse, without a GPU."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import mercury as mc
import numpy as np
import pytest
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


def test_a_closed_session_runs_nothing() -> None:
    with mc.cuda.Session(mc.Mesh(gpu=1)) as session:
        pass
    with pytest.raises(mc.RunError, match="the session is closed"):
        session.synchronize()


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
