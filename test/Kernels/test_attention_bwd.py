"""Gradients of attention against float64, tile by tile in random order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from attention_problem import ATTENTION, Attention, reference
from compiled import DTYPES, NUMPY, UNBOUNDED, Array, accumulator, build
from tiles import check_guard, cut, decode, encode, scatter, scratch, within

Gradients = tuple[Array, Array, Array]


def gradients(
    case: Attention, q: Array, k: Array, v: Array, o: Array, do: Array, lse: Array, scale: float
) -> tuple[Gradients, Gradients]:
    """Return dq, dk and dv and the sums of magnitudes that their errors scale with.

    The formulas of the kernel's meaning, of the o and lse that it is given.
    """
    many_k, many_v = (np.repeat(x, case.group, axis=2) for x in (k, v))
    s = scale * np.einsum("bihd,bjhd->bhij", q, many_k)
    s = np.where(case.seen(slice(0, case.sq), slice(0, case.sk)), s, -np.inf)
    empty = np.isneginf(lse)
    p = np.where(empty[..., None], 0, np.exp(s - np.where(empty, 0, lse)[..., None]))
    dp = np.einsum("bihe,bjhe->bhij", do, many_v)
    delta = np.einsum("bihe,bihe->bhi", do, o)
    ds = scale * p * (dp - delta[..., None])
    # A product that is cancelled leaves its rounding error.
    loud = np.einsum("bihe,bjhe->bhij", *map(np.abs, (do, many_v)))
    loud += np.einsum("bihe,bihe->bhi", *map(np.abs, (do, o)))[..., None]
    weight = np.einsum("bihd,bjhd->bhij", *map(np.abs, (q, many_k))) * scale
    loud_ds, loud_p = scale * p * loud * (1 + weight), p * (1 + weight)

    def grouped(x: Array) -> Array:
        b, sk, h, depth = x.shape
        return x.reshape(b, sk, h // case.group, case.group, depth).sum(axis=3)

    def products(ds: Array, p: Array, q: Array, k: Array, do: Array) -> Gradients:
        return (
            np.einsum("bhij,bjhd->bihd", ds, k),
            grouped(np.einsum("bhij,bihd->bjhd", ds, q)),
            grouped(np.einsum("bhij,bihe->bjhe", p, do)),
        )

    return (
        products(ds, p, q, many_k, do),
        products(loud_ds, loud_p, np.abs(q), np.abs(many_k), np.abs(do)),
    )


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_backward_tiles(dtype: str, name: str) -> None:
    case = ATTENTION[name]
    rng = np.random.default_rng(len(name))
    acc = NUMPY[accumulator(dtype)]
    g, scale = case.group, case.d**-0.5

    def draw(rows: int, heads: int, depth: int) -> Array:
        return scatter(encode(rng.standard_normal((case.b, rows, heads, depth)), dtype), rng)

    q, do = draw(case.sq, case.h, case.d), draw(case.sq, case.h, case.dv)
    k, v = draw(case.sk, case.h // g, case.d), draw(case.sk, case.h // g, case.dv)
    exact = [decode(x, dtype) for x in (q, k, v)]
    whole_o, whole_lse, _ = reference(case, *exact, scale=scale)
    o, lse = scatter(encode(whole_o, dtype), rng), scatter(whole_lse.astype(acc), rng)
    exact += [decode(o, dtype), decode(do, dtype), lse.astype(np.float64)]
    want, magnitudes = gradients(case, *exact, scale)
    # Of sums over d, dv, queries and keys; a few for exp and the products.
    terms = case.d + case.dv + case.sq * g + case.sk + 16
    bounds = [terms * np.finfo(acc).eps * m for m in magnitudes]

    tiles = [
        (i, j, h)
        for i in cut(case.sq, 2, rng)
        for j in cut(case.sk, 3, rng)
        for h in cut(case.h, 2, rng)
    ]
    rng.shuffle(tiles)
    work = scratch("attention_bwd", case.d, case.dv, dtype)

    def run(tiles: Sequence[tuple[slice, slice, slice]]) -> list[bool]:
        made = [scatter(np.zeros_like(x, acc), rng) for x in want]
        for i, j, h in tiles:
            hk = slice(h.start // g, -(-h.stop // g))
            build("attention_bwd", dtype)(
                *(q[:, i, h], k[:, j, hk], v[:, j, hk], o[:, i, h], do[:, i, h], lse[:, h, i]),
                *(made[0][:, i, h], made[1][:, j, hk], made[2][:, j, hk], work, scale),
                *(case.ahead + i.start, j.start, h.start, hk.start, g, case.left, case.right),
            )
        check_guard(work)
        return [within(*each) for each in zip(made, want, bounds, strict=True)]

    assert all(run(tiles))
    # Of one key the weight is 1 whatever the score: nothing but dv is not 0.
    alive = [True, True, True] if case.sk > 1 else [False, False, True]
    zeros = [
        not within(np.zeros_like(w), w, bound) for w, bound in zip(want, bounds, strict=True)
    ]
    assert [a and z for a, z in zip(alive, zeros, strict=True)] == alive
    counting = [
        t for t, (i, j, h) in enumerate(tiles) if h.stop > h.start and case.seen(i, j).any()
    ]
    for lost in rng.permutation(counting)[:3]:
        assert not any(run(tiles[:lost] + tiles[lost + 1 :])[2 - 2 * alive[0] :])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "sizes", [(0, 5, 2, 3), (5, 0, 2, 3), (5, 5, 0, 3), (5, 5, 2, 0), (5, 5, 2, 3)]
)
def test_backward_of_what_is_hidden_changes_no_bit(
    dtype: str, sizes: tuple[int, int, int, int]
) -> None:
    sq, sk, h, depth = sizes
    rng = np.random.default_rng(sum(sizes))
    acc = NUMPY[accumulator(dtype)]

    def full(rows: int) -> Array:
        return encode(np.full((1, rows, h, depth), np.nan), dtype)

    lse = rng.standard_normal((1, h, sq)).astype(acc)
    made = [rng.standard_normal((1, rows, h, depth)).astype(acc) for rows in (sq, sk, sk)]
    before = [x.tobytes() for x in made]
    work = scratch("attention_bwd", depth, depth, dtype)
    # Every key lies after every query and the mask is causal.
    operands = (full(sq), full(sk), full(sk), full(sq), full(sq), lse, *made, work)
    build("attention_bwd", dtype)(*operands, 1.0, 0, 100, 0, 0, 1, UNBOUNDED, 0)
    assert [x.tobytes() for x in made] == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_of_a_single_key_leaves_no_rounding(dtype: str) -> None:
    rng = np.random.default_rng(0)
    acc = NUMPY[accumulator(dtype)]
    q, k = (encode(rng.standard_normal((1, n, 1, 7)), dtype) for n in (5, 1))
    v, do = (encode(rng.standard_normal((1, n, 1, 9)), dtype) for n in (1, 5))
    o = np.repeat(v, 5, axis=1)
    lse = np.einsum("bihd,bjhd->bhi", decode(q, dtype), decode(k, dtype)).astype(acc)
    made = [np.zeros(x.shape, acc) for x in (q, k, v)]
    work = scratch("attention_bwd", 7, 9, dtype)
    scalars = (1.0, 0, 0, 0, 0, 1, UNBOUNDED, UNBOUNDED)
    build("attention_bwd", dtype)(q, k, v, o, do, lse, *made, work, *scalars)
    assert not made[0].any()
    assert not made[1].any()
    np.testing.assert_allclose(made[2], decode(do, dtype).sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_of_a_row_that_saw_nothing_is_zero(dtype: str) -> None:
    acc = NUMPY[accumulator(dtype)]
    one = np.ones((1, 2, 1, 1))
    q = encode(one * [[[[np.inf]], [[1]]]], dtype)  # row 0 is never read
    k, v, do = (encode(one * x, dtype) for x in (2.0, [[[[3.0]], [[5.0]]]], 1.0))
    o = encode(one * [[[[np.nan]], [[4.0]]]], dtype)
    lse = np.array([[[-np.inf, 2 + np.log(2)]]], acc)
    made = [np.zeros((1, 2, 1, 1), acc) for _ in range(3)]
    work = scratch("attention_bwd", 1, 1, dtype)
    far = 2**63 - 1
    operands = (q, k, v, o, do, lse, *made, work)
    build("attention_bwd", dtype)(*operands, 1.0, 2**40, 0, 0, 0, 1, far, far)
    # Both keys weigh 1/2, ds = 1/2 * (3 - 4) and 1/2 * (5 - 4).
    for got, want in zip(made, ([0, 0], [-0.5, 0.5], [0.5, 0.5]), strict=True):
        np.testing.assert_allclose(got.ravel(), want, rtol=1e-6)
