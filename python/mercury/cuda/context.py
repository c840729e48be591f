"""One context of the runtime: arenas, lanes and communicators on this rank's GPU."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..dsl.mesh import Mesh
from ..errors import RunError
from ..libraries import ABI_VERSION, find_nccl
from . import native
from .launch import DeviceKernel
from .table import DeviceTable
from .tensors import loaded_torch

__all__ = ["Context"]


class Context:
    """A context, which every rank of the mesh opens together.

    Parameters
    ----------
    mesh
        With the levels that the plan names.
    rank, device
        This rank, and its GPU.
    rendezvous
        A file that no other context uses.
    local_bytes, symmetric_bytes, deadline_ms
        Of the runtime's job; peers map the symmetric arena alone.
    groups
        The levels of each group that plans name, and whether its ranks send messages, for
        which it has a communicator.
    puts
        The group whose ranks put into each other's symmetric arena; empty if none.
    local_levels
        For each level, whether its groups are of one host.
    communicators
        Of groups, an ``ncclComm_t`` that the caller keeps. Others are made.
    kernels
        The user's own, by name.

    Raises
    ------
    RunError
        When it cannot be opened; every rank of the host is told why.
    """

    def __init__(
        self,
        *,
        mesh: Mesh,
        rank: int,
        device: int,
        rendezvous: str,
        local_bytes: int,
        symmetric_bytes: int,
        deadline_ms: int,
        groups: Mapping[tuple[str, ...], bool],
        puts: tuple[str, ...],
        local_levels: Sequence[bool],
        communicators: Mapping[tuple[str, ...], int],
        kernels: Mapping[str, DeviceKernel],
    ) -> None:
        self._library = native.library()
        self.mesh, self.rank, self.device = mesh, rank, device
        self.local_bytes, self.symmetric_bytes = local_bytes, symmetric_bytes
        self.groups, self.puts = dict(groups), puts
        self._handle = ctypes.c_void_p()
        self._graphs: set[int] = set()
        self._pool: Any = None
        self._table = DeviceTable(kernels, device, self._stream)
        # What the job points to must live as long as the call; the table longer.
        sizes = [size for _, size in mesh.levels]
        table = [
            native.Group(
                group=native.group_number(mesh, group),
                sends=sends,
                puts=group == puts,
                communicator=communicators.get(group),
            )
            for group, sends in groups.items()
        ]
        job = native.Job(
            abi_version=ABI_VERSION,
            number_of_levels=len(sizes),
            level_sizes=(ctypes.c_int64 * len(sizes))(*sizes),
            level_names=native.texts(list(mesh.names)),
            level_is_local=(ctypes.c_int32 * len(sizes))(*local_levels),
            rank=rank,
            device=device,
            rendezvous=rendezvous.encode(),
            local_bytes=local_bytes,
            symmetric_bytes=symmetric_bytes,
            deadline_ms=deadline_ms,
            number_of_groups=len(table),
            groups=(native.Group * len(table))(*table),
            kernels=self._table.address,
            number_of_kernels=len(self._table),
            nccl_library=find_nccl()[0].encode() if any(groups.values()) else None,
        )
        with self._torch_device():
            self._check(
                self._library.mercury_rt_cuda_open(
                    ctypes.byref(job), ctypes.byref(self._handle)
                )
            )

    def _stream(self) -> int:
        return self._library.mercury_rt_cuda_stream(self._handle) or 0

    def _check(self, status: int) -> None:
        if status != 0:
            cause = getattr(self._table, "cause", None)
            raise RunError(native.last_error()) from cause

    # -- runs -----------------------------------------------------------------

    def run(
        self,
        entry: int,
        buffers: ctypes.Array[ctypes.c_void_p],
        stream: int,
        *,
        calls_back: bool,
    ) -> None:
        """Put a run into the lanes, after what ``stream`` holds."""
        with self._torch_device(), self._memory(calls_back):
            self._check(self._library.mercury_rt_cuda_run(self._handle, entry, buffers, stream))

    def capture(
        self, entry: int, buffers: ctypes.Array[ctypes.c_void_p], *, calls_back: bool
    ) -> int:
        """Capture a run, and give the graph."""
        graph = ctypes.c_void_p()
        with self._torch_device(), self._memory(calls_back):
            self._check(
                self._library.mercury_rt_cuda_capture(
                    self._handle, entry, buffers, ctypes.byref(graph)
                )
            )
        assert graph.value is not None
        self._graphs.add(graph.value)
        return graph.value

    def replay(self, graph: int, stream: int) -> None:
        """Put a captured run into the lanes."""
        self._check(self._library.mercury_rt_cuda_replay(self._handle, graph, stream))

    def free(self, graph: int) -> None:
        """Free a graph, once its last replay is over."""
        if graph in self._graphs:
            self.synchronize()
            self._graphs.remove(graph)
            self._library.mercury_rt_cuda_graph_free(self._handle, graph)

    def synchronize(self) -> None:
        """Wait for every run, at most the deadline for one."""
        self._check(self._library.mercury_rt_cuda_synchronize(self._handle))

    def failure(self) -> str:
        """Wait for the runs; give what failed, or nothing."""
        try:
            self.synchronize()
        except RunError as error:
            return error.message
        return ""

    def close(self) -> None:
        """Free what the context holds, once the runs are over."""
        for graph in self._graphs:
            self._library.mercury_rt_cuda_graph_free(self._handle, graph)
        self._graphs.clear()
        self._library.mercury_rt_cuda_close(self._handle)
        self._handle = ctypes.c_void_p()
        self._pool = None  # only now is nobody left who reads it

    # -- PyTorch --------------------------------------------------------------

    def _torch_device(self) -> contextlib.AbstractContextManager[Any]:
        torch = loaded_torch()
        found: contextlib.AbstractContextManager[Any] = (
            torch.cuda.device(self.device) if torch else contextlib.nullcontext()
        )
        return found

    def _memory(self, calls_back: bool) -> contextlib.AbstractContextManager[Any]:
        """Let kernels take memory that lives as long as the context, as its graphs do."""
        torch = loaded_torch() if calls_back else None
        if torch is None or not hasattr(torch.cuda, "use_mem_pool"):
            return contextlib.nullcontext()
        if self._pool is None:
            self._pool = torch.cuda.MemPool()
        found: contextlib.AbstractContextManager[Any] = torch.cuda.use_mem_pool(self._pool)
        return found


def uses_expandable_segments() -> bool:
    """Say whether PyTorch's memory is of a kind that no other process can map."""
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    return any("expandable_segments:True" in os.environ.get(name, "") for name in names)
