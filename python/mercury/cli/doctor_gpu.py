"""What the GPUs of this machine can do together, and which libraries compute on them."""

from __future__ import annotations

import ctypes
import importlib.metadata

__all__ = ["describe_cudnn", "describe_reach"]

_CUDNN = ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
_FRONTEND = "nvidia-cudnn-frontend"


def describe_cudnn() -> tuple[bool, str, str]:
    """Say which cuDNN PyTorch brings, and whether plans can write its results in place.

    Returns
    -------
    tuple
        Whether both are there, what was found, and what to do.
    """
    cudnn = _first(_CUDNN)
    frontend = _first((_FRONTEND,))
    found = []
    if cudnn:
        found.append(f"cuDNN {cudnn}")
    if frontend:
        found.append(f"its frontend {frontend}")
    if cudnn and frontend:
        return True, ", ".join(found), ""
    if cudnn:
        text = "without its frontend, attention's results are copied into the plan"
        return False, f"{found[0]}; {text}", f"pip install {_FRONTEND}"
    text = "needed for cuDNN's attention; PyTorch's flash attention serves without"
    return False, "; ".join([*found, text]), f"pip install 'torch>=2.6' {_FRONTEND}"


def describe_reach(driver: ctypes.CDLL, count: int) -> str | None:
    """Say whether each GPU reads the memory of every other, which leases need.

    Parameters
    ----------
    driver
        The CUDA driver, initialised.
    count
        How many GPUs there are.

    Returns
    -------
    str or None
        None where there is nothing to say.
    """
    if count < 2 or not hasattr(driver, "cuDeviceCanAccessPeer"):
        return None
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    blocked = []
    for reader, owner in pairs:
        can = ctypes.c_int()
        code = driver.cuDeviceCanAccessPeer(ctypes.byref(can), reader, owner)
        if code != 0 or not can.value:
            blocked.append((reader, owner))
    if not blocked:
        return "each reads the memory of every other"
    reader, owner = blocked[0]
    return (
        f"GPU {reader} cannot read the memory of GPU {owner} ({len(blocked)} of {len(pairs)} "
        "pairs): take schedules that send, with reads='rotate'"
    )


def _first(names: tuple[str, ...]) -> str | None:
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
