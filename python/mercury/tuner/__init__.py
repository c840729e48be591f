"""Finding the best schedule of a program on a machine."""

from .agree import Vote, agree_on_entry
from .cache import Cache, Entry, default_path
from .key import Key
from .placement import Style
from .space import Candidate, Space, SpaceOptions
from .store import CacheError, CacheWarning

__all__ = [
    "Cache",
    "CacheError",
    "CacheWarning",
    "Candidate",
    "Entry",
    "Key",
    "Space",
    "SpaceOptions",
    "Style",
    "Vote",
    "agree_on_entry",
    "default_path",
]
