"""The tensors that a plan is given: are they what it was compiled for, and where are they."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..dsl.nodes import Buffer
from ..errors import RunError

__all__ = [
    "Shard",
    "check_apart",
    "current_stream",
    "empty",
    "loaded_torch",
    "shard_of",
    "torch_with_gpus",
]

_TORCH_NAMES = {
    "torch.float16": "f16",
    "torch.bfloat16": "bf16",
    "torch.float32": "f32",
    "torch.float64": "f64",
}
# Of other libraries' arrays; NumPy has no bfloat16, whose bits are integers there.
_TYPE_STRINGS = {"<f2": "f16", "<f4": "f32", "<f8": "f64", "<u2": "bf16", "<i2": "bf16"}
_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_LONG = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A tensor of the user's, as the runtime needs it.

    Attributes
    ----------
    tensor
        Is kept for as long as the plan may use it.
    address, bytes
        Its memory.
    """

    tensor: Any
    address: int
    bytes: int


def shard_of(
    buffer: Buffer, tensor: Any, shape: tuple[int, ...], rank: int, device: int
) -> Shard:
    """Check a shard and find its memory.

    Parameters
    ----------
    buffer
        Whose shard.
    tensor
        A CUDA tensor of PyTorch, or an array with ``__cuda_array_interface__``.
    shape
        Of the shard of this rank.
    rank, device
        This rank and its GPU, for the message.

    Raises
    ------
    RunError
        When it is of another shape, type or device, or not contiguous.
    """
    found = _describe(tensor)
    wanted = (
        f"a contiguous CUDA tensor of shape {shape} and {_LONG[buffer.dtype]} on GPU {device}"
    )
    if found is None:
        raise RunError(
            f"the shard of '{buffer.name}' on rank {rank} must be {wanted}, got "
            f"{type(tensor).__name__}{_hint(tensor)}"
        )
    problems = []
    if found.device is not None and found.device != device:
        problems.append(f"on {'the CPU' if found.device < 0 else f'GPU {found.device}'}")
    if found.shape != shape:
        problems.append(f"of shape {found.shape}")
    if found.dtype != buffer.dtype:
        problems.append(f"of {_LONG.get(found.dtype, found.dtype)}")
    if not found.contiguous:
        problems.append("not contiguous; call .contiguous()")
    if problems:
        raise RunError(
            f"the shard of '{buffer.name}' on rank {rank} must be {wanted}, got one "
            f"{', '.join(problems)}; plan.layout('{buffer.name}').shape({rank}) is the shape, "
            "plan.shard cuts whole tensors"
        )
    size = _BYTES[buffer.dtype]
    for extent in shape:
        size *= extent
    return Shard(tensor=tensor, address=found.address, bytes=size)


def check_apart(shards: Mapping[str, Shard], outputs: set[str]) -> None:
    """Refuse an output whose memory another tensor shares.

    Raises
    ------
    RunError
        Naming both.
    """
    placed = sorted(
        ((s.address, s.address + s.bytes, name) for name, s in shards.items() if s.bytes),
        key=lambda one: one[0],
    )
    for (_, end, name), (begin, _, other) in pairwise(placed):
        if begin < end and outputs & {name, other}:
            raise RunError(
                f"the memory of '{name}' overlaps that of '{other}', and an output may share "
                "none; give it a tensor of its own"
            )


def torch_with_gpus() -> Any:
    """Import PyTorch.

    Raises
    ------
    RunError
        When it is not there, or finds no GPU.
    """
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise RunError(
            f"this needs PyTorch, which is not there ({error}); pip install 'torch>=2.6'"
        ) from None
    if not torch.cuda.is_available():
        raise RunError(
            f"PyTorch {torch.__version__} finds no GPU; mercury doctor says more, and target "
            "'sim' needs none"
        )
    return torch


def empty(buffer: Buffer, shape: tuple[int, ...], device: int) -> Any:
    """Make a tensor of PyTorch for an output."""
    torch = torch_with_gpus()
    return torch.empty(
        shape, dtype=getattr(torch, _LONG[buffer.dtype]), device=torch.device("cuda", device)
    )


def current_stream(device: int) -> int:
    """Give PyTorch's current stream, or the default one where there is no PyTorch."""
    torch = loaded_torch()
    return 0 if torch is None else int(torch.cuda.current_stream(device).cuda_stream)


_usable: Any = None


def loaded_torch() -> Any:
    """Give PyTorch if it is imported and has a GPU, which every call asks again."""
    global _usable  # noqa: PLW0603 (what was found stays true)
    torch: Any = sys.modules.get("torch")
    if torch is None or torch is _usable:
        return torch
    if not torch.cuda.is_available():
        return None
    _usable = torch
    return torch


@dataclass(frozen=True, kw_only=True)
class _Found:
    address: int
    shape: tuple[int, ...]
    dtype: str
    contiguous: bool
    device: int | None  # -1 is the CPU, None is not told


def _describe(tensor: Any) -> _Found | None:
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return _Found(
            address=tensor.data_ptr(),
            shape=tuple(tensor.shape),
            dtype=_TORCH_NAMES.get(str(tensor.dtype), str(tensor.dtype)),
            contiguous=tensor.is_contiguous(),
            device=tensor.device.index if tensor.is_cuda else -1,
        )
    told = getattr(tensor, "__cuda_array_interface__", None)
    if told is None:
        return None
    shape, kind = tuple(told["shape"]), str(told["typestr"])
    dtype = _TYPE_STRINGS.get(kind, kind)
    return _Found(
        address=int(told["data"][0] or 0),
        shape=shape,
        dtype=dtype,
        contiguous=_is_dense(shape, told.get("strides"), _BYTES.get(dtype, 0)),
        device=None,
    )


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...] | None, item: int) -> bool:
    if strides is None or 0 in shape:
        return True
    expected = item
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _hint(tensor: Any) -> str:
    return "; copy it to the GPU first" if hasattr(tensor, "__array_interface__") else ""
