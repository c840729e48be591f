"""Numbers of any type, tiles of any strides, and memory that kernels work in."""

from __future__ import annotations

import itertools

import numpy as np
from compiled import NUMPY, Array, accumulator


def encode(x: Array, dtype: str) -> Array:
    """Round to `dtype`, to nearest even. bf16 is the upper half of a float32."""
    if dtype != "bf16":
        with np.errstate(over="ignore"):
            return x.astype(NUMPY[dtype])
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def decode(x: Array, dtype: str) -> Array:
    if dtype != "bf16":
        return x.astype(np.float64)
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def scatter(x: Array, rng: np.random.Generator) -> Array:
    """Return the same array with its dims in a random order in memory, and gaps."""
    order = rng.permutation(x.ndim)
    big = np.zeros([2 * x.shape[d] + 1 for d in order], x.dtype)
    view = big[tuple(slice(1, None, 2) for _ in order)].transpose(np.argsort(order))
    view[...] = x
    return view


def cut(extent: int, parts: int, rng: np.random.Generator) -> list[slice]:
    """Cut range(extent) into uneven parts, the first one always empty."""
    inner = np.sort(rng.integers(0, extent + 1, parts - 1))
    points = [0, 0, *map(int, inner), extent]
    return [slice(a, b) for a, b in itertools.pairwise(points)]


def within(got: Array, want: Array, bound: Array) -> bool:
    same = np.isneginf(got) & np.isneginf(want)
    with np.errstate(invalid="ignore"):
        return bool(np.all(same | (np.abs(got - want) <= bound)))


def scratch(kernel: str, d: int, dv: int, dtype: str) -> Array:
    """Return what README.md says that a kernel works in, full of NaN, with a guard behind."""
    d64, dv64 = -(-d // 64) * 64, -(-dv // 64) * 64
    elements = {
        "attention_fwd": 64 * (2 * d + 2 * dv64),
        "attention_bwd": 64 * (d + dv + 2 * d64 + dv64 + 128),
    }[kernel]
    memory = np.full(elements + 64, np.nan, NUMPY[accumulator(dtype)])
    memory[elements:] = 7
    return memory[:elements]


def check_guard(memory: Array) -> None:
    """Fail when a kernel wrote behind its scratch memory."""
    assert (memory.base[len(memory) :] == 7).all()
