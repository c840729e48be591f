"""Finding the best schedule of a program on a machine."""

from .agree import Vote, agree_on_entry
from .bound import LowerBound
from .cache import Cache, Entry, default_path
from .costs import CostModel, PlanCosts
from .key import Key
from .placement import Style
from .quantity import TuneError
from .result import Choice, Counts, TuneResult
from .space import Candidate, Space, SpaceOptions
from .store import CacheError, CacheWarning
from .tune import tune

__all__ = [
    "Cache",
    "CacheError",
    "CacheWarning",
    "Candidate",
    "Choice",
    "CostModel",
    "Counts",
    "Entry",
    "Key",
    "LowerBound",
    "PlanCosts",
    "Space",
    "SpaceOptions",
    "Style",
    "TuneError",
    "TuneResult",
    "Vote",
    "agree_on_entry",
    "default_path",
    "tune",
]
