"""Products against float64, tile by tile in random order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from compiled import DTYPES, NARROW, NUMPY, Array, accumulator, build, build_narrow
from tiles import cut, decode, encode, scatter, within


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (70, 130, 300), (33, 64, 128)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_tiles(dtype: str, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    m, n, k = shape
    acc = NUMPY[accumulator(dtype)]
    a = scatter(encode(rng.standard_normal((m, k)), dtype), rng)
    b = scatter(encode(rng.standard_normal((k, n)), dtype), rng)
    start = rng.standard_normal((m, n)).astype(acc)
    exact_a, exact_b = decode(a, dtype), decode(b, dtype)
    want = start + exact_a @ exact_b
    bound = (k + 1) * np.finfo(acc).eps * (np.abs(start) + np.abs(exact_a) @ np.abs(exact_b))

    tiles = list(itertools.product(cut(m, 2, rng), cut(n, 2, rng), cut(k, 4, rng)))
    rng.shuffle(tiles)

    def run(tiles: Sequence[tuple[slice, slice, slice]]) -> Array:
        c = scatter(start, rng)
        for i, j, p in tiles:
            build("matmul", dtype)(a[i, p], b[p, j], c[i, j])
        return c

    assert within(run(tiles), want, bound)
    assert not within(np.zeros_like(want), want, bound)
    for lost, (i, j, p) in enumerate(tiles):
        if a[i, p].size and b[p, j].size:
            assert not within(run(tiles[:lost] + tiles[lost + 1 :]), want, bound)


@pytest.mark.parametrize("shape", [(5, 3, 7), (300, 70, 300)])
@pytest.mark.parametrize("dtype", NARROW)
def test_matmul_rounds_a_narrow_result_once(dtype: str, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    m, n, k = shape
    a = scatter(encode(rng.standard_normal((m, k)), dtype), rng)
    b = scatter(encode(rng.standard_normal((k, n)), dtype), rng)
    wide = np.zeros((m, n), np.float32)
    build("matmul", dtype)(a, b, wide)
    narrow = scatter(np.zeros((m, n), NUMPY[dtype]), rng)
    build_narrow("matmul", dtype)(a, b, narrow)
    assert wide.any()
    np.testing.assert_array_equal(narrow, encode(wide, dtype))
