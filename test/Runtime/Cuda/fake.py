"""The fake driver from Python: memory, work in streams, and what kernels of plans do.

Everything is float32 on the host. Kernels put their work into streams, and the fake
devices do it in random order unless something orders it, as in the C++ tests.
"""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from mercury.cuda import DeviceLaunch, DeviceTile
from mercury.dsl import Mask
from mercury.reference import attention

LIBRARY = ctypes.CDLL(os.environ["MERCURY_RT_CUDA_LIBRARY"])
_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))
_kept: list[Any] = []  # work may be done again, in a graph
FAR = 1 << 40


class DeviceArray:
    """An array in the memory of a fake device.

    Parameters
    ----------
    values
        What it holds first.
    """

    def __init__(self, values: np.ndarray) -> None:
        place = ctypes.c_void_p()
        size = max(values.nbytes, 1)
        assert LIBRARY.fake_cuda_allocate(ctypes.byref(place), ctypes.c_uint64(size)) == 0
        self._place = place
        memory = (ctypes.c_char * size).from_address(place.value or 0)
        self.array = np.ndarray(values.shape, values.dtype, memory)
        self.array[...] = values
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (place.value, False),
            "version": 3,
        }

    def free(self) -> None:
        """Give the memory back, which makes leaks seen."""
        LIBRARY.fake_cuda_free(self._place)


def enqueue(stream: int, work: Callable[[], None]) -> None:
    """Put work into a stream, as a library does."""

    def body(_: int) -> None:
        try:
            work()
        except BaseException:  # it would be lost in a thread of the device
            traceback.print_exc()
            os._exit(70)

    _kept.append(_BODY(body))
    LIBRARY.fake_cuda_enqueue(ctypes.c_void_p(stream), _kept[-1], None)


def view(address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """A float32 array with strides in elements."""
    if 0 in shape:
        return np.empty(shape, np.float32)
    count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * (4 * count)).from_address(address)
    return np.ndarray(shape, np.float32, memory, strides=[4 * stride for stride in strides])


def array_of(tile: DeviceTile) -> np.ndarray:
    """The memory of a tile."""
    assert tile.dtype == "f32"
    return view(tile.address, tile.shape, tile.strides)


# --- Kernels by name ------------------------------------------------------------------------


def merge(o: np.ndarray, lse: np.ndarray, part: np.ndarray, total: np.ndarray) -> None:
    """Merge (part, total) into (o, lse); lse is ``b h s``."""
    merged = np.logaddexp(lse, total)
    at = np.where(merged == -np.inf, 0.0, merged)
    before, now = (np.exp(x - at).swapaxes(1, 2)[..., None] for x in (lse, total))
    o[...] = o * before + part * now
    lse[...] = merged


def attention_fwd(launch: DeviceLaunch) -> None:
    """Attention of a tile, on the device's thread."""
    q, k, v = map(array_of, launch.inputs)
    o, lse = map(array_of, launch.outputs)
    n = {name: int(value) for name, value in launch.parameters.items() if name != "scale"}
    ahead = n["at_sk"] - n["at_sq"]
    far = n["left"] >= FAR, n["right"] >= FAR
    mask = Mask(
        left=None if far[0] else n["left"] + ahead, right=None if far[1] else n["right"] - ahead
    )

    def work() -> None:
        if launch.overwrites(0):
            o[...], lse[...] = 0, -np.inf
        if q.size and k.size:
            heads = (np.arange(q.shape[2]) + n["at_h"]) // n["group"] - n["at_h/g"]
            with np.errstate(invalid="ignore"):
                part, total = attention(
                    q,
                    k[:, :, heads],
                    v[:, :, heads],
                    mask=mask,
                    scale=launch.parameters["scale"],
                )
                merge(o, lse, part, total)

    enqueue(launch.stream, work)


def matmul(launch: DeviceLaunch) -> None:
    """A product of a tile."""
    a, b = map(array_of, launch.inputs)
    (c,) = map(array_of, launch.outputs)

    def work() -> None:
        c[...] = a @ b + (0 if launch.overwrites(0) else c)

    enqueue(launch.stream, work)


KERNELS = {"mine.attention_fwd": attention_fwd, "mine.matmul": matmul}


# --- Kernels of the plan's image ------------------------------------------------------------


class Fields:
    """What a kernel of an image is given: 8 bytes an argument."""

    def __init__(self, given: Any) -> None:
        self._given, self._next = given, 0

    def _take(self, kind: Any) -> Any:
        value = ctypes.cast(self._given[self._next], ctypes.POINTER(kind))[0]
        self._next += 1
        return value

    def number(self) -> float:
        return float(self._take(ctypes.c_float))

    def memref(self, rank: int) -> np.ndarray:
        fields = [self._take(ctypes.c_int64) for _ in range(3 + 2 * rank)]
        start, offset = fields[1], fields[2]
        return view(start + 4 * offset, tuple(fields[3 : 3 + rank]), tuple(fields[3 + rank :]))


def define(name: str, fields: int, body: Callable[[Fields], None]) -> None:
    """Say what a kernel does."""

    def run(given: Any) -> None:
        try:
            body(Fields(given))
        except BaseException:
            traceback.print_exc()
            os._exit(70)

    _kept.append(_KERNEL(run))
    LIBRARY.fake_cuda_define(name.encode(), fields, _kept[-1])


def _copy(fields: Fields) -> None:
    x, y = fields.memref(4), fields.memref(4)
    y[...] = x


def _fill(fields: Fields) -> None:
    x, value = fields.memref(4), fields.number()
    x[...] = value


def _accumulate(fields: Fields) -> None:
    x, y = fields.memref(4), fields.memref(4)
    y += x


def _softmax_merge(fields: Fields) -> None:
    part, total = fields.memref(4), fields.memref(3)
    o, lse = fields.memref(4), fields.memref(3)
    with np.errstate(invalid="ignore"):
        merge(o, lse, part, total)


def _softmax_merge_all(overwrites: bool) -> Callable[[Fields], None]:
    def body(fields: Fields) -> None:
        parts, totals = fields.memref(5), fields.memref(4)
        o, lse = fields.memref(4), fields.memref(3)
        if overwrites:
            o[...], lse[...] = 0, -np.inf
        with np.errstate(invalid="ignore"):
            for part, total in zip(parts, totals, strict=True):
                merge(o, lse, part, total)

    return body


def _sum_all(overwrites: bool) -> Callable[[Fields], None]:
    def body(fields: Fields) -> None:
        x, y = fields.memref(5), fields.memref(4)
        if overwrites:
            y[...] = 0
        for part in x:
            y += part

    return body


for _bits in ("f32_f32_f32", "i32_i32_i32"):
    define(f"copy_{_bits}", 22, _copy)
define("fill_i32_i32_i32", 12, _fill)  # the bits of a number
define("accumulate_f32_f32_f32", 22, _accumulate)
define("softmax_merge_f32_f32_f32", 40, _softmax_merge)
for _suffix, _overwrites in (("", False), ("_overwrite", True)):
    _name = f"_all_f32_f32_f32{_suffix}"
    define(f"softmax_merge{_name}", 44, _softmax_merge_all(_overwrites))
    define(f"sum{_name}", 24, _sum_all(_overwrites))
