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
from .kernel_abi import ELEMENT_TYPES, Arguments, Entry, TileRecord, make_entry

__all__ = ["Kernel", "KernelTable", "Launch", "Tile", "check_kernels"]


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


def _view(record: TileRecord) -> Tile:
    dtype = ELEMENT_TYPES[record.element_type]
    element = storage(dtype)
    shape = tuple(record.sizes[: record.rank])
    strides = tuple(stride * element.itemsize for stride in record.strides[: record.rank])
    if 0 in shape:
        return Tile(array=np.empty(shape, element), dtype=dtype)
    span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * (span + element.itemsize)).from_address(record.data)
    return Tile(array=np.ndarray(shape, element, memory, strides=strides), dtype=dtype)


def _launch(given: Arguments) -> Launch:
    return Launch(
        inputs=tuple(map(_view, given.inputs[: given.number_of_inputs])),
        outputs=tuple(map(_view, given.outputs[: given.number_of_outputs])),
        parameters=given.numbers(),
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
        check_kernels(kernels)
        table = {**torch_kernels.KERNELS, **kernels}
        self.cause: BaseException | None = None
        entries = [make_entry(name, self._wrap(table[name]), self._note) for name in table]
        self._entries = (Entry * len(entries))(*entries)
        self.address = ctypes.addressof(self._entries)

    def __len__(self) -> int:
        """Give the number of kernels."""
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        """Give the kernels' names."""
        return (entry.name.decode() for entry in self._entries)

    def _wrap(self, kernel: Kernel) -> Callable[[Arguments], None]:
        return lambda arguments: kernel(_launch(arguments))

    def _note(self, error: BaseException) -> None:
        self.cause = self.cause or error


def check_kernels(kernels: Mapping[str, object]) -> None:
    """Refuse what is no table of functions by name.

    Raises
    ------
    RunError
        When a name has no implementation in it, or there is no function.
    """
    for name, kernel in kernels.items():
        if not callable(kernel) or "." not in name:
            raise RunError(
                f"a kernel is a function by a name such as 'mine.matmul', the "
                f"implementation and the kernel, got {name!r}: {kernel!r}"
            )
