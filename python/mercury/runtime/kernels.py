"""Kernels that a run brings along, for `patch(kernel, impl)`.

A plan looks an implementation up as ``"impl.kernel"`` when it runs. The function gets a
`Launch`, merges into its results in place, and returns nothing; what it raises ends the
run with a message that names the rank. Ranks are threads: it may run on many at once.
Those named ``"torch.*"`` are always there; PyTorch is imported when one of them runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import RunError
from . import torch_kernels
from .dtypes import storage

__all__ = ["Kernel", "KernelTable", "Launch", "Tile"]

_ELEMENT_TYPES = {1: "f16", 2: "bf16", 3: "f32", 4: "f64"}
_FAILED = 100  # MERCURY_RT_FIRST_FREE


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A tile in a rank's memory.

    Attributes
    ----------
    array
        A view of it, with whatever strides; bfloat16 as the bits in uint16.
    dtype
        ``"f16"``, ``"bf16"``, ``"f32"`` or ``"f64"``.
    """

    array: NDArray[Any]
    dtype: str


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a kernel is called with.

    Attributes
    ----------
    inputs
        Only to be read.
    outputs
        To be merged into: they hold the merge's identity, or what came before. In float32 or
        float64, or in the buffer's own type where one launch makes all of the result.
    parameters
        Numbers by name: for ``attention_fwd`` its ``scale``, the global positions
        ``at_sq``, ``at_sk``, ``at_h`` and ``at_h/g`` where the tiles begin, the ``group``
        of heads that share a key head, and how far ``left`` and ``right`` a row sees.

    Examples
    --------
    >>> import mercury as mc
    >>> from mercury.runtime import SimOptions
    >>> def product(launch):
    ...     a, b = (tile.array for tile in launch.inputs)
    ...     launch.outputs[0].array[...] += a @ b
    >>> s = mc.Schedule(mc.programs.matmul(m=4, n=4, depth=4, dtype="f32"), mc.Mesh(gpu=2))
    >>> plan = s.parallelize("i", "gpu").patch("matmul", "mine").compile()
    >>> shards = plan.scatter(A=2 * np.eye(4), B=np.eye(4))
    >>> result = plan.run(shards, SimOptions(kernels={"mine.matmul": product}))
    >>> float(plan.gather(result).trace())
    8.0
    """

    inputs: tuple[Tile, ...]
    outputs: tuple[Tile, ...]
    parameters: Mapping[str, float]


Kernel = Callable[[Launch], None]


class _Tile(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("element_type", ctypes.c_int32),
        ("rank", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )

    def view(self) -> Tile:
        dtype = _ELEMENT_TYPES[self.element_type]
        element = storage(dtype)
        shape = tuple(self.sizes[: self.rank])
        strides = tuple(stride * element.itemsize for stride in self.strides[: self.rank])
        if 0 in shape:
            return Tile(array=np.empty(shape, element), dtype=dtype)
        span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        memory = (ctypes.c_char * (span + element.itemsize)).from_address(self.data)
        return Tile(array=np.ndarray(shape, element, memory, strides=strides), dtype=dtype)


class _Parameter(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("integer", ctypes.c_int64),
        ("number", ctypes.c_double),
    )


class _Arguments(ctypes.Structure):
    _fields_ = (
        ("number_of_inputs", ctypes.c_int64),
        ("inputs", ctypes.POINTER(_Tile)),
        ("number_of_outputs", ctypes.c_int64),
        ("outputs", ctypes.POINTER(_Tile)),
        ("number_of_parameters", ctypes.c_int64),
        ("parameters", ctypes.POINTER(_Parameter)),
    )

    def launch(self) -> Launch:
        given = self.parameters[: self.number_of_parameters]
        return Launch(
            inputs=tuple(tile.view() for tile in self.inputs[: self.number_of_inputs]),
            outputs=tuple(tile.view() for tile in self.outputs[: self.number_of_outputs]),
            parameters={
                one.name.decode(): one.number if one.name == b"scale" else one.integer
                for one in given
            },
        )


_Function = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.POINTER(_Arguments),
    ctypes.c_void_p,
    ctypes.c_int64,
)


class _Entry(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", _Function),
        ("user_data", ctypes.c_void_p),
    )


class KernelTable:
    """Python functions as the runtime's table of kernels.

    Parameters
    ----------
    kernels
        By name; they come before those that are always there.

    Attributes
    ----------
    cause
        The first exception that one of them raised.
    """

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        for name, kernel in kernels.items():
            if not callable(kernel) or "." not in name:
                raise RunError(
                    f"a kernel is a function by a name such as 'mine.matmul', the "
                    f"implementation and the kernel, got {name!r}: {kernel!r}"
                )
        table = {**torch_kernels.KERNELS, **kernels}
        self.cause: BaseException | None = None
        entries = [_Entry(name.encode(), self._wrap(table[name]), None) for name in table]
        self._entries = (_Entry * len(entries))(*entries)
        self.address = ctypes.addressof(self._entries)

    def __len__(self) -> int:
        """Give the number of kernels."""
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        """Give the kernels' names."""
        return (entry.name.decode() for entry in self._entries)

    def _wrap(self, kernel: Kernel) -> Any:
        def call(_: int, arguments: Any, message: int, message_bytes: int) -> int:
            # An exception that leaves a ctypes callback is lost.
            try:
                kernel(arguments.contents.launch())
            except BaseException as error:
                self.cause = self.cause or error
                text = f"{type(error).__name__}: {error}".encode()[: message_bytes - 1]
                ctypes.memmove(message, text + b"\0", len(text) + 1)
                return _FAILED
            return 0

        return _Function(call)
