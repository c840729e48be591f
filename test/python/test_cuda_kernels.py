"""Attention on a GPU cut into calls of a library, and the calls that plain products make."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.cuda.kernels import KERNELS
from mercury.cuda.kernels.pieces import Piece, cut_heads, cut_mask
from mercury.cuda.launch import DeviceLaunch

FAR = 1 << 40


def seen(piece: Piece, rows: int, keys: int) -> np.ndarray:
    """The pairs of a tile that a piece computes."""
    found = np.zeros((rows, keys), int)
    (row, row_end), (key, key_end) = piece.rows, piece.keys
    ahead = (key_end - key) - (row_end - row)
    r, c = np.arange(row_end - row)[:, None] + ahead, np.arange(key_end - key)
    allowed = np.ones((row_end - row, key_end - key), bool)
    if piece.right is not None:
        allowed &= c <= r + piece.right
    if piece.left is not None:
        allowed &= c >= r - piece.left
    assert allowed.any(axis=1).all(), f"a row of {piece} sees nothing"
    found[row:row_end, key:key_end] = allowed
    return found


@pytest.mark.parametrize(("rows", "keys"), [*itertools.product((1, 2, 5), (1, 3, 4))])
def test_pieces_cover_each_pair_of_a_band_once(rows: int, keys: int) -> None:
    bounds = (*range(-6, 7), FAR)
    ahead = np.arange(keys) - np.arange(rows)[:, None]
    for left, right in itertools.product(bounds, bounds):
        pieces = cut_mask(rows, keys, left, right)
        total = sum((seen(piece, rows, keys) for piece in pieces), np.zeros((rows, keys), int))
        np.testing.assert_array_equal(total, (ahead <= right) & (ahead >= -left))
        if left == FAR:
            assert all(piece.is_full or piece.is_causal for piece in pieces)


@pytest.mark.parametrize(("first", "heads", "group"), [(0, 8, 4), (3, 6, 4), (1, 2, 4)])
def test_runs_of_heads_have_as_many_for_each_key_head(
    first: int, heads: int, group: int
) -> None:
    found = {}
    for (own, own_end), (key, key_end) in cut_heads(first, heads, first // group, group):
        each, rest = divmod(own_end - own, key_end - key)
        assert rest == 0
        found.update({head: key + (head - own) // each for head in range(own, own_end)})
    assert found == {h: (first + h) // group - first // group for h in range(heads)}


def test_the_face_of_gpus_loads_no_library() -> None:
    text = (
        "import sys, mercury as mc; mc.cuda.Session, mc.cuda.CudaPlan; "
        "sys.exit('torch' in sys.modules or '_mercury' in ' '.join(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


@dataclass
class HostTile:
    """A tensor where a kernel expects a tile."""

    tensor: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)


def tiles(torch: Any, arrays: list[np.ndarray]) -> tuple[HostTile, ...]:
    return tuple(HostTile(torch.from_numpy(array)) for array in arrays)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


MASKS = {
    "full": mc.full(),
    "causal": mc.causal(),
    "window": mc.window(3, 1),
    "ahead": mc.causal(4),
}


def bounds(mask: mc.Mask) -> dict[str, float]:
    far = {None: FAR}
    return {"left": far.get(mask.left, mask.left), "right": far.get(mask.right, mask.right)}


def inputs(rows: int, keys: int, group: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = ((rows, 4), (keys, 4 // group), (keys, 4 // group))
    return [rng.standard_normal((2, count, heads, 8)) for count, heads in shapes]


@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("name", MASKS)
def test_attention_over_two_tiles_of_keys_is_attention(
    torch: Any, name: str, group: int, overwrites: bool
) -> None:
    q, k, v = inputs(7, 9, group)
    expected, sums = reference.attention(q, k, v, mask=MASKS[name])
    o, lse = np.zeros_like(q), np.full((2, 4, 7), -np.inf)
    for number, (first, end) in enumerate(((0, 4), (4, 9))):
        if overwrites and number == 0:
            o[:], lse[:] = np.nan, np.nan
        KERNELS["torch.attention_fwd"](
            DeviceLaunch(
                inputs=tiles(torch, [q, k[:, first:end], v[:, first:end]]),
                outputs=tiles(torch, [o, lse]),
                parameters={
                    "scale": 8**-0.5,
                    "group": group,
                    "at_sq": 0,
                    "at_sk": first,
                    "at_h": 0,
                    "at_h/g": 0,
                    "overwrite": 3 if overwrites and number == 0 else 0,
                    **bounds(MASKS[name]),
                },
                stream=0,
            )
        )
    np.testing.assert_allclose(o, expected, atol=1e-12)
    np.testing.assert_allclose(lse, sums, atol=1e-12)


@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("name", MASKS)
def test_gradients_of_a_tile_are_added_or_written(
    torch: Any, name: str, group: int, overwrites: bool
) -> None:
    q, k, v = inputs(7, 9, group)
    grad = np.random.default_rng(2).standard_normal(q.shape)
    o, lse = reference.attention(q, k, v, mask=MASKS[name])
    expected = reference.attention_backward(q, k, v, grad, mask=MASKS[name])
    results = [np.full(x.shape, np.nan if overwrites else 0.25) for x in (q, k, v)]
    KERNELS["torch.attention_bwd"](
        DeviceLaunch(
            inputs=tiles(torch, [q, k, v, o, grad, lse]),
            outputs=tiles(torch, results),
            parameters={
                "scale": 8**-0.5,
                "group": group,
                "at_sq": 0,
                "at_sk": 0,
                "at_h": 0,
                "at_h/g": 0,
                "overwrite": 7 if overwrites else 0,
                **bounds(MASKS[name]),
            },
            stream=0,
        )
    )
    for result, exact in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, exact + (0 if overwrites else 0.25), atol=1e-12)


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_product_is_added_or_written(torch: Any, overwrites: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((5, 3)), rng.standard_normal((3, 4))
    c = np.full((5, 4), np.nan if overwrites else 0.25)
    KERNELS["cublas.matmul"](
        DeviceLaunch(
            inputs=tiles(torch, [a, b]),
            outputs=tiles(torch, [c]),
            parameters={"overwrite": int(overwrites)},
            stream=0,
        )
    )
    np.testing.assert_allclose(c, a @ b + (0 if overwrites else 0.25), atol=1e-14)
