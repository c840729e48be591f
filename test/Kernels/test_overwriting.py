"""Results that are overwritten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import DTYPES, NUMPY, UNBOUNDED, Array, accumulator, build, build_overwriting
from tiles import encode, scatter, scratch


def launch_of(kernel: str, dtype: str, terms: int) -> tuple[list[Array], list[Any], list[Any]]:
    """Return inputs with so many terms, shapes of the results, and the other arguments."""
    rng = np.random.default_rng(terms)

    def numbers(*shape: int) -> Array:
        return scatter(encode(rng.standard_normal(shape), dtype), rng)

    if kernel == "matmul":
        return [numbers(70, 11 * terms), numbers(11 * terms, 66)], [(70, 66)], []
    if kernel == "sum_all":
        return [numbers(terms, 2, 1, 5, 70)], [(2, 1, 5, 70)], []
    shapes: list[Any] = [(2, 90, 4, 70), (2, 4, 90)]
    if kernel == "softmax_merge_all":
        o, lse = numbers(terms, 2, 90, 4, 70), 3 * rng.standard_normal((terms, 2, 4, 90))
        # Rows that no part has seen.
        o[:, 1, :7, 2], lse[:, 1, 2, :7] = 0, -np.inf
        return [o, lse.astype(NUMPY[accumulator(dtype)])], shapes, []
    keys = (numbers(2, 50 * terms, 2, d) for d in (24, 70))
    # The first 20 queries see nothing.
    rest = [scratch(kernel, 24, 70, dtype), 0.2, 0, 20, 0, 0, 2, UNBOUNDED, 0]
    return [numbers(2, 90, 4, 24), *keys], shapes, rest


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("terms", [0, 1, 3])
@pytest.mark.parametrize("kernel", ["matmul", "sum_all", "softmax_merge_all", "attention_fwd"])
def test_what_is_overwritten_is_as_if_merged_into_the_identity(
    kernel: str, terms: int, dtype: str
) -> None:
    acc = accumulator(dtype)
    inputs, shapes, rest = launch_of(kernel, dtype, terms)
    merged = [np.zeros(shapes[0], NUMPY[acc]), np.full(shapes[-1], -np.inf, NUMPY[acc])]
    merged = merged[: len(shapes)]
    build(kernel, dtype)(*inputs, *merged, *rest)
    assert merged[0].any() == (terms > 0)
    for out in {dtype, acc}:
        # Neither number is an identity: what is there is not read.
        found = [encode(np.full(shapes[0], np.nan), out), np.full(shapes[-1], 7, NUMPY[acc])]
        found = found[: len(shapes)]
        build_overwriting(kernel, dtype, out)(*inputs, *found, *rest)
        np.testing.assert_array_equal(found[0], encode(merged[0], out))
        np.testing.assert_array_equal(found[1:], merged[1:])
