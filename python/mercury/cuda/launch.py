"""What a kernel on a GPU is called with: tiles in its memory, numbers, and a stream."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..runtime.kernel_abi import ELEMENT_TYPES, Arguments, TileRecord

__all__ = ["DeviceKernel", "DeviceLaunch", "DeviceTile", "launch_of"]

# Of the runtime's types; PyTorch is shown bfloat16 as integers, which NumPy's names have.
_ITEM_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_TYPE_STRINGS = {"f16": "<f2", "bf16": "<i2", "f32": "<f4", "f64": "<f8"}


@dataclass(frozen=True, kw_only=True)
class DeviceTile:
    """A tile in a GPU's memory.

    Attributes
    ----------
    address
        Of its first element; 0 where it has none.
    dtype
        ``"f16"``, ``"bf16"``, ``"f32"`` or ``"f64"``.
    shape, strides
        Of each dimension; strides in elements.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def item_bytes(self) -> int:
        """The size of an element."""
        return _ITEM_BYTES[self.dtype]

    @property
    def tensor(self) -> Any:
        """The tile as a PyTorch tensor of the same memory."""
        return _tensor(self)


class _Memory:
    def __init__(self, tile: DeviceTile, elements: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (elements,),
            "typestr": _TYPE_STRINGS[tile.dtype],
            "data": (tile.address, False),
            "version": 3,
        }


# A view costs some microseconds to make, and plans use the same memory in every run.
@lru_cache(maxsize=4096)
def _tensor(tile: DeviceTile) -> Any:
    torch = importlib.import_module("torch")
    if 0 in tile.shape:
        kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
        kind = kinds.get(tile.dtype, torch.float64)
        return torch.empty(tile.shape, dtype=kind, device="cuda")
    elements = 1 + sum(
        (n - 1) * stride for n, stride in zip(tile.shape, tile.strides, strict=True)
    )
    flat = torch.as_tensor(_Memory(tile, elements), device="cuda")
    if tile.dtype == "bf16":
        flat = flat.view(torch.bfloat16)
    return flat.as_strided(tile.shape, tile.strides)


@dataclass(frozen=True, kw_only=True)
class DeviceLaunch:
    """What a kernel is called with. It puts its work into ``stream`` and waits for none.

    Attributes
    ----------
    inputs
        Only to be read.
    outputs
        To be merged into, save those that are to be overwritten.
    parameters
        Numbers by name, as `mercury.runtime.kernels.Launch` has them, and ``overwrite``:
        bit i is set where output i holds nothing yet and is to be written.
    stream
        The ``CUstream``; PyTorch's current stream is this one already.
    """

    inputs: tuple[DeviceTile, ...]
    outputs: tuple[DeviceTile, ...]
    parameters: Mapping[str, float]
    stream: int

    def overwrites(self, output: int) -> bool:
        """Say whether an output holds nothing yet and is to be written, not merged into."""
        return bool(int(self.parameters.get("overwrite", 0)) >> output & 1)

    def integer(self, name: str, default: int | None = None) -> int:
        """Give a parameter that counts.

        Raises
        ------
        KeyError
            When the kernel was not told it and there is no default.
        """
        if default is not None:
            return int(self.parameters.get(name, default))
        return int(self.parameters[name])


DeviceKernel = Callable[[DeviceLaunch], None]


def tile_of(record: TileRecord) -> DeviceTile:
    """Read a tile of the runtime."""
    return DeviceTile(
        address=record.data or 0,
        dtype=ELEMENT_TYPES[record.element_type],
        shape=tuple(record.sizes[: record.rank]),
        strides=tuple(record.strides[: record.rank]),
    )


def launch_of(given: Arguments, stream: int) -> DeviceLaunch:
    """Read a launch of the runtime, whose work goes into ``stream``."""
    return DeviceLaunch(
        inputs=tuple(map(tile_of, given.inputs[: given.number_of_inputs])),
        outputs=tuple(map(tile_of, given.outputs[: given.number_of_outputs])),
        parameters=given.numbers(),
        stream=stream,
    )
