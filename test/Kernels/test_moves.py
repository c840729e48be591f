"""What only moves bytes: fill, accumulate and copy."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import DTYPES, NUMPY, Array, accumulator, build, build_copy, compile_instance
from tiles import decode, encode, scatter


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("value", [0.0, -np.inf])
@pytest.mark.parametrize("stride", [1, 2])
def test_fill(dtype: str, value: float, stride: int) -> None:
    around = np.ones((3, 4, 5, 23), NUMPY[dtype])
    want = around.copy()
    tile = (slice(1, None), slice(1, 3), slice(0, 4), slice(1, 22, stride))
    want[tile] = value
    build("fill", dtype)(around[tile], value)
    np.testing.assert_array_equal(around, want)
    build("fill", dtype)(around[:0], 5.0)
    np.testing.assert_array_equal(around, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_accumulate_adds_tiles_of_any_strides(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (encode(rng.standard_normal((3, 2, 5, 23)), dtype) for _ in range(2))
    want = encode(decode(x, dtype) + decode(y, dtype), dtype)
    run = compile_instance("accumulate", dtype, dtype, dtype)
    for source, target in ((x, y.copy()), (scatter(x, rng), scatter(y, rng))):
        run(source, target)
        np.testing.assert_array_equal(target, want)
    around = np.ones((3, 2, 7, 25), NUMPY[dtype])
    around[:, :, 1:-1, 1:-1] = y
    run(x, around[:, :, 1:-1, 1:-1])
    np.testing.assert_array_equal(around[:, :, 1:-1, 1:-1], want)
    assert (around[:, :, [0, -1]] == 1).all()
    assert (around[..., [0, -1]] == 1).all()


COPIES = [
    *((dtype, accumulator(dtype)) for dtype in DTYPES),
    *((accumulator(dtype), dtype) for dtype in ("f16", "bf16")),
    ("bf16", "f16"),
    ("f64", "f32"),
    ("i8", "i8"),
    ("i16", "i16"),
    ("i64", "i64"),
]


def copied(x: Array, source: str, target: str, into: Array) -> Array:
    """Run the copy kernel on tiles of four dimensions; the accumulator holds either type."""
    both = {source, target}
    wide = source if source == target else "f64" if "f64" in both else "f32"
    build_copy(source, wide, target)(x, into)
    return into


@pytest.mark.parametrize(("source", "target"), COPIES)
def test_copy_rounds_to_nearest_even(source: str, target: str) -> None:
    rng = np.random.default_rng(0)
    if source.startswith("i"):
        x = rng.integers(0, 100, (1, 1, 1, 1070)).astype(NUMPY[source])
        want = x
    else:
        ordinary = rng.standard_normal(1000) * 10.0 ** rng.integers(-9, 9, 1000)
        ties = 1 + np.arange(64) * 2.0**-11
        special = [0.0, -0.0, np.inf, -np.inf, 1e-40, 3.4e38]
        x = encode(np.concatenate([ordinary, ties, special]), source).reshape(1, 1, 1, -1)
        want = encode(decode(x, source), target)
    y = np.zeros((1, 1, 1, x.size + 2), NUMPY[target])
    copied(x, source, target, y[..., 1:-1])
    np.testing.assert_array_equal(y.ravel(), [0, *want.ravel(), 0])
    if not source.startswith("i"):
        copied(encode(np.full(x.shape, np.nan), source), source, target, y[..., 1:-1])
        assert np.isnan(decode(y[..., 1:-1], target)).all()


@pytest.mark.parametrize("case", range(40))
def test_copy_packs_and_unpacks_any_tile(case: int) -> None:
    rng = np.random.default_rng(case)
    source, target = [("f32", "bf16"), ("bf16", "f32"), ("i16", "i16"), ("f64", "f64")][
        case % 4
    ]
    sizes = [int(n) for n in rng.choice([0, 1, 1, 2, 3, 5, 65], 4)]
    whole = [n + int(rng.integers(0, 3)) for n in sizes]
    at = tuple(
        slice(int(first), int(first) + n)
        for n, first in zip(
            sizes,
            [rng.integers(0, w - n + 1) for w, n in zip(whole, sizes, strict=True)],
            strict=True,
        )
    )
    numbers = rng.standard_normal(whole)
    full = numbers.astype(np.int16) if source == "i16" else encode(numbers, source)
    # A slice of contiguous memory, or dimensions in any order with gaps.
    x = full[at] if case % 3 else scatter(full[at], rng)
    want = np.ascontiguousarray(x)
    if source != target:
        want = encode(decode(want, source), target)
    for y in (np.zeros(sizes, NUMPY[target]), scatter(np.zeros(sizes, NUMPY[target]), rng)):
        np.testing.assert_array_equal(copied(x, source, target, y), want)
    around = np.full(whole, 3, NUMPY[target])
    copied(x, source, target, around[at])
    np.testing.assert_array_equal(around[at], want)
    around[at] = 3
    assert (around == 3).all()
