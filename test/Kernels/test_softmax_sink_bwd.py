"""The gradient by an attention sink against float64, tile by tile in random order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compiled import DTYPES, NUMPY, Array, accumulator, build
from tiles import cut, decode, encode, scatter, within


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_sink_backward_tiles(dtype: str) -> None:
    rng = np.random.default_rng(0)
    acc = NUMPY[accumulator(dtype)]
    b, s, h, dv = 3, 11, 4, 7
    o, do = (scatter(encode(rng.standard_normal((b, s, h, dv)), dtype), rng) for _ in range(2))
    lse = scatter((rng.standard_normal((b, h, s)) * 2).astype(acc), rng)
    sink = scatter(np.array([0.5, -3.0, 2.0, -np.inf], acc), rng)
    # A row that saw nothing is not read.
    lse[:, :, 4], o[:, 4] = -np.inf, encode(np.full((b, h, dv), np.nan), dtype)
    alive = np.arange(s) != 4
    exact = [decode(x[:, alive], dtype) for x in (o, do)]
    share = np.exp(sink.astype(np.float64)[None, :, None] - lse[:, :, alive])
    want = -np.einsum("bhi,bihe,bihe->h", share, *exact)
    loud = np.einsum("bhi,bihe,bihe->h", share, *map(np.abs, exact))
    bound = (dv + b * s + 16) * np.finfo(acc).eps * loud

    tiles = [(b, i, h) for b in cut(3, 2, rng) for i in cut(s, 3, rng) for h in cut(4, 2, rng)]
    rng.shuffle(tiles)

    def run(tiles: Sequence[tuple[slice, slice, slice]]) -> Array:
        made = scatter(np.zeros(4, acc), rng)
        for b, i, h in tiles:
            operands = (o[b, i, h], do[b, i, h], lse[b, h, i], sink[h], made[h])
            build("softmax_sink_bwd", dtype)(*operands)
        return made

    assert within(run(tiles), want, bound)
    assert not within(np.zeros(4, acc), want, bound)
    counting = [
        t
        for t, (b, i, h) in enumerate(tiles)
        if b.stop > b.start and alive[i].any() and h.stop > h.start and h.start < 3
    ]
    for lost in rng.permutation(counting)[:3]:
        assert not within(run(tiles[:lost] + tiles[lost + 1 :]), want, bound)
