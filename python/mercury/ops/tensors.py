"""NumPy arrays and PyTorch tensors as a plan takes them, and back."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runtime.dtypes import encode
from .errors import OpError

__all__ = ["back", "dtype_of", "is_torch", "values_of"]

Array = NDArray[Any]
_NUMPY = {"float16": "f16", "float32": "f32", "float64": "f64", "uint16": "bf16"}
_TORCH = {"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16"}


def is_torch(value: Any) -> bool:
    """Whether something is a tensor of PyTorch, which is not imported to find out."""
    return any(
        kind.__module__ == "torch" and kind.__name__ == "Tensor" for kind in type(value).__mro__
    )


def dtype_of(name: str, value: Any) -> str:
    """Give a tensor's element type by its name in programs.

    Raises
    ------
    OpError
        When a program has no such type.
    """
    own = str(value.dtype).removeprefix("torch.")
    found = (_TORCH if is_torch(value) else _NUMPY).get(own)
    if found is None:
        raise OpError(
            f"{name} must be of float16, float32, float64 or bfloat16 (its bits as uint16 in "
            f"NumPy), got {own}; convert it first"
        )
    return found


def values_of(name: str, value: Any) -> Array:
    """Give the elements as an array that a plan takes; of bfloat16, the bits.

    Raises
    ------
    OpError
        When a tensor is on a device, or wants a gradient.
    """
    if not is_torch(value):
        return np.asarray(value)
    if value.device.type != "cpu":
        raise OpError(
            f"{name} is on {value.device}; embedded ranks take tensors of the CPU: {name}.cpu()"
        )
    torch = importlib.import_module("torch")
    if value.requires_grad and torch.is_grad_enabled():
        raise OpError(
            f"{name} wants a gradient, and this operator has only the forward pass; call it "
            "under torch.no_grad(), or schedule mercury.programs.attention_backward"
        )
    own = value.detach().contiguous()
    if str(own.dtype) == "torch.bfloat16":
        return np.asarray(own.view(torch.int16).numpy().view(np.uint16))
    return np.asarray(own.numpy())


def back(values: Array, like: Any, *, wide: bool = False) -> Any:
    """Give a result as the caller has its inputs.

    Parameters
    ----------
    values
        What a plan gave; bfloat16 comes as float32.
    like
        An input.
    wide
        Whether the result keeps its own type, instead of taking the input's.
    """
    if not is_torch(like):
        return encode(values, "bf16") if like.dtype == np.uint16 and not wide else values
    made = importlib.import_module("torch").from_numpy(np.ascontiguousarray(values))
    return made if wide else made.to(like.dtype)
