"""Masks over global positions: which keys a query sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import ProgramError

__all__ = ["Mask", "causal", "full", "window"]

_UNBOUNDED = 1 << 40


@dataclass(frozen=True, kw_only=True)
class Mask:
    """Query i sees key j when ``-left <= j - i <= right``, in one document.

    Parameters
    ----------
    left, right
        How far a query sees, in positions; None for no bound.
    documents
        Where packed documents start, then the end; empty for one document.
    """

    left: int | None = None
    right: int | None = None
    documents: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for bound in (self.left, self.right):
            if bound is not None and (not isinstance(bound, int) or abs(bound) > _UNBOUNDED):
                raise ProgramError(
                    f"how far a query sees must be a whole number up to 2**40, or None, got "
                    f"{bound!r}"
                )

    def packed(self, documents: Sequence[int]) -> Mask:
        """Restrict the mask to pairs of one document.

        Examples
        --------
        >>> str(causal().packed([0, 5, 14]))
        'causal documents[0, 5, 14]'
        """
        return replace(self, documents=tuple(documents))

    def __str__(self) -> str:
        if self.left is not None:
            right = _UNBOUNDED if self.right is None else self.right
            text = f"window({self.left}, {right})"
        elif self.right is None:
            text = "full"
        else:
            text = "causal" if self.right == 0 else f"causal({self.right})"
        return text + (f" documents{list(self.documents)}" if self.documents else "")

    def allowed(self, queries: int, keys: int) -> NDArray[np.bool_]:
        """Give the mask as a table, for references and tests.

        Returns
        -------
        numpy.ndarray
            Booleans of shape ``[queries, keys]``.
        """
        i = np.arange(queries)[:, None]
        j = np.arange(keys)[None, :]
        seen = np.ones((queries, keys), bool)
        if self.left is not None:
            seen &= j - i >= -self.left
        if self.right is not None:
            seen &= j - i <= self.right
        if self.documents:
            starts = np.asarray(self.documents)
            seen &= np.searchsorted(starts, i, "right") == np.searchsorted(starts, j, "right")
        return seen

    @classmethod
    def of(cls, mask: Mask | str | None) -> Mask:
        """Take a mask, or the name ``"full"`` or ``"causal"``; None is full.

        Raises
        ------
        ProgramError
            When it is none of these.
        """
        if isinstance(mask, Mask):
            return mask
        if mask is None or (isinstance(mask, str) and mask == "full"):
            return full()
        if isinstance(mask, str) and mask == "causal":
            return causal()
        given = repr(mask) if isinstance(mask, str) else f"a {type(mask).__name__}"
        raise ProgramError(
            f"expected a mask, 'full' or 'causal', got {given}; masks speak of positions: "
            "see mercury.window, mercury.causal and Mask.packed"
        )


def full() -> Mask:
    """Every query sees every key."""
    return Mask()


def causal(offset: int = 0) -> Mask:
    """Query i sees keys up to i + offset: the first query is at position offset."""
    return Mask(right=offset)


def window(left: int, right: int = 0) -> Mask:
    """Query i sees keys from i - left to i + right."""
    return Mask(left=left, right=right)
