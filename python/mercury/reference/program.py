"""What any program of known kernels means: its loops as one iteration, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dsl import Program
from ..dsl.builder import Buffer, Kernel, Store, Tile
from ..errors import RunError
from .attention import attention
from .matmul import matmul

__all__ = ["evaluate"]

Array = NDArray[Any]


def evaluate(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Run a program on one device in float64, independent of the compiler.

    How loops are cut changes no result, so each nest is one iteration over whole buffers.

    Parameters
    ----------
    program
        Any program whose kernels have a reference.
    inputs
        Each input of the program, of its whole shape.

    Returns
    -------
    dict
        Each output by name.

    Raises
    ------
    RunError
        When a kernel has no reference.

    Examples
    --------
    >>> import mercury as mc
    >>> double = np.eye(3)
    >>> evaluate(mc.programs.matmul(m=3, n=3, depth=3), {"A": double, "B": double})["C"][0]
    array([1., 0., 0.])
    """
    values: dict[object, Array] = {}
    outputs: dict[str, Array] = {}
    for nest in program.nests:
        for op in nest.ops:
            if isinstance(op, Kernel):
                operands = [_value(values, tile) for tile in op.inputs]
                for number, result in enumerate(_kernel(op)(op, *operands)):
                    values[(op, number)] = result
            elif isinstance(op, Store):
                for tile, buffer in zip(op.tiles, op.buffers, strict=True):
                    outputs[buffer.name] = _value(values, tile)
            elif isinstance(op.origin, Buffer):
                values[op] = np.asarray(inputs[op.origin.name], np.float64)
    return outputs


def _value(values: Mapping[object, Array], tile: Tile) -> Array:
    return values[(tile.origin, tile.number) if isinstance(tile.origin, Kernel) else tile]


def _attention(kernel: Kernel, q: Array, k: Array, v: Array) -> tuple[Array, ...]:
    scale = 1.0 if kernel.scale is None else kernel.scale
    return attention(q, k, v, mask=kernel.mask, scale=scale)


def _matmul(kernel: Kernel, a: Array, b: Array) -> tuple[Array, ...]:
    return (matmul(a, b),)


_KERNELS: dict[str, Callable[..., tuple[Array, ...]]] = {
    "attention_fwd": _attention,
    "matmul": _matmul,
}


def _kernel(kernel: Kernel) -> Callable[..., tuple[Array, ...]]:
    if kernel.name not in _KERNELS:
        raise RunError(
            f"kernel '{kernel.name}' has no reference to compare with; those of "
            f"{', '.join(_KERNELS)} are known",
            location=str(kernel.source),
        )
    return _KERNELS[kernel.name]
