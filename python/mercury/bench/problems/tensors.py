"""Random tensors, and parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..processes import Processes

__all__ = ["normal", "part", "relative_error"]


def normal(on: Processes, *shape: int, seed: int, scale: float = 1.0) -> Any:
    """Give normal numbers in bf16, the same on every rank."""
    torch = on.torch
    generator = torch.Generator(device=on.device).manual_seed(seed)
    made = torch.empty(shape, dtype=torch.bfloat16, device=on.device)
    # In pieces: float64 or float32 copies of the largest tensors would not fit.
    for piece in made.view(-1).split(1 << 28):
        piece.normal_(generator=generator)
    return made.mul_(scale) if scale != 1.0 else made


def part(on: Processes, whole: Any, indices: Sequence[Any]) -> Any:
    """Give a contiguous copy of the given indices of each dimension."""
    torch = on.torch
    for dim, wanted in enumerate(indices):
        index = torch.as_tensor(wanted, dtype=torch.int64, device=whole.device)
        if len(index) != whole.shape[dim] or not bool(
            (index == torch.arange(len(index), device=index.device)).all()
        ):
            whole = whole.index_select(dim, index)
    return whole.contiguous()


def relative_error(on: Processes, pairs: Mapping[str, tuple[Any, Any]]) -> float:
    """Give the largest error of this rank's (result, reference) pairs.

    It is ``||result - reference|| / ||reference||``; what is not finite is infinitely wrong.
    """
    torch, worst = on.torch, 0.0
    for actual, reference in pairs.values():
        expected = reference.double()
        error = (actual.double() - expected).norm() / expected.norm()
        worst = max(worst, float(torch.nan_to_num(error, nan=torch.inf)))
    return worst
