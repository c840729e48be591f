"""Topologies: what a machine's links, memory and kernels can do, as files and presets."""

from .errors import TopologyError
from .fields import SCHEMA
from .kernels import KernelCurve, Work
from .links import CAPABILITIES, DOMAINS, TRANSPORTS, Curve, Link
from .load import load, presets
from .machine import Machine, Topology
from .write import dump, write

__all__ = [
    "CAPABILITIES",
    "DOMAINS",
    "SCHEMA",
    "TRANSPORTS",
    "Curve",
    "KernelCurve",
    "Link",
    "Machine",
    "Topology",
    "TopologyError",
    "Work",
    "dump",
    "load",
    "presets",
    "write",
]
