"""Hand-written methods as schedules of a few transforms of one program.

Each of them is a choice of where loops run and where buffers live; none has code of its
own. ``names()`` lists them, ``get(name).schedule(mesh)`` makes one.
"""

from .strategy import Strategy
from .table import get, names

__all__ = ["Strategy", "get", "names"]
