"""What a program means in float64 at a few positions, for tensors too large for all of it.

PyTorch computes it, on whatever device the inputs are. Nothing here knows how a schedule
cuts a program.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from ..dsl import Mask, Program
from ..dsl.nodes import Buffer, Kernel, Merge, Store
from ..errors import RunError
from .program import sink_of

__all__ = ["draw_on", "rows_dim", "sampled"]

Tensor = Any


def rows_dim(program: Program, output: str) -> int:
    """Give the dimension of an output whose positions `sampled` takes.

    Raises
    ------
    RunError
        When the output is made by a kernel without a sampled reference.
    """
    kernel, number, _ = _maker(program, output)
    return 2 if kernel.name == "attention_fwd" and number == 1 else _ROWS[kernel.name]


def sampled(
    program: Program, inputs: Mapping[str, Tensor], output: str, positions: Tensor
) -> Tensor:
    """Evaluate an output at some positions of its rows and everywhere else along.

    Parameters
    ----------
    program
        One whose outputs are those of an attention or a product.
    inputs
        Each input, of its whole shape.
    output
        Its name.
    positions
        Whole numbers along dimension ``rows_dim(program, output)``.

    Returns
    -------
    torch.Tensor
        In float64, of the output's shape save for that dimension.
    """
    kernel, number, merge = _maker(program, output)
    operands: list[Tensor] = [inputs[_origin(tile.origin)] for tile in kernel.inputs]
    if kernel.name == "matmul":
        a, b = operands
        return a[positions].double() @ b.double()
    if kernel.name == "attention_bwd":
        return _backward(kernel, operands, number, positions)
    q, k, v = operands
    o, lse = _forward(kernel, q, k, v, positions)
    if merge is not None and merge.once:
        o, lse = _with_sink(o, lse, inputs[_origin(_sink_input(merge).origin)])
    return lse if number == 1 else o


def draw_on(program: Program, device: Any, seed: int = 0) -> dict[str, Tensor]:
    """Draw inputs of unit scale in the program's types; see `draw`.

    The same numbers on every device of a kind.

    Parameters
    ----------
    program
        Any program.
    device
        Of PyTorch.
    seed
        Of the numbers.
    """
    torch = importlib.import_module("torch")
    kinds = {
        "f16": torch.float16,
        "bf16": torch.bfloat16,
        "f32": torch.float32,
        "f64": torch.float64,
    }
    inputs = {}
    for number, buffer in enumerate(program.inputs):
        generator = torch.Generator(device=device).manual_seed(1000 * seed + number)
        kind = kinds[buffer.dtype]
        inputs[buffer.name] = torch.randn(
            buffer.shape, generator=generator, device=device, dtype=kind
        )
    for kernel in (op for nest in program.nests for op in nest.ops):
        if not isinstance(kernel, Kernel) or kernel.name != "attention_bwd":
            continue
        # What it takes as the forward's results are these.
        q, k, v, o, _, lse = (_origin(tile.origin) for tile in kernel.inputs)
        count = inputs[q].shape[1]
        for first in range(0, count, _BLOCK):
            rows = torch.arange(first, min(first + _BLOCK, count), device=device)
            made = _forward(kernel, inputs[q], inputs[k], inputs[v], rows)
            if (sink := sink_of(program, o)) is not None:
                made = _with_sink(*made, inputs[sink])
            inputs[o][:, rows] = made[0].to(inputs[o].dtype)
            inputs[lse][:, :, rows] = made[1].to(inputs[lse].dtype)
    return inputs


_BLOCK = 64  # rows that are evaluated at a time
_ROWS = {"attention_fwd": 1, "attention_bwd": 1, "matmul": 0}


def _origin(origin: object) -> str:
    if isinstance(origin, Buffer):
        return origin.name
    raise RunError("a kernel whose inputs are made by another has no sampled reference")


def _maker(program: Program, output: str) -> tuple[Kernel, int, Merge | None]:
    """Find the kernel that makes an output, as which of its results, and how it is merged."""
    for store in (op for nest in program.nests for op in nest.ops):
        if not isinstance(store, Store):
            continue
        for tile, buffer in zip(store.tiles, store.buffers, strict=True):
            if buffer.name != output:
                continue
            if isinstance(tile.origin, Kernel) and tile.origin.name in _ROWS:
                return tile.origin, tile.number, store.merge
    raise RunError(
        f"output '{output}' of program '{program.name}' has no sampled reference; those of "
        f"{', '.join(_ROWS)} have one"
    )


def _sink_input(merge: Merge) -> Any:
    kernel = merge.once[0].origin
    if not isinstance(kernel, Kernel) or kernel.name != "softmax_sink":
        raise RunError("of what enters a merge once, only attention's sink has a reference")
    return kernel.inputs[0]


# --- Attention ------------------------------------------------------------------------------


def _scale(kernel: Kernel) -> float:
    return 1.0 if kernel.scale is None else kernel.scale


def _hidden(mask: Mask | None, rows: Tensor, keys: Tensor) -> Tensor:
    torch = importlib.import_module("torch")
    mask = Mask.of(mask)
    ahead = keys[None, :] - rows[:, None]
    hidden = torch.zeros_like(ahead, dtype=torch.bool)
    if mask.left is not None:
        hidden |= ahead < -mask.left
    if mask.right is not None:
        hidden |= ahead > mask.right
    if mask.documents:
        starts = torch.tensor(mask.documents, device=rows.device)
        of_row, of_key = (torch.searchsorted(starts, x, right=True) for x in (rows, keys))
        hidden |= of_row[:, None] != of_key[None, :]
    return hidden


def _spread(tensor: Tensor, heads: int) -> Tensor:
    """Give ``[b, h, s, d]`` with a key head for each query head."""
    return (
        tensor.double()
        .repeat_interleave(max(1, heads // max(1, tensor.shape[2])), dim=2)
        .transpose(1, 2)
    )


def _positions(tensor: Tensor) -> Tensor:
    return importlib.import_module("torch").arange(tensor.shape[1], device=tensor.device)


def _forward(
    kernel: Kernel, q: Tensor, k: Tensor, v: Tensor, rows: Tensor
) -> tuple[Tensor, Tensor]:
    torch = importlib.import_module("torch")
    heads = q.shape[2]
    block = q[:, rows].double().transpose(1, 2)
    scores = block @ _spread(k, heads).transpose(2, 3) * _scale(kernel)
    scores.masked_fill_(_hidden(kernel.mask, rows, _positions(k)), -torch.inf)
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - torch.where(lse == -torch.inf, 0.0, lse)[..., None])
    return (weights @ _spread(v, heads)).transpose(1, 2), lse


def _with_sink(o: Tensor, lse: Tensor, sink: Tensor) -> tuple[Tensor, Tensor]:
    total = importlib.import_module("torch").logaddexp(lse, sink.double()[None, :, None])
    return o * (lse - total).exp().transpose(1, 2)[..., None], total


def _backward(kernel: Kernel, operands: list[Tensor], number: int, at: Tensor) -> Tensor:
    """Give one of the three gradients at some queries or keys."""
    torch = importlib.import_module("torch")
    q, k, v, o, grad, lse = operands
    heads, scale = q.shape[2], _scale(kernel)
    rows = at if number == 0 else _positions(q)
    keys = _positions(k) if number == 0 else at
    wide_k, wide_v = _spread(k[:, keys], heads), _spread(v[:, keys], heads)
    total: Any = None

    def slopes(part: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        block, above, out = (x[:, part].double().transpose(1, 2) for x in (q, grad, o))
        norm = lse[:, :, part].double()
        norm = torch.where(norm == -torch.inf, torch.inf, norm)
        scores = block @ wide_k.transpose(2, 3) * scale
        weights = torch.exp(scores - norm[..., None])
        weights = weights.masked_fill_(_hidden(kernel.mask, part, keys), 0.0)
        delta = (above * out).sum(-1, keepdim=True)
        return weights, weights * (above @ wide_v.transpose(2, 3) - delta), block, above

    if number == 0:
        return (slopes(rows)[1] @ wide_k * scale).transpose(1, 2)
    for first in range(0, len(rows), 1024):
        weights, slope, block, above = slopes(rows[first : first + 1024])
        if number == 1:
            part = slope.transpose(2, 3) @ block * scale
        else:
            part = weights.transpose(2, 3) @ above
        total = part if total is None else total + part
    batch, _, count, depth = total.shape
    group = heads // k.shape[2]
    return total.reshape(batch, k.shape[2], group, count, depth).sum(2).transpose(1, 2)
