"""What is wrong with a topology."""

from __future__ import annotations

from ..errors import MercuryError

__all__ = ["TopologyError"]


class TopologyError(MercuryError):
    """A topology does not read, or does not fit a mesh."""
