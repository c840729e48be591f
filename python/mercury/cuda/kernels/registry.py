"""Which kernels there are on a GPU, and which a plan takes when its schedule names none."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import lru_cache

from ...implementations import ON_GPUS
from ..launch import DeviceKernel, DeviceLaunch

__all__ = ["KERNELS", "default_library"]

_ATTENTION = {"attention_fwd": "attention_forward", "attention_bwd": "attention_backward"}


def _attention(library: str, kernel: str) -> DeviceKernel:
    """Make an attention kernel that imports its library when it first runs."""

    @lru_cache(maxsize=1)
    def found() -> DeviceKernel:
        from . import attention, cudnn, flash  # noqa: PLC0415 (loads what it needs)

        classes: dict[str, Callable[[], attention.AttentionLibrary]] = {
            "cudnn": cudnn.Cudnn,
            "torch": flash.Flash,
        }
        make: Callable[[attention.AttentionLibrary], DeviceKernel] = getattr(
            attention, _ATTENTION[kernel]
        )
        return make(classes[library]())

    def call(launch: DeviceLaunch) -> None:
        found()(launch)

    return call


def _matmul(launch: DeviceLaunch) -> None:
    from .products import matmul  # noqa: PLC0415

    matmul(launch)


KERNELS: Mapping[str, DeviceKernel] = {
    "cudnn.attention_fwd": _attention("cudnn", "attention_fwd"),
    "cudnn.attention_bwd": _attention("cudnn", "attention_bwd"),
    "torch.attention_fwd": _attention("torch", "attention_fwd"),
    "torch.attention_bwd": _attention("torch", "attention_bwd"),
    "cublas.matmul": _matmul,
    "torch.matmul": _matmul,
}


def default_library(kernel: str) -> str:
    """Name the library of a kernel that a schedule says nothing about.

    Empty for the kernel that Mercury generates.
    """
    return ON_GPUS.get(kernel, "") if _has_torch() else ""


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None
