"""Attention of a tile as calls that libraries know: full or causal, heads in even groups.

A kernel is told where its tile lies in the whole tensors. A library knows a rectangle
whose mask, if it has one, ends in its lower right corner, and a number of query heads for
each key head. Here one is cut into the other. Every row of queries and every head is in
one piece at most, so no two pieces write the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Piece", "Span", "cut_heads", "cut_mask", "pieces"]

Span = tuple[int, int]  # from the first on, before the second


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One call of a library.

    Attributes
    ----------
    rows, keys
        Of the tile's queries and keys.
    heads, key_heads
        Of the tile's heads; each key head has as many query heads.
    right, left
        Row r sees key c from ``r + d - left`` to ``r + d + right``, where d is the number
        of keys less that of rows; None is no bound. ``right = 0`` is causal, aligned to
        the lower right corner.
    """

    rows: Span
    keys: Span
    heads: Span = (0, 0)
    key_heads: Span = (0, 0)
    right: int | None = None
    left: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether every row sees every key."""
        return self.right is None and self.left is None

    @property
    def is_causal(self) -> bool:
        """Whether the mask is the causal one and nothing else."""
        return self.right == 0 and self.left is None


def cut_mask(rows: int, keys: int, left: int, right: int) -> list[Piece]:
    """Cut a band ``-left <= key - row <= right`` of a rectangle into pieces.

    Rows in no piece see nothing.

    Parameters
    ----------
    rows, keys
        The size of the rectangle.
    left, right
        The band; any number, where a large one is no bound.

    Examples
    --------
    >>> [(p.rows, p.keys, p.right) for p in cut_mask(4, 4, 1 << 40, 0)]
    [((0, 4), (0, 4), 0)]
    >>> [(p.rows, p.keys, p.right) for p in cut_mask(4, 4, 1 << 40, 2)]
    [((0, 2), (0, 4), 0), ((2, 4), (0, 4), None)]
    """
    first, end = max(0, -right), min(rows, keys + left)
    if first >= end or left + right < 0:
        return []
    low, high = max(0, first - left), min(keys, end + right)
    if low >= high:
        return []
    # From here on, of the rectangle that is left.
    right, left = right + first - low, left - first + low
    rows, keys = end - first, high - low
    is_left_open = left >= rows - 1
    if is_left_open and right >= keys - 1:
        return [Piece(rows=(first, end), keys=(low, high))]
    # Of a causal band the last rows may see every key; the first of them makes the corner
    # of those before. A band that is cut on both sides stays one piece.
    corner = min(rows, keys - right) if is_left_open else rows
    used = min(keys, corner + right)
    cut = Piece(
        rows=(first, first + corner),
        keys=(low, low + used),
        right=right - (used - corner),
        left=None if is_left_open else left + used - corner,
    )
    rest = Piece(rows=(first + corner, end), keys=(low, high))
    return [cut, rest] if corner < rows else [cut]


def cut_heads(first: int, heads: int, first_key: int, group: int) -> list[tuple[Span, Span]]:
    """Cut query heads into runs that have as many for each key head.

    Parameters
    ----------
    first, heads
        The first query head of the tile among all, and their number.
    first_key
        The first key head of the tile.
    group
        Query heads for each key head.

    Returns
    -------
    list
        Query heads and key heads of each run, counted from those of the tile.

    Examples
    --------
    >>> cut_heads(1, 4, 0, 2)
    [((0, 1), (0, 1)), ((1, 3), (1, 2)), ((3, 4), (2, 3))]
    """
    runs: list[tuple[Span, Span]] = []
    at, end = first, first + heads
    while at < end:
        # To the end of the group, and on over whole groups when it starts one.
        whole = (end - at) // group if at % group == 0 else 0
        until = at + whole * group if whole else min(end, (at // group + 1) * group)
        key = at // group - first_key
        runs.append(((at - first, until - first), (key, key + max(1, whole))))
        at = until
    return runs


def pieces(
    *,
    rows: int,
    keys: int,
    heads: int,
    at: tuple[int, int, int, int],
    group: int,
    left: int,
    right: int,
) -> list[Piece]:
    """Cut the attention of a tile into calls of a library.

    Parameters
    ----------
    rows, keys, heads
        The sizes of the tile.
    at
        The first query, key, query head and key head among all.
    group
        Query heads for each key head.
    left, right
        How far a query sees, by global positions.
    """
    at_row, at_key, at_head, at_key_head = at
    ahead = at_key - at_row
    return [
        Piece(
            rows=band.rows,
            keys=band.keys,
            heads=own,
            key_heads=shared,
            right=band.right,
            left=band.left,
        )
        for band in cut_mask(rows, keys, left + ahead, right - ahead)
        for own, shared in cut_heads(at_head, heads, at_key_head, group)
    ]
