"""Merging two results of attention over different keys."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["Partial", "merger"]

Partial = tuple[Any, Any]
"""The output ``[b, s, h, d]`` and its log-sum-exp ``[b, h, s]``."""


@functools.cache
def merger(torch: Any) -> Callable[[Partial, Partial], Partial]:
    """Give a merge of one kernel, where PyTorch can make one.

    Five operators of PyTorch cost as much as the attention itself on short sequences, which
    would make every peer look worse than it has to.
    """

    def merge(o: Any, lse: Any, other: Any, other_lse: Any) -> Partial:
        share = torch.sigmoid(other_lse - lse).transpose(1, 2)[..., None]
        merged = o.float() + share * (other.float() - o.float())
        return merged.to(o.dtype), torch.logaddexp(lse, other_lse)

    fused = torch.compile(merge, dynamic=True) if torch.cuda.is_available() else merge

    def call(one: Partial, other: Partial) -> Partial:
        made: Partial = fused(*one, *other)
        return made

    return call
