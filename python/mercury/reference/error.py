"""How far a result is from its reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["relative_error"]


def relative_error(result: NDArray[Any], reference: NDArray[Any]) -> float:
    """``||result - reference|| / ||reference||`` over finite positions.

    Where the reference is infinite (the log-sum-exp of a row that sees nothing), the
    result must be the same infinity. Anything else that is not finite gives infinity. A
    zero result has error 1.
    """
    if result.shape != reference.shape:
        return float("inf")
    finite = np.isfinite(reference)
    if not np.array_equal(result[~finite], reference[~finite]):
        return float("inf")
    difference = np.asarray(result, np.float64)[finite] - reference[finite]
    if not np.isfinite(difference).all():
        return float("inf")
    size = float(np.linalg.norm(reference[finite]))
    error = float(np.linalg.norm(difference))
    return error / size if size else error
