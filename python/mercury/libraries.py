"""The shared libraries that this package opens: its own runtime, and for that NCCL."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from pathlib import Path

from .errors import RunError

__all__ = ["ABI_VERSION", "find_nccl", "nccl_version", "open_runtime", "runtime_path"]

ABI_VERSION = 5  # MERCURY_RT_ABI_VERSION of mercury-rt/runtime.h


def runtime_path() -> Path:
    """Give the path of the runtime library, which compiled plans call."""
    from ._mlir import _mlir_libs  # noqa: PLC0415 (no work at import)

    return Path(_mlir_libs.__file__).with_name("libmercury_rt.so")


@functools.cache
def open_runtime() -> ctypes.CDLL:
    """Open the runtime library; its calls release the interpreter's lock.

    Raises
    ------
    RunError
        When it is of another version than this package.
    """
    library = ctypes.CDLL(str(runtime_path()))
    found = library.mercury_rt_abi_version()
    if found != ABI_VERSION:
        raise RunError(
            f"the runtime library has ABI version {found}, this package wants {ABI_VERSION}; "
            "install mercury-compiler again"
        )
    library.mercury_rt_last_error.restype = ctypes.c_char_p
    return library


def find_nccl() -> tuple[str, str]:
    """Give the NCCL that the runtime opens, and who says so.

    It is what ``MERCURY_RT_NCCL_LIBRARY`` names, or the one that PyTorch requires, which the
    loader does not know, or the loader's.
    """
    if named := os.environ.get("MERCURY_RT_NCCL_LIBRARY"):
        return named, "named by MERCURY_RT_NCCL_LIBRARY"
    try:
        spec = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        spec = None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        place = Path(folder) / "lib" / "libnccl.so.2"
        if place.is_file():
            return str(place), "of the package that PyTorch requires"
    return "libnccl.so.2", "found by the loader"


def nccl_version(path: str) -> str:
    """Open an NCCL as the runtime does, and tell its version.

    Raises
    ------
    RunError
        When it is not there, or too old.
    """
    library, found = open_runtime(), ctypes.c_int32()
    if library.mercury_rt_cuda_nccl(path.encode(), ctypes.byref(found)):
        raise RunError(library.mercury_rt_last_error().decode(errors="replace"))
    major, rest = divmod(found.value, 10000)
    return f"{major}.{rest // 100}.{rest % 100}"
