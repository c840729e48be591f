"""Finding the best schedule of a program on a machine."""

from .placement import Style
from .space import Candidate, Space, SpaceOptions

__all__ = ["Candidate", "Space", "SpaceOptions", "Style"]
