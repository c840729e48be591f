"""What an operator refuses."""

from __future__ import annotations

from ..errors import MercuryError

__all__ = ["OpError"]


class OpError(MercuryError):
    """Tensors, options and plan of an operator do not fit each other."""
