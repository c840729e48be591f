"""Element types of buffers as NumPy sees them.

NumPy has no bfloat16: such buffers are arrays of uint16 that hold the bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["decode", "encode", "storage"]

Array = NDArray[Any]

_STORAGE = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16}


def storage(dtype: str) -> np.dtype[Any]:
    """Give the NumPy type that holds elements of ``dtype``."""
    return np.dtype(_STORAGE[dtype])


def encode(values: Array, dtype: str) -> Array:
    """Round values to ``dtype``, to nearest, ties to even.

    Parameters
    ----------
    values
        Floating-point numbers, or for ``"bf16"`` also its bits as uint16.
    dtype
        A dtype of a buffer.

    Examples
    --------
    >>> import numpy as np
    >>> decode(encode(np.array([1.0, 1.00390625]), "bf16"), "bf16").tolist()
    [1.0, 1.0]
    """
    if dtype != "bf16" or values.dtype == np.uint16:
        return np.ascontiguousarray(values, storage(dtype))
    single = np.ascontiguousarray(values, np.float32)
    bits = single.view(np.uint32)
    even = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + even) >> np.uint32(16)).astype(np.uint16)
    # Rounding could carry a NaN into infinity.
    return np.where(np.isnan(single), np.uint16(0x7FC0), rounded).astype(np.uint16)


def decode(values: Array, dtype: str) -> Array:
    """Give stored elements as NumPy floating-point numbers (bfloat16 as float32)."""
    if dtype != "bf16":
        return values
    return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
