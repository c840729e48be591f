"""The embedded backend: every rank a thread of this process."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from ..dsl.mesh import Mesh
from ..errors import RunError
from ..libraries import ABI_VERSION, open_runtime
from .kernels import Kernel, KernelTable

__all__ = ["RunReport", "SimOptions", "run"]


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
    kernels
        Implementations that `patch` names, as ``{"mine.matmul": function}``; see
        `mercury.runtime.kernels`. Those of PyTorch are there already.

    Raises
    ------
    RunError
        When a number does not fit the runtime.
    """

    deadline_ms: int = 30_000
    seed: int = 0
    max_delay_us: int = 200
    fail_rank: int = -1
    fail_after_ops: int = 0
    kernels: Mapping[str, Kernel] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse what would be cut to fit."""
        for name, first, end in (
            ("deadline_ms", 0, 1 << 63),
            ("seed", 0, 1 << 64),
            ("max_delay_us", 0, 1 << 63),
            ("fail_rank", -1, 1 << 63),
            ("fail_after_ops", 0, 1 << 63),
        ):
            value = getattr(self, name)
            if not first <= value < end:
                raise RunError(
                    f"{name} must be from {first} to 2^{end.bit_length() - 1} - 1, got {value}"
                )


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a run moved.

    Attributes
    ----------
    bytes_sent, messages
        By level, over all ranks.
    peak_arena_bytes
        The arenas of the rank with the most.
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
        ("local_bytes", ctypes.POINTER(ctypes.c_int64)),
        ("symmetric_bytes", ctypes.c_int64),
        ("deadline_ms", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("max_delay_us", ctypes.c_int64),
        ("fail_rank", ctypes.c_int64),
        ("fail_after_ops", ctypes.c_int64),
        ("kernels", ctypes.c_void_p),
        ("number_of_kernels", ctypes.c_int64),
        ("cancel", ctypes.POINTER(ctypes.c_int32)),
    )


class _Report(ctypes.Structure):
    _fields_ = (
        ("bytes_sent", ctypes.POINTER(ctypes.c_int64)),
        ("messages", ctypes.POINTER(ctypes.c_int64)),
        ("peak_arena_bytes", ctypes.c_int64),
        ("failing_rank", ctypes.c_int64),
    )


@functools.cache
def _library() -> ctypes.CDLL:
    library = open_runtime()
    library.mercury_rt_sim_run.argtypes = (ctypes.POINTER(_Job), ctypes.POINTER(_Report))
    return library


def _interruptible(start: Callable[[], str | None], cancel: ctypes.c_int32) -> str | None:
    """Run to the end; Ctrl-C sets the flag, and is raised when the run has ended."""
    # Signals reach the main thread only, and there only between bytecodes.
    if threading.current_thread() is not threading.main_thread():
        return start()
    with ThreadPoolExecutor(max_workers=1) as pool:
        run = pool.submit(start)
        interrupt: KeyboardInterrupt | None = None
        while not run.done():
            try:
                wait([run])
            except KeyboardInterrupt as stop:
                # The ranks use the caller's arrays until the run has ended.
                interrupt, cancel.value = stop, 1
    if interrupt is not None:
        raise interrupt
    return run.result()


def run(
    entry: int,
    mesh: Mesh,
    buffers: Sequence[Sequence[int]],
    local_bytes: int,
    symmetric_bytes: int,
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
    local_bytes, symmetric_bytes
        Sizes of the arenas of each rank.
    options
        Of the backend.

    Raises
    ------
    RunError
        When a rank fails, naming rank, operation and cause.
    KeyboardInterrupt
        When the user wants no more of it: the run has then ended.
    """
    library = _library()
    names = [name.encode() for name in mesh.names]
    count = len(names)
    rows = [(ctypes.c_void_p * max(len(row), 1))(*row) for row in buffers]
    pointer = ctypes.POINTER(ctypes.c_void_p)
    sent, messages = (ctypes.c_int64 * count)(), (ctypes.c_int64 * count)()
    kernels = KernelTable(options.kernels)
    cancel = ctypes.c_int32(0)
    job = _Job(
        abi_version=ABI_VERSION,
        number_of_levels=count,
        level_sizes=(ctypes.c_int64 * count)(*[size for _, size in mesh.levels]),
        level_names=(ctypes.c_char_p * count)(*names),
        entry=entry,
        buffers=(pointer * mesh.size)(*[ctypes.cast(row, pointer) for row in rows]),
        local_bytes=(ctypes.c_int64 * mesh.size)(*[local_bytes] * mesh.size),
        symmetric_bytes=symmetric_bytes,
        deadline_ms=options.deadline_ms,
        seed=options.seed,
        max_delay_us=options.max_delay_us,
        fail_rank=options.fail_rank,
        fail_after_ops=options.fail_after_ops,
        kernels=kernels.address,
        number_of_kernels=len(kernels),
        cancel=ctypes.pointer(cancel),
    )
    report = _Report(bytes_sent=sent, messages=messages)

    def start() -> str | None:
        if library.mercury_rt_sim_run(ctypes.byref(job), ctypes.byref(report)) == 0:
            return None
        return str(library.mercury_rt_last_error().decode(errors="replace"))

    problem = _interruptible(start, cancel)
    if problem is not None:
        raise RunError(problem) from kernels.cause
    return RunReport(
        bytes_sent=dict(zip(mesh.names, sent, strict=True)),
        messages=dict(zip(mesh.names, messages, strict=True)),
        peak_arena_bytes=report.peak_arena_bytes,
    )
