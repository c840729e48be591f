"""What any program of known kernels means: its loops as one iteration, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dsl import Program
from ..dsl.nodes import Buffer, Kernel, Store, Tile
from ..errors import RunError
from .attention import attention, attention_backward, attention_sink_backward
from .matmul import matmul

__all__ = ["draw", "evaluate", "needed_bytes", "sink_of"]

Array = NDArray[Any]

_TABLES = 4  # of scores, that a gradient holds at once


def draw(program: Program, seed: int = 0) -> dict[str, Array]:
    """Draw inputs of unit scale that a program can be tried on.

    An input that a kernel takes as the result of another is that result: the output and
    the log-sum-exp that attention backward is given are those of its queries and keys.

    Parameters
    ----------
    program
        Any program.
    seed
        Of the numbers.

    Returns
    -------
    dict
        Each input by name, in float64.
    """
    rng = np.random.default_rng(seed)
    inputs = {buffer.name: rng.standard_normal(buffer.shape) for buffer in program.inputs}
    for kernel in (op for nest in program.nests for op in nest.ops):
        if not isinstance(kernel, Kernel) or kernel.name != "attention_bwd":
            continue
        names = [tile.origin.name for tile in kernel.inputs if isinstance(tile.origin, Buffer)]
        if len(names) == len(kernel.inputs):
            q, k, v, o, _, lse = names
            sink = sink_of(program, o)
            made = _attention(kernel, inputs[q], inputs[k], inputs[v])
            if sink is not None:
                made = tuple(_merged("softmax", [*made], [*_sink(kernel, inputs[sink])]))
            inputs[o], inputs[lse] = made
    return inputs


def sink_of(program: Program, o: str) -> str | None:
    """Name the sink that has entered an output of attention which a program takes."""
    for kernel in (op for nest in program.nests for op in nest.ops):
        if isinstance(kernel, Kernel) and kernel.name == "softmax_sink_bwd":
            names = [t.origin.name for t in kernel.inputs if isinstance(t.origin, Buffer)]
            if names[0] == o:
                return names[3]
    return None


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
                results = [_value(values, tile) for tile in op.tiles]
                if op.merge is not None and op.merge.once:
                    once = [_value(values, tile) for tile in op.merge.once]
                    results = _merged(op.merge.kind, results, once)
                for result, buffer in zip(results, op.buffers, strict=True):
                    outputs[buffer.name] = result
            elif isinstance(op.origin, Buffer):
                values[op] = np.asarray(inputs[op.origin.name], np.float64)
    return outputs


def needed_bytes(program: Program) -> int:
    """Give about how many bytes `evaluate` and its operands take, all in float64."""
    tables = [0]
    for kernel in (op for nest in program.nests for op in nest.ops):
        if isinstance(kernel, Kernel) and kernel.name in ("attention_fwd", "attention_bwd"):
            (b, sq, h, _), (_, sk, heads, _) = (
                [dim.extent for dim in tile.dims] for tile in kernel.inputs[:2]
            )
            tables.append(b * sq * sk * (h // max(heads, 1)))
    held = sum(prod(buffer.shape) for buffer in program.buffers)
    return 8 * (held + _TABLES * max(tables))


def _value(values: Mapping[object, Array], tile: Tile) -> Array:
    return values[(tile.origin, tile.number) if isinstance(tile.origin, Kernel) else tile]


def _merged(kind: str, one: list[Array], other: list[Array]) -> list[Array]:
    """Merge two partial results as any schedule must."""
    if kind == "sum":
        return [a + b for a, b in zip(one, other, strict=True)]
    if kind == "max":
        return [np.maximum(a, b) for a, b in zip(one, other, strict=True)]
    total = np.logaddexp(one[1], other[1])
    shift = np.where(total == -np.inf, 0.0, total)

    def weigh(o: Array, lse: Array) -> Array:
        weight: Array = np.exp(lse - shift).swapaxes(1, 2)[..., None]
        return o * weight

    return [weigh(*one) + weigh(*other), total]


def _attention(kernel: Kernel, q: Array, k: Array, v: Array) -> tuple[Array, ...]:
    scale = 1.0 if kernel.scale is None else kernel.scale
    parts = [
        attention(q[:, :, group], k[:, :, head], v[:, :, head], mask=kernel.mask, scale=scale)
        for group, head in _heads(q, k)
    ]
    o, lse = zip(*parts, strict=True)
    return np.concatenate(o, axis=2), np.concatenate(lse, axis=1)


def _heads(q: Array, k: Array) -> Iterator[tuple[slice, slice]]:
    """Each key head behind its query heads: the scores of all heads at once are large."""
    group = q.shape[2] // max(k.shape[2], 1)
    for head in range(k.shape[2]):
        yield slice(head * group, (head + 1) * group), slice(head, head + 1)
    if not k.shape[2]:
        yield slice(0, 0), slice(0, 0)


def _attention_backward(kernel: Kernel, *operands: Array) -> tuple[Array, ...]:
    q, k, v, o, grad_o, lse = operands
    scale = 1.0 if kernel.scale is None else kernel.scale
    parts = [
        attention_backward(
            *(q[:, :, group], k[:, :, head], v[:, :, head], grad_o[:, :, group]),
            o=o[:, :, group],
            lse=lse[:, group],
            mask=kernel.mask,
            scale=scale,
        )
        for group, head in _heads(q, k)
    ]
    return tuple(np.concatenate(each, axis=2) for each in zip(*parts, strict=True))


def _sink(_: Kernel, sink: Array) -> tuple[Array, ...]:
    return np.zeros((1, 1, len(sink), 1)), sink[None, :, None]


def _sink_backward(_: Kernel, o: Array, grad_o: Array, lse: Array, sink: Array) -> tuple[Array]:
    return (attention_sink_backward(o, grad_o, lse, sink),)


def _matmul(kernel: Kernel, a: Array, b: Array) -> tuple[Array, ...]:
    return (matmul(a, b),)


_KERNELS: dict[str, Callable[..., tuple[Array, ...]]] = {
    "attention_bwd": _attention_backward,
    "attention_fwd": _attention,
    "matmul": _matmul,
    "softmax_sink": _sink,
    "softmax_sink_bwd": _sink_backward,
}


def _kernel(kernel: Kernel) -> Callable[..., tuple[Array, ...]]:
    if kernel.name not in _KERNELS:
        raise RunError(
            f"kernel '{kernel.name}' has no reference to compare with; those of "
            f"{', '.join(_KERNELS)} are known",
            location=str(kernel.source),
        )
    return _KERNELS[kernel.name]
