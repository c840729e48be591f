"""Topologies as files."""

from __future__ import annotations

import json
from pathlib import Path

from .errors import TopologyError
from .fields import SCHEMA
from .kernels import KernelCurve
from .links import Curve, Link
from .machine import Topology

__all__ = ["dump", "write"]

_MIB, _GIB = 1 << 20, 1 << 30


def write(topology: Topology, path: Path) -> None:
    """Write a topology to a file that `load` reads.

    Raises
    ------
    TopologyError
        When the file cannot be written.
    """
    try:
        path.write_text(dump(topology), encoding="utf-8")
    except OSError as error:
        raise TopologyError(f"topology file '{path}' cannot be written: {error}") from None


def dump(topology: Topology) -> str:
    """Give the text of a topology's file.

    Examples
    --------
    >>> from mercury.topology import load
    >>> dump(load("l4-2x1")).splitlines()[1]
    'name = "l4-2x1"'
    """
    machine = topology.machine
    lines = [
        f"schema = {SCHEMA}",
        f"name = {json.dumps(topology.name)}",
        "sources = [",
        *[f"  {json.dumps(source, ensure_ascii=False)}," for source in topology.sources],
        "]",
        "",
        "[machine]",
        f"name = {json.dumps(machine.name)}",
        f"memory_gib = {_number(machine.memory / _GIB, 9)}",
        f"copy_gb_per_s = {_number(machine.copy_rate / 1e9)}",
        f"launch_us = {_number(machine.launch * 1e6)}",
        f"join_us = {_number(machine.join * 1e6)}",
        f"message_lanes = {json.dumps(machine.message_lanes)}",
    ]
    if machine.moves:
        lines += ["", "[machine.moves]"]
    for name, points in machine.moves.items():
        lines.append(f"{name} = {_points(points, 1e9, 1e9)}")
    for name, curve in machine.kernels.items():
        lines += ["", f"[machine.kernels.{json.dumps(name)}]", *_kernel(curve)]
    for link in topology.links:
        lines += ["", "[[levels]]", *_link(link)]
    return "\n".join(lines) + "\n"


def _number(value: float, digits: int = 5) -> str:
    return repr(float(f"{value:.{digits}g}"))


def _points(points: tuple[tuple[float, float], ...], x: float, y: float) -> str:
    rows = [f"[{_number(at / x, 9)}, {_number(rate / y)}]" for at, rate in points]
    return f"[{', '.join(rows)}]"


def _kernel(curve: KernelCurve) -> list[str]:
    return [
        f"tflops = {_points(curve.points, 1e9, 1e12)}",
        f"block = [{curve.block[0]}, {curve.block[1]}]",
        f"units = {curve.units}",
        f"overhead_us = {_number(curve.overhead * 1e6)}",
        f"masked = {_number(curve.masked)}",
        f"masked_keys = {_number(curve.masked_keys)}",
        f"error = {_number(curve.error, 2)}",
        *([f"library = {json.dumps(curve.library)}"] if curve.library else []),
    ]


def _link(link: Link) -> list[str]:
    latency = link.curve("p2p").latency if "p2p" in link.transports else 0.0
    lines = [
        f"name = {json.dumps(link.name)}",
        f"size = {link.size}",
        f"latency_us = {_number(latency * 1e6)}",
        f"domain = {json.dumps(link.domain)}",
        f"duplex = {json.dumps('full' if link.duplex else 'half')}",
        f"capabilities = {json.dumps(sorted(link.capabilities))}",
        f"error = {_number(link.error, 2)}",
        f"signal_us = {_number(link.signal * 1e6)}",
    ]
    for name, curve in link.transports.items():
        lines += _curve(name, curve)
    return lines


def _curve(name: str, curve: Curve) -> list[str]:
    return [
        f"transports.{name}.latency_us = {_number(curve.latency * 1e6)}",
        f"transports.{name}.curve = {_points(curve.points, _MIB, 1e9)}",
        f"transports.{name}.slowdown = {_number(curve.slowdown)}",
    ]
