"""Merges of partial results, and sinks, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import DTYPES, NARROW, NUMPY, Array, accumulator, build, build_narrow
from tiles import decode, encode, scatter, within


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_sink_is_one_more_logit(dtype: str) -> None:
    rng = np.random.default_rng(0)
    acc = NUMPY[accumulator(dtype)]
    b, s, h, dv = 2, 5, 4, 7
    sink = encode(np.array([0.5, -3.0, 20.0, -np.inf]), dtype)
    lse = rng.standard_normal((b, h, s)) * 4
    lse[:, :, 0] = -np.inf
    o = rng.standard_normal((b, s, h, dv)) * np.isfinite(lse.swapaxes(1, 2)[..., None])
    got_o, got_lse = scatter(o.astype(acc), rng), scatter(lse.astype(acc), rng)
    before = got_o.copy(), got_lse.copy()
    build("softmax_sink", dtype)(scatter(sink, rng), got_o, got_lse)
    lse = before[1].astype(np.float64)
    want = np.logaddexp(lse, decode(sink, dtype)[None, :, None])
    eps = np.finfo(acc).eps
    assert within(got_lse, want, 4 * eps * (1 + np.abs(want)))
    weight = np.exp(lse - np.where(np.isneginf(want), 0, want)).swapaxes(1, 2)[..., None]
    assert within(got_o, before[0] * weight, 64 * eps * np.abs(before[0] * weight) + 1e-300)
    # A row that saw nothing has the sink alone; a sink of -inf changes no bit.
    np.testing.assert_array_equal(got_lse[:, :3, 0], np.tile(decode(sink, dtype)[:3], (b, 1)))
    assert not got_o[:, 0].any()
    np.testing.assert_array_equal(got_o[:, :, 3], before[0][:, :, 3])
    np.testing.assert_array_equal(got_lse[:, 3], before[1][:, 3])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_softmax_merge(dtype: str) -> None:
    rng = np.random.default_rng(0)
    b, s, h, dv = 2, 5, 3, 7

    def draw() -> tuple[Array, Array]:
        lse = rng.standard_normal((b, h, s)) * 10
        lse[rng.random(lse.shape) < 0.4] = -np.inf
        o = rng.standard_normal((b, s, h, dv)) * np.isfinite(lse.swapaxes(1, 2)[..., None])
        return scatter(o.astype(NUMPY[dtype]), rng), scatter(lse.astype(NUMPY[dtype]), rng)

    def merged(x: tuple[Array, ...], y: tuple[Array, ...]) -> tuple[Array, ...]:
        into = tuple(scatter(a, rng) for a in x)
        build("softmax_merge", dtype)(*y, *into)
        return into

    x, y = draw(), draw()
    o, lse = merged(x, y)
    want = np.logaddexp(x[1].astype(float), y[1].astype(float))
    eps = np.finfo(NUMPY[dtype]).eps
    assert within(lse, want, 4 * eps * (1 + np.abs(want)))
    total = np.where(np.isneginf(want), 0, want)
    parts = [p[0] * np.exp(p[1] - total).swapaxes(1, 2)[..., None] for p in (x, y)]
    bound = 32 * eps * sum(map(np.abs, parts))
    assert within(o, sum(parts), bound)
    assert not within(x[0], sum(parts), bound)

    for other in zip((o, lse), merged(y, x), strict=True):
        np.testing.assert_array_equal(*other)
    empty = np.zeros_like(x[0]), np.full_like(x[1], -np.inf)
    for both in [merged(x, empty), merged(empty, x)]:
        for got, same in zip(both, x, strict=True):
            np.testing.assert_array_equal(got, same)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("parts", [0, 1, 2, 7])
def test_softmax_merge_all(dtype: str, parts: int) -> None:
    rng = np.random.default_rng(parts)
    acc = NUMPY[dtype]
    b, s, h, dv = 2, 5, 3, 70
    lse = rng.standard_normal((parts + 1, b, h, s)) * 10
    lse[rng.random(lse.shape) < 0.4] = -np.inf
    lse[:, 0, 0, 0] = -np.inf
    finite = np.isfinite(lse.swapaxes(2, 3)[..., None])
    o = rng.standard_normal((parts + 1, b, s, h, dv)) * finite
    o, lse = o.astype(acc), lse.astype(acc)

    def merged() -> tuple[Array, Array]:
        into = scatter(o[0], rng), scatter(lse[0], rng)
        build("softmax_merge_all", dtype)(scatter(o[1:], rng), scatter(lse[1:], rng), *into)
        return into

    got_o, got_lse = merged()
    want = np.logaddexp.reduce(lse.astype(np.float64), axis=0)
    eps = np.finfo(acc).eps
    assert within(got_lse, want, 4 * eps * (1 + np.abs(want)))
    total = np.where(np.isneginf(want), 0, want)
    shares = o * np.exp(lse - total).swapaxes(2, 3)[..., None]
    bound = (32 + parts) * eps * np.abs(shares).sum(axis=0)
    assert within(got_o, shares.sum(axis=0), bound)
    for lost in range(parts + 1):
        rest = np.delete(shares, lost, axis=0).sum(axis=0)
        assert np.array_equal(shares[lost], 0 * shares[lost]) or not within(got_o, rest, bound)
    # Where the parts lie in memory changes no bit, and neither do empty ones.
    for mine, other in zip((got_o, got_lse), merged(), strict=True):
        np.testing.assert_array_equal(mine, other)
    o[1:], lse[1:] = 0, -np.inf
    for mine, first in zip(merged(), (o[0], lse[0]), strict=True):
        np.testing.assert_array_equal(mine, first)


@pytest.mark.parametrize("dtype", NARROW)
def test_softmax_merge_all_rounds_a_narrow_result_once(dtype: str) -> None:
    rng = np.random.default_rng(3)
    o = encode(rng.standard_normal((4, 2, 5, 3, 70)), dtype)
    lse = (rng.standard_normal((4, 2, 3, 5)) * 3).astype(np.float32)
    wide, narrow = np.zeros(o.shape[1:], np.float32), np.zeros(o.shape[1:], NUMPY[dtype])
    sums = [np.full(lse.shape[1:], -np.inf, np.float32) for _ in range(2)]
    build("softmax_merge_all", dtype)(o, lse, wide, sums[0])
    build_narrow("softmax_merge_all", dtype)(o, lse, narrow, sums[1])
    weights = np.exp(lse - np.logaddexp.reduce(lse)).swapaxes(2, 3)[..., None]
    want = (decode(o, dtype) * weights).sum(axis=0)
    assert within(wide, want, 64 * np.finfo(np.float32).eps * np.ones_like(want))
    np.testing.assert_array_equal(narrow, encode(wide, dtype))
    np.testing.assert_array_equal(*sums)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("parts", "length"), [(0, 5), (1, 256), (5, 1003), (3, 0)])
def test_sum_all(dtype: str, parts: int, length: int) -> None:
    rng = np.random.default_rng(parts)
    acc = NUMPY[accumulator(dtype)]
    shape = (2, 1, 3, length)
    x = scatter(encode(rng.standard_normal((parts, *shape)), dtype), rng)
    start = rng.standard_normal(shape).astype(acc)
    y = scatter(start, rng)
    build("sum_all", dtype)(x, y)
    terms = decode(x, dtype)
    want = start.astype(np.float64) + terms.sum(axis=0)
    bound = (parts + 1) * np.finfo(acc).eps * (np.abs(start) + np.abs(terms).sum(axis=0))
    assert within(y, want, bound)
    # Term by term in the order of the first dimension, whatever arrived first.
    one = start.copy()
    for term in terms:
        one += term.astype(acc)
    np.testing.assert_array_equal(y, one)
    narrow = scatter(encode(np.zeros(shape), dtype), rng)
    build_narrow("sum_all", dtype)(x, narrow)
    zero = np.zeros(shape, acc)
    build("sum_all", dtype)(x, zero)
    np.testing.assert_array_equal(narrow, encode(zero, dtype))
