"""What can go wrong with a measurement."""

from __future__ import annotations

from ..errors import MercuryError

__all__ = ["AbsentError", "BenchError"]


class BenchError(MercuryError):
    """A measurement cannot be made, or its result does not read."""


class AbsentError(BenchError):
    """What was to be measured is not there, or does not do this work."""
