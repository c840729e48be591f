"""The time of a plan on a described machine; see `simulate`."""

from .machine import to_json
from .result import Simulation, Span
from .simulate import SimulationError, Workload, for_machine, simulate, simulate_module
from .trace import to_chrome

__all__ = [
    "Simulation",
    "SimulationError",
    "Span",
    "Workload",
    "for_machine",
    "simulate",
    "simulate_module",
    "to_chrome",
    "to_json",
]
