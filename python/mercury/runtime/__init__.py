"""Plans: lowered schedules, and running them."""

from .layout import BufferLayout
from .plan import Plan
from .sim import SimOptions

__all__ = ["BufferLayout", "Plan", "SimOptions"]
