"""The C interface of the runtime's backend for GPUs, ``mercury-rt/cuda.h``."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

from ..dsl.mesh import Mesh
from ..errors import RunError
from ..libraries import open_runtime

__all__ = [
    "Group",
    "Job",
    "bus_address",
    "free_bytes",
    "group_number",
    "last_error",
    "library",
    "pointers",
    "texts",
]

Pointer = ctypes.c_void_p
_LEVELS = 1 << 62  # MERCURY_RT_LEVELS(0)


class Group(ctypes.Structure):
    """``mercury_rt_cuda_group``."""

    _fields_ = (
        ("group", ctypes.c_int64),
        ("sends", ctypes.c_int32),
        ("puts", ctypes.c_int32),
        ("communicator", ctypes.c_void_p),
    )


class Job(ctypes.Structure):
    """``mercury_rt_cuda_job``."""

    _fields_ = (
        ("abi_version", ctypes.c_int32),
        ("number_of_levels", ctypes.c_int64),
        ("level_sizes", ctypes.POINTER(ctypes.c_int64)),
        ("level_names", ctypes.POINTER(ctypes.c_char_p)),
        ("level_is_local", ctypes.POINTER(ctypes.c_int32)),
        ("rank", ctypes.c_int64),
        ("device", ctypes.c_int32),
        ("rendezvous", ctypes.c_char_p),
        ("local_bytes", ctypes.c_int64),
        ("symmetric_bytes", ctypes.c_int64),
        ("deadline_ms", ctypes.c_int64),
        ("number_of_groups", ctypes.c_int64),
        ("groups", ctypes.POINTER(Group)),
        ("kernels", ctypes.c_void_p),
        ("number_of_kernels", ctypes.c_int64),
        ("cuda_library", ctypes.c_char_p),
        ("nccl_library", ctypes.c_char_p),
    )


_SIGNATURES = {
    "mercury_rt_cuda_memory": (
        ctypes.c_int32,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_int64),
        ctypes.POINTER(ctypes.c_int64),
    ),
    "mercury_rt_cuda_address": (
        ctypes.c_int32,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int64,
    ),
    "mercury_rt_cuda_open": (ctypes.POINTER(Job), ctypes.POINTER(Pointer)),
    "mercury_rt_cuda_close": (Pointer,),
    "mercury_rt_cuda_stream": (Pointer,),
    "mercury_rt_cuda_run": (Pointer, Pointer, Pointer, Pointer),
    "mercury_rt_cuda_capture": (Pointer, Pointer, Pointer, ctypes.POINTER(Pointer)),
    "mercury_rt_cuda_replay": (Pointer, Pointer, Pointer),
    "mercury_rt_cuda_graph_free": (Pointer, Pointer),
    "mercury_rt_cuda_synchronize": (Pointer,),
}


@functools.cache
def library() -> ctypes.CDLL:
    """Open the runtime library, with the types of the calls above."""
    found = open_runtime()
    for name, arguments in _SIGNATURES.items():
        getattr(found, name).argtypes = arguments
    found.mercury_rt_cuda_stream.restype = Pointer
    found.mercury_rt_cuda_close.restype = None
    found.mercury_rt_cuda_graph_free.restype = None
    return found


def last_error() -> str:
    """Say why the last call of this thread failed."""
    return str(library().mercury_rt_last_error().decode(errors="replace"))


def free_bytes(device: int) -> int:
    """Ask the driver for the memory of a GPU that nobody holds.

    Raises
    ------
    RunError
        When there is no such GPU, or no driver.
    """
    free, total = ctypes.c_int64(), ctypes.c_int64()
    if library().mercury_rt_cuda_memory(device, None, ctypes.byref(free), ctypes.byref(total)):
        raise RunError(last_error())
    return free.value


def bus_address(device: int) -> str:
    """Ask the driver which GPU of the host it is, whatever this process calls it.

    Raises
    ------
    RunError
        When there is no such GPU, or no driver.
    """
    text = ctypes.create_string_buffer(32)
    if library().mercury_rt_cuda_address(device, None, text, len(text)):
        raise RunError(last_error())
    return text.value.decode()


def group_number(mesh: Mesh, group: Sequence[str]) -> int:
    """Name a group of levels as ``mercury-rt/runtime.h`` does."""
    return _LEVELS + sum(1 << mesh.names.index(level) for level in group)


def pointers(values: list[int | None]) -> ctypes.Array[ctypes.c_void_p]:
    """Give addresses as a C array, which is never of no entries."""
    return (ctypes.c_void_p * max(len(values), 1))(*values)


def texts(values: list[str]) -> ctypes.Array[ctypes.c_char_p]:
    """Give texts as a C array."""
    return (ctypes.c_char_p * max(len(values), 1))(*[value.encode() for value in values])
