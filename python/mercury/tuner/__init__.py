"""Finding the best schedule of a program on a machine.

`space` makes every distinct schedule: `arrangement` says where loops run, `placement` where
buffers live and how rings move, `steps` and `script` turn both into transforms, `placed`
reads what came of them and `canonical` tells which are the same. `search` lowers each
(`lower`, `memory`), asks a cost model (`costs`; `simulated`), spares what a lower bound shows
to be slower (`bound` with `traffic` and `work`), leaves out what the machine lacks (`needs`),
and tries the best (`shrink`).
`tune` puts the question (`key`), looks it up (`cache` on `store`), lets ranks agree (`agree`)
and gives a `result`, which takes another plan where the machine is not as assumed (`assume`).
A model that hangs does not end a search (`guard`), and Ctrl-C ends it with the best so far
(`interrupt`).
"""

from .agree import Vote, agree_on_entry
from .assume import Assumptions, LinkSpeed, Observed, Selection, TuneWarning, select
from .bound import LowerBound
from .cache import Cache, Entry, default_path
from .costs import CostModel, PlanCosts
from .key import Key
from .placement import Style
from .quantity import TuneError
from .result import Choice, Counts, TuneResult
from .simulated import Simulated
from .space import Candidate, Space, SpaceOptions
from .store import CacheError, CacheWarning
from .tune import tune

__all__ = [
    "Assumptions",
    "Cache",
    "CacheError",
    "CacheWarning",
    "Candidate",
    "Choice",
    "CostModel",
    "Counts",
    "Entry",
    "Key",
    "LinkSpeed",
    "LowerBound",
    "Observed",
    "PlanCosts",
    "Selection",
    "Simulated",
    "Space",
    "SpaceOptions",
    "Style",
    "TuneError",
    "TuneResult",
    "TuneWarning",
    "Vote",
    "agree_on_entry",
    "default_path",
    "select",
    "tune",
]
