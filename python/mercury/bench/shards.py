"""Which rows a rank has: in blocks, and in the balanced layout of causal attention."""

from __future__ import annotations

__all__ = ["block", "zigzag"]


def block(extent: int, ranks: int, rank: int) -> range:
    """Give a rank's block of so many positions; blocks differ by at most one.

    Examples
    --------
    >>> [len(block(10, 4, rank)) for rank in range(4)]
    [3, 2, 3, 2]
    """
    low, high = (-(-at * extent // ranks) for at in (rank, rank + 1))
    return range(low, high)


def zigzag(extent: int, ranks: int, rank: int) -> list[int]:
    """Give blocks ``rank`` and ``2 ranks - 1 - rank`` of ``2 ranks``.

    Under a causal mask each rank then sees as many keys as any other.

    Examples
    --------
    >>> zigzag(8, 2, 0), zigzag(8, 2, 1)
    ([0, 1, 6, 7], [2, 3, 4, 5])
    """
    first, second = (block(extent, 2 * ranks, at) for at in (rank, 2 * ranks - 1 - rank))
    return [*first, *second]
