"""The embedded backend: every rank a thread of this process."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..dsl.mesh import Mesh
from ..errors import RunError

__all__ = ["RunReport", "SimOptions", "library_path", "run"]

_ABI_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class SimOptions:
    """What a run on the embedded backend may be told.

    Attributes
    ----------
    deadline_ms
        A run in which no rank makes progress for so long ends with an error.
    seed
        Not 0: messages are delayed and reordered, the same way each time.
    max_delay_us
        The longest such delay, in microseconds.
    fail_rank, fail_after_ops
        Fail this rank after so many operations, to see what happens; -1 for none.
    """

    deadline_ms: int = 30_000
    seed: int = 0
    max_delay_us: int = 200
    fail_rank: int = -1
    fail_after_ops: int = 0


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a run moved.

    Attributes
    ----------
    bytes_sent, messages
        By level, over all ranks.
    peak_arena_bytes
        The largest arena of a rank.
    """

    bytes_sent: dict[str, int]
    messages: dict[str, int]
    peak_arena_bytes: int


class _Job(ctypes.Structure):
    _fields_ = (
        ("abi_version", ctypes.c_int32),
        ("number_of_levels", ctypes.c_int64),
        ("level_sizes", ctypes.POINTER(ctypes.c_int64)),
        ("level_names", ctypes.POINTER(ctypes.c_char_p)),
        ("entry", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))),
        ("arena_bytes", ctypes.POINTER(ctypes.c_int64)),
        ("deadline_ms", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("max_delay_us", ctypes.c_int64),
        ("fail_rank", ctypes.c_int64),
        ("fail_after_ops", ctypes.c_int64),
    )


class _Report(ctypes.Structure):
    _fields_ = (
        ("bytes_sent", ctypes.POINTER(ctypes.c_int64)),
        ("messages", ctypes.POINTER(ctypes.c_int64)),
        ("peak_arena_bytes", ctypes.c_int64),
        ("failing_rank", ctypes.c_int64),
    )


def library_path() -> Path:
    """Give the path of the runtime library, which compiled plans call."""
    from .._mlir import _mlir_libs  # noqa: PLC0415 (no work at import)

    return Path(_mlir_libs.__file__).with_name("libmercury_rt.so")


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(library_path()))
    library.mercury_rt_last_error.restype = ctypes.c_char_p
    library.mercury_rt_sim_run.argtypes = (ctypes.POINTER(_Job), ctypes.POINTER(_Report))
    found = library.mercury_rt_abi_version()
    if found != _ABI_VERSION:
        raise RunError(
            f"the runtime library has ABI version {found}, this package wants {_ABI_VERSION}; "
            "install mercury-compiler again"
        )
    return library


def run(
    entry: int,
    mesh: Mesh,
    buffers: Sequence[Sequence[int]],
    arena_bytes: int,
    options: SimOptions,
) -> RunReport:
    """Run a compiled host program on every rank of a mesh.

    Parameters
    ----------
    entry
        Its address.
    mesh
        The ranks.
    buffers
        For each rank, the address of each buffer's shard, in the program's order.
    arena_bytes
        Size of the arena of each rank, in bytes.
    options
        Of the backend.

    Raises
    ------
    RunError
        When a rank fails, naming rank, operation and cause.
    """
    library = _library()
    names = [name.encode() for name in mesh.names]
    count = len(names)
    rows = [(ctypes.c_void_p * max(len(row), 1))(*row) for row in buffers]
    pointer = ctypes.POINTER(ctypes.c_void_p)
    sent, messages = (ctypes.c_int64 * count)(), (ctypes.c_int64 * count)()
    job = _Job(
        abi_version=_ABI_VERSION,
        number_of_levels=count,
        level_sizes=(ctypes.c_int64 * count)(*[size for _, size in mesh.levels]),
        level_names=(ctypes.c_char_p * count)(*names),
        entry=entry,
        buffers=(pointer * mesh.size)(*[ctypes.cast(row, pointer) for row in rows]),
        arena_bytes=(ctypes.c_int64 * mesh.size)(*[arena_bytes] * mesh.size),
        deadline_ms=options.deadline_ms,
        seed=options.seed,
        max_delay_us=options.max_delay_us,
        fail_rank=options.fail_rank,
        fail_after_ops=options.fail_after_ops,
    )
    report = _Report(bytes_sent=sent, messages=messages)
    if library.mercury_rt_sim_run(ctypes.byref(job), ctypes.byref(report)) != 0:
        raise RunError(library.mercury_rt_last_error().decode())
    return RunReport(
        bytes_sent=dict(zip(mesh.names, sent, strict=True)),
        messages=dict(zip(mesh.names, messages, strict=True)),
        peak_arena_bytes=report.peak_arena_bytes,
    )
