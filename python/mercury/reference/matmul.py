"""Matrix product in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["matmul"]


def matmul(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """``a[i, k] @ b[k, j]``."""
    return np.asarray(a, np.float64) @ np.asarray(b, np.float64)
