"""How much of a result's error rounding explains where its terms cancel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dsl import Program
from .error import relative_error
from .program import evaluate

__all__ = ["condition"]

# Small against every input, large against the rounding of float64.
_STEP = 2.0**-24


def condition(
    program: Program, inputs: Mapping[str, NDArray[Any]], seed: int = 0
) -> dict[str, float]:
    """Tell how much further than the inputs each output moves when they do.

    A method that is backward stable errs by the rounding of its type times this number
    (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.6). It is
    about 1, and large where terms cancel, as those of a sink's gradient may.

    Parameters
    ----------
    program
        Any program of known kernels.
    inputs
        Each input by name, in float64.
    seed
        Of the directions in which their elements move.

    Returns
    -------
    dict
        For each output, the relative change of it over that of the inputs; at least 1.
    """
    rng = np.random.default_rng(seed)
    moved = {
        name: whole * (1.0 + _STEP * rng.choice([-1.0, 1.0], whole.shape))
        for name, whole in inputs.items()
    }
    before, after = evaluate(program, inputs), evaluate(program, moved)
    return {
        name: max(1.0, relative_error(after[name], before[name]) / _STEP) for name in before
    }
