"""Memory of other processes on this host, copied by the copy engines."""

from __future__ import annotations

import ctypes
import socket
from typing import Any

from .cuda import Cuda
from .errors import AbsentError

__all__ = ["PeerMemory"]

_LAZY_PEER_ACCESS = 1


class PeerMemory:
    """Opens tensors of the other ranks of a group, by IPC handles of their allocations.

    Raises
    ------
    AbsentError
        When the ranks are not of one host.
    """

    def __init__(self, on: Cuda, group: Any, ranks: int) -> None:
        self._on, self._group, self._ranks = on, group, ranks
        if len(set(self._all(socket.gethostname()))) > 1:
            raise AbsentError("the ranks are not of one host, whose memory could be mapped")
        self._driver = ctypes.CDLL("libcuda.so.1")

    def _all(self, value: Any) -> list[Any]:
        values: list[Any] = [None] * self._ranks
        self._on.dist.all_gather_object(values, value, group=self._group)
        return values

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._driver, name)(*arguments)
        if status:
            raise AbsentError(f"{name} failed with status {status} of the CUDA driver")

    def addresses(self, tensor: Any) -> list[int]:
        """Give the address of every group rank's tensor, in this process."""
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        own = ctypes.c_uint64(tensor.data_ptr())
        self._call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), own)
        handle = (ctypes.c_char * 64)()
        self._call("cuIpcGetMemHandle", ctypes.byref(handle), base)
        opened = []
        own_rank = self._on.dist.get_rank(self._group)
        for rank, (other, offset) in enumerate(self._all((handle.raw, own.value - base.value))):
            if rank == own_rank:
                opened.append(own.value)
                continue
            mapped = ctypes.c_uint64()
            # By value: 64 bytes.
            self._call(
                "cuIpcOpenMemHandle_v2",
                ctypes.byref(mapped),
                _Handle.from_buffer_copy(other),
                ctypes.c_uint(_LAZY_PEER_ACCESS),
            )
            opened.append(mapped.value + offset)
        return opened

    def copy(self, target: int, source: int, size: int) -> None:
        """Put a copy into the current stream."""
        stream = ctypes.c_void_p(self._on.torch.cuda.current_stream().cuda_stream)
        self._call(
            "cuMemcpyAsync",
            ctypes.c_uint64(target),
            ctypes.c_uint64(source),
            ctypes.c_size_t(size),
            stream,
        )


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * 64),)
