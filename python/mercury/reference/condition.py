"""How much of a result's error rounding explains where its terms cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from .error import relative_error

__all__ = ["condition"]

# Small against every input, large against the rounding of float64.
_STEP = 2.0**-24


def condition(
    evaluate: Callable[[Mapping[str, Any]], Mapping[str, NDArray[Any]]],
    inputs: Mapping[str, Any],
    signs: Callable[[Any], Any],
) -> dict[str, float]:
    """Tell how much further than the inputs each output moves when they do.

    A method that is backward stable errs by the rounding of its type times this number
    (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.6). It is
    about 1, and large where terms cancel, as those of a sink's gradient may.

    Parameters
    ----------
    evaluate
        Gives each output in float64, or what is compared of it.
    inputs
        Each input by name.
    signs
        Draws the directions in which the elements of an input move: -1 and 1 in float64.

    Returns
    -------
    dict
        For each output, the relative change of it over that of the inputs; at least 1.
    """
    moved: dict[str, Any] = {
        name: whole * (1.0 + _STEP * signs(whole)) for name, whole in inputs.items()
    }
    before, after = evaluate(inputs), evaluate(moved)
    return {
        name: max(1.0, relative_error(after[name], before[name]) / _STEP) for name in before
    }
