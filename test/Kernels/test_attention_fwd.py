"""Attention against float64, tile by tile in random order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from attention_problem import ATTENTION, reference
from compiled import DTYPES, NARROW, NUMPY, UNBOUNDED, Array, accumulator, build, build_narrow
from tiles import check_guard, cut, decode, encode, scatter, scratch, within


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_tiles(dtype: str, name: str) -> None:
    case = ATTENTION[name]
    rng = np.random.default_rng(len(name))
    acc = NUMPY[accumulator(dtype)]
    g, scale = case.group, case.d**-0.5

    def draw(rows: int, heads: int, depth: int) -> Array:
        return scatter(encode(rng.standard_normal((case.b, rows, heads, depth)), dtype), rng)

    q = draw(case.sq, case.h, case.d)
    k = draw(case.sk, case.h // g, case.d)
    v = draw(case.sk, case.h // g, case.dv)
    want_o, want_lse, magnitude = reference(
        case, *(decode(x, dtype) for x in (q, k, v)), scale=scale
    )
    # Scores are sums of d products; 16 covers exp, the merges and the divisions.
    eps = (case.d + 16) * np.finfo(acc).eps
    bounds = eps * magnitude, eps * (1 + np.abs(want_lse))

    def identity(rows: slice, heads: slice) -> tuple[Array, Array]:
        sq, h = rows.stop - rows.start, heads.stop - heads.start
        o = scatter(np.zeros((case.b, sq, h, case.dv), acc), rng)
        return o, scatter(np.full((case.b, h, sq), -np.inf, acc), rng)

    tiles = [
        (i, j, h, bool(rng.integers(2)))
        for i in cut(case.sq, 2, rng)
        for j in cut(case.sk, 4, rng)
        for h in cut(case.h, 2, rng)
    ]
    rng.shuffle(tiles)

    work = scratch("attention_fwd", case.d, case.dv, dtype)

    def run(tiles: Sequence[tuple[slice, slice, slice, bool]]) -> tuple[Array, Array]:
        o, lse = identity(slice(0, case.sq), slice(0, case.h))
        for i, j, h, apart in tiles:
            hk = slice(h.start // g, -(-h.stop // g))
            into = o[:, i, h], lse[:, h, i]
            part = identity(i, h) if apart else into
            build("attention_fwd", dtype)(
                *(q[:, i, h], k[:, j, hk], v[:, j, hk], *part, work, scale),
                *(case.ahead + i.start, j.start, h.start, hk.start, g, case.left, case.right),
            )
            if apart:
                build("softmax_merge", accumulator(dtype))(*part, *into)
        check_guard(work)
        return o, lse

    def right(o: Array, lse: Array) -> tuple[bool, bool]:
        return within(o, want_o, bounds[0]), within(lse, want_lse, bounds[1])

    assert right(*run(tiles)) == (True, True)
    assert right(np.zeros_like(want_o), np.zeros_like(want_lse)) == (False, False)
    counting = [
        t for t, (i, j, h, _) in enumerate(tiles) if h.stop > h.start and case.seen(i, j).any()
    ]
    for lost in rng.permutation(counting)[:3]:
        rest = tiles[:lost] + tiles[lost + 1 :]
        assert right(*run(rest)) == (False, False)


@pytest.mark.parametrize("dtype", NARROW)
def test_attention_rounds_a_narrow_result_once(dtype: str) -> None:
    rng = np.random.default_rng(5)
    q = encode(rng.standard_normal((2, 90, 4, 24)), dtype)
    k, v = (encode(rng.standard_normal((2, 150, 2, d)), dtype) for d in (24, 70))
    work = scratch("attention_fwd", 24, 70, dtype)
    made = []
    for out, kernel in ((np.float32, build), (NUMPY[dtype], build_narrow)):
        o, lse = np.zeros((2, 90, 4, 70), out), np.full((2, 4, 90), -np.inf, np.float32)
        # The first 20 queries see nothing.
        given = (0.2, 0, 20, 0, 0, 2, UNBOUNDED, 0)
        kernel("attention_fwd", dtype)(q, k, v, o, lse, work, *given)
        made.append((o, lse))
    (wide, lse), (narrow, same) = made
    assert not wide[:, :20].any()
    assert wide[:, 20:].all()
    np.testing.assert_array_equal(narrow, encode(wide, dtype))
    np.testing.assert_array_equal(lse, same)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", ["identity", "filled"])
@pytest.mark.parametrize(
    "sizes", [(0, 5, 2, 3), (5, 0, 2, 3), (5, 5, 0, 3), (5, 5, 2, 0), (5, 5, 2, 3)]
)
def test_attention_that_sees_nothing_changes_no_bit(
    dtype: str, start: str, sizes: tuple[int, int, int, int]
) -> None:
    sq, sk, h, depth = sizes
    rng = np.random.default_rng(sum(sizes))
    acc = NUMPY[accumulator(dtype)]
    q = encode(rng.standard_normal((1, sq, h, depth)), dtype)
    k = encode(rng.standard_normal((1, sk, h, depth)), dtype)
    o = rng.standard_normal((1, sq, h, depth)).astype(acc)
    lse = rng.standard_normal((1, h, sq)).astype(acc)
    if start == "identity":
        o[...], lse[...] = 0, -np.inf
    before = o.tobytes(), lse.tobytes()
    # Every key lies after every query and the mask is causal.
    work = scratch("attention_fwd", depth, depth, dtype)
    build("attention_fwd", dtype)(q, k, k, o, lse, work, 1.0, 0, 100, 0, 0, 1, UNBOUNDED, 0)
    assert (o.tobytes(), lse.tobytes()) == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_extremes(dtype: str) -> None:
    acc = NUMPY[accumulator(dtype)]
    everything = 2**63 - 1

    def attend(q: Sequence[float], k: Sequence[float]) -> tuple[Array, Array]:
        queries = encode(np.reshape(np.array(q, float), (1, -1, 1, 1)), dtype)
        keys = encode(np.reshape(np.array(k, float), (1, -1, 1, 1)), dtype)
        ones = encode(np.ones_like(keys, float), dtype)
        o = np.zeros((1, len(q), 1, 1), acc)
        lse = np.full((1, 1, len(q)), -np.inf, acc)
        scalars = (1.0, 2**40, 0, 0, 0, 1, everything, everything)
        work = scratch("attention_fwd", 1, 1, dtype)
        build("attention_fwd", dtype)(queries, keys, ones, o, lse, work, *scalars)
        return o.ravel(), lse.ravel()

    o, lse = attend([200, -200], [200, 100])  # exp(40000) overflows in any type
    np.testing.assert_array_equal(o, [1, 1])
    np.testing.assert_array_equal(lse, [40000, -20000])
    o, lse = attend([1, -1], [-np.inf, -np.inf, 3])  # scores -inf, then scores +inf
    np.testing.assert_allclose((o[0], lse[0]), (1, 3))
    assert np.isnan(o[1])
    o, lse = attend([1], [-np.inf] * 3)
    np.testing.assert_array_equal((o[0], lse[0]), (0, -np.inf))
    o, lse = attend([np.nan, 1], [1, 2])  # a NaN shows, and in its own row only
    np.testing.assert_array_equal(np.isnan([o, lse]), [[True, False]] * 2)
