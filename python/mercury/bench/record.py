"""Results as JSON: one record for each plan of each workload that was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from .errors import BenchError
from .workload import parse_workload

__all__ = ["Peer", "Record", "read_records", "write_records"]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """What a peer did on a workload.

    Attributes
    ----------
    ms
        Median time of a run; None when it was not measured.
    ratio_to_floor
        Median ratio, round by round.
    error
        Against float64.
    graph
        Whether it ran as a CUDA graph.
    absent
        Why it was not measured; empty when it was.
    """

    ms: float | None = None
    ratio_to_floor: float | None = None
    error: float | None = None
    graph: bool = False
    absent: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One plan of one workload, beside its floor and its peers, of one run of one program.

    Times are medians over the rounds, in milliseconds, of the maximum over the ranks; ratios
    are medians over the rounds with their interval of 95 %.

    Attributes
    ----------
    workload
        As `parse_workload` reads it.
    plan
        The schedule in one line.
    name
        How the plan is called: of a named strategy, or what is particular to it.
    chosen
        Whether it is the plan that Mercury takes.
    floor_ms, ours_ms
        Of one call with all data local, and of the plan.
    ratio_to_floor, ratio_low, ratio_high
        Of the plan to its floor.
    best_peer, best_peer_ms, ratio_to_peer
        The fastest that is right of all peers, and the plan's ratio to it.
    error, allowed_error
        Of the plan against float64, and twice that of one device.
    predicted_ms
        By the simulator, if it was asked.
    failed
        Why the plan has no time; empty when it has.
    peers
        Every peer by its name, also those that are absent.
    ranks, device, versions
        What it ran on.
    rounds, graph
        How often it was measured, and whether as a CUDA graph.
    """

    workload: str
    plan: str
    name: str
    chosen: bool = False
    floor_ms: float
    ours_ms: float | None = None
    ratio_to_floor: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    best_peer: str | None = None
    best_peer_ms: float | None = None
    ratio_to_peer: float | None = None
    error: float | None = None
    allowed_error: float | None = None
    predicted_ms: float | None = None
    failed: str = ""
    peers: Mapping[str, Peer] = field(default_factory=dict)
    ranks: int = 1
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    rounds: int = 0
    graph: bool = False

    def to_json(self) -> dict[str, Any]:
        """Give the record as plain values; numbers keep four digits."""
        made: dict[str, Any] = _rounded(asdict(self))
        return made

    @classmethod
    def from_json(cls, value: Any, place: str = "record") -> Record:
        """Read a record.

        Parameters
        ----------
        value
            What `to_json` gave.
        place
            Where it stands, for errors.

        Raises
        ------
        BenchError
            When a key is unknown or missing, or a value of another kind.
        """
        values = _checked(cls, value, place)
        peers = values.get("peers", {})
        if not isinstance(peers, dict):
            raise BenchError(f"{place}: 'peers' must be an object of peers by name")
        values["peers"] = {
            name: Peer(**_checked(Peer, each, f"{place}, peer '{name}'"))
            for name, each in peers.items()
        }
        made = cls(**values)
        parse_workload(made.workload)
        if made.ours_ms is None and not made.failed:
            raise BenchError(f"{place}: 'ours_ms' may only be null where 'failed' says why")
        return made


_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "int": (int,),
    "bool": (bool,),
}


def _checked(cls: type[Record | Peer], value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BenchError(f"{place}: expected an object, got {value!r}")
    known = {each.name: each for each in fields(cls)}
    if unknown := sorted(set(value) - set(known)):
        raise BenchError(
            f"{place}: there is no key '{unknown[0]}'; keys are {', '.join(known)}"
        )
    needed = ("workload", "plan", "name", "floor_ms") if cls is Record else ()
    if missing := [name for name in needed if name not in value]:
        raise BenchError(f"{place}: key '{missing[0]}' is missing")
    for name, given in value.items():
        kinds = _KINDS.get(str(known[name].type))
        right = kinds is None or isinstance(given, kinds)
        if not right or (isinstance(given, bool) and str(known[name].type) != "bool"):
            raise BenchError(f"{place}: '{name}' must be {known[name].type}, got {given!r}")
    return dict(value)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return None if not math.isfinite(value) else float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return value


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records; a reader never sees half a file."""
    text = json.dumps([record.to_json() for record in records], indent=1) + "\n"
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise BenchError(f"results cannot be written to '{path}': {error}") from None


def read_records(path: Path) -> list[Record]:
    """Read what `write_records` wrote.

    Raises
    ------
    BenchError
        When there is no such file, or it is not a list of records.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BenchError(f"results cannot be read from '{path}': {error}") from None
    if not isinstance(values, list):
        raise BenchError(f"'{path}' must hold a list of records, got {type(values).__name__}")
    return [
        Record.from_json(value, f"{path}, record {number}")
        for number, value in enumerate(values)
    ]
