"""Decisions that all ranks take alike.

A rank that takes a plan from its cache while another searches would wait for it forever. So
no rank decides for itself: each says what it has, and all look at what all have said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .cache import Entry
from .store import CacheError

__all__ = ["Vote", "agree_on_all", "agree_on_entry", "agree_on_text", "alone"]

Vote = Callable[[str], Sequence[str]]
"""Takes this rank's text and gives the texts of all ranks, in the order of ranks, the same
on each: an all-gather. With PyTorch::

    def vote(text):
        texts = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(texts, text)
        return texts
"""


def alone(text: str) -> Sequence[str]:
    """Vote of a single process."""
    return [text]


def agree_on_entry(found: Entry | None, vote: Vote) -> Entry | None:
    """Take an entry of the cache only when every rank has the same.

    Parameters
    ----------
    found
        What this rank's cache has.
    vote
        The exchange; every rank calls this function.

    Returns
    -------
    Entry or None
        The entry on all ranks, or None on all.

    Examples
    --------
    >>> agree_on_entry(None, alone) is None
    True
    """
    digests = agree_on_all("" if found is None else found.digest, vote)
    return found if digests[0] and len(set(digests)) == 1 else None


def agree_on_text(mine: str, vote: Vote) -> str:
    """Take the text of the first rank, on every rank.

    Examples
    --------
    >>> agree_on_text("mine", lambda text: ["first", text])
    'first'
    """
    return agree_on_all(mine, vote)[0]


def agree_on_all(mine: str, vote: Vote) -> Sequence[str]:
    """Take the texts of all ranks, on every rank.

    Raises
    ------
    CacheError
        When the vote does not give them.
    """
    texts = list(vote(mine))
    if mine not in texts or not all(isinstance(text, str) for text in texts):
        raise CacheError(
            "the vote must give the texts of all ranks, this rank's among them, got "
            f"{texts!r:.100}"
        )
    return texts
