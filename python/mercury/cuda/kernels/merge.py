"""The merge of a softmax's partial results by PyTorch.

A plan merges by generated kernels. This is for a library that was asked to merge into
what there is, and cannot.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["softmax_merge"]


def softmax_merge(part: Any, total: Any, o: Any, lse: Any) -> None:
    """Merge a partial output and its log-sum-exp into others.

    Parameters
    ----------
    part, total
        ``[b, s, h, d]`` of any type, and ``[b, h, s]``.
    o, lse
        What they are merged into, of the same shapes.
    """
    torch = importlib.import_module("torch")
    merged = torch.logaddexp(lse, total)
    # Two rows that saw nothing weigh 0: -inf less -inf is no number.
    at = torch.where(merged == -torch.inf, 0.0, merged)
    before, now = (torch.exp(sums - at).transpose(1, 2).unsqueeze(-1) for sums in (lse, total))
    if o.dtype == part.dtype and o.dtype not in (torch.float32, torch.float64):
        o.copy_((o.float() * before).addcmul_(part.float(), now))
    else:
        o.mul_(before).addcmul_(part.to(o.dtype), now.to(o.dtype))
    lse.copy_(merged)
