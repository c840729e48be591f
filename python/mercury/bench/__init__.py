"""Measurements: operators beside their floor and their peers, kernels, and links."""

from .errors import AbsentError, BenchError
from .goals import GOALS, MANY_GPUS, ONE_GPU
from .record import Peer, Record, read_records, write_records
from .statistics import Middle, median, middle, ratios
from .table import brief_table, peers_table, table
from .workload import Attention, Product, Workload, parse_workload

__all__ = [
    "GOALS",
    "MANY_GPUS",
    "ONE_GPU",
    "AbsentError",
    "Attention",
    "BenchError",
    "Middle",
    "Peer",
    "Product",
    "Record",
    "Workload",
    "brief_table",
    "median",
    "middle",
    "parse_workload",
    "peers_table",
    "ratios",
    "read_records",
    "table",
    "write_records",
]
