"""Topologies from files and from the names of presets."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from ..implementations import LIBRARIES
from .errors import TopologyError
from .fields import SCHEMA, Fields
from .kernels import MASKED_KEYS, KernelCurve
from .links import CAPABILITIES, DOMAINS, TRANSPORTS, Curve, Link
from .machine import Machine, Topology

__all__ = ["load", "presets"]

_PRESET = re.compile(r"(?P<gpu>[a-z0-9]+)-(?P<gpus>[0-9]+)x(?P<nodes>[0-9]+)")
_MIB, _GB, _TERA, _MICRO = float(1 << 20), 1e9, 1e12, 1e6
# NCCL's channels take some of the multiprocessors: 16 of 132 by default on NVLink.
_SLOWDOWN = {"p2p": 0.12, "collective": 0.12}


def presets() -> list[str]:
    """List the devices that presets exist for.

    Examples
    --------
    >>> presets()
    ['a100', 'h100', 'h200', 'l4']
    """
    folder = resources.files(__package__) / "presets"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def load(name: str | Path) -> Topology:
    """Load a topology.

    Parameters
    ----------
    name
        A file, or a preset as ``<gpu>-<gpus per node>x<nodes>``.

    Raises
    ------
    TopologyError
        When there is none, or the file is not right; it names file, key and value.

    Examples
    --------
    >>> load("h100-8x2").mesh
    Mesh(node=2, gpu=8)
    """
    text = str(name)
    if text.endswith(".toml") or isinstance(name, Path) or Path(text).is_file():
        try:
            content = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TopologyError(f"topology file '{text}' cannot be read: {error}") from None
        return _read(content, text)
    found = _PRESET.fullmatch(text)
    if not found or found["gpu"] not in presets():
        raise TopologyError(
            f"there is no topology '{text}'; give a file.toml, or a preset "
            f"<gpu>-<gpus per node>x<nodes> such as h100-8x2, with a gpu of "
            f"{', '.join(presets())}"
        )
    file = resources.files(__package__) / "presets" / f"{found['gpu']}.toml"
    sizes = {"node": int(found["nodes"]), "gpu": int(found["gpus"])}
    if min(sizes.values()) < 1:
        raise TopologyError(f"topology '{text}' must have at least one gpu and one node")
    return _read(file.read_text(encoding="utf-8"), f"{found['gpu']}.toml", text, sizes)


def _read(
    content: str, file: str, name: str = "", sizes: dict[str, int] | None = None
) -> Topology:
    try:
        table: dict[str, Any] = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise TopologyError(f"{file}: this is not TOML: {error}") from None
    fields = Fields(table, file)
    if fields.whole("schema", "the schema") != SCHEMA:
        raise fields.error("schema", f"{SCHEMA}, the schema that this version reads")
    own_name = fields.text("name")
    machine = _machine(fields.table("machine"))
    links = tuple(_link(each, sizes or {}) for each in fields.list_of_tables("levels"))
    names = [link.name for link in links]
    if len(set(names)) != len(names):
        raise fields.error("levels", "of different names")
    sources = tuple(fields.words("sources"))
    fields.done()
    return Topology(name=name or own_name, machine=machine, links=links, sources=sources)


def _machine(fields: Fields) -> Machine:
    kernels = {name: _kernel(each) for name, each in fields.tables("kernels").items()}
    if "*" not in kernels:
        raise fields.error("kernels", "of every kernel, with '*' for those not listed")
    launch = fields.number("launch_us", "microseconds")
    machine = Machine(
        name=fields.text("name"),
        memory=int(fields.number("memory_gib", "GiB", least=0.001) * (1 << 30)),
        copy_rate=fields.number("copy_gb_per_s", "GB/s", least=0.001) * _GB,
        launch=launch / _MICRO,
        kernels=kernels,
        join=fields.number("join_us", "microseconds", default=launch) / _MICRO,
        message_lanes=fields.word("message_lanes", ("one", "group"), "one"),
        moves=_moves(fields.table("moves")) if "moves" in fields else {},
    )
    fields.done()
    return machine


def _moves(fields: Fields) -> dict[str, tuple[tuple[float, float], ...]]:
    return {
        name: tuple(
            (size * _GB, rate * _GB) for size, rate in fields.points(name, "GB", "GB/s")
        )
        for name in fields.names()
    }


def _kernel(fields: Fields) -> KernelCurve:
    points = fields.points("tflops", "gflop of a launch", "TFLOP/s")
    curve = KernelCurve(
        points=tuple((work * 1e9, rate * _TERA) for work, rate in points),
        block=fields.pair("block", "[rows, columns] of a block, columns 0 when not cut")
        if "block" in fields
        else (1, 0),
        units=fields.whole("units", "blocks at a time") if "units" in fields else 1,
        overhead=fields.number("overhead_us", "microseconds", default=0.0) / _MICRO,
        masked=fields.number("masked", "", default=1.0, least=0.01, most=1.0),
        masked_keys=fields.number("masked_keys", "keys", default=MASKED_KEYS),
        error=fields.number("error", "", default=0.25, most=1.0),
        library=fields.word("library", LIBRARIES, ""),
    )
    fields.done()
    return curve


def _link(fields: Fields, sizes: dict[str, int]) -> Link:
    name = fields.text("name")
    size = fields.whole("size", "groups") if "size" in fields or name not in sizes else 1
    latency = fields.number("latency_us", "microseconds")
    transports = {}
    for transport, each in fields.tables("transports").items():
        if transport not in TRANSPORTS:
            raise fields.error("transports", f"of {', '.join(TRANSPORTS)}; see '{transport}'")
        transports[transport] = Curve(
            latency=each.number("latency_us", "microseconds", default=latency) / _MICRO,
            points=tuple(
                (at * _MIB, rate * _GB) for at, rate in each.points("curve", "MiB", "GB/s")
            ),
            slowdown=each.number(
                "slowdown", "", default=_SLOWDOWN.get(transport, 0.0), most=0.9
            ),
        )
        each.done()
    if "p2p" not in transports or "collective" not in transports:
        raise fields.error(
            "transports", "of at least p2p and collective, which every plan falls back to"
        )
    link = Link(
        name=name,
        size=sizes.get(name, size),
        transports=transports,
        domain=fields.word("domain", DOMAINS, "port"),
        duplex=fields.word("duplex", ("full", "half"), "full") == "full",
        capabilities=frozenset(fields.words("capabilities", CAPABILITIES)),
        error=fields.number("error", "", default=0.25, most=1.0),
        signal=fields.number("signal_us", "microseconds", default=latency) / _MICRO,
    )
    fields.done()
    return link
