"""A simulation as a trace that Perfetto and Chrome show."""

from __future__ import annotations

from typing import Any

from ..runtime.timeline import name_tracks
from .result import Simulation

__all__ = ["PREDICTED", "to_chrome"]

PREDICTED = "predicted by simulation, not measured"


def to_chrome(simulation: Simulation) -> dict[str, Any]:
    """Give the timeline in the format that Perfetto and Chrome read.

    One process a rank; in it a track for what it computes and waits for, and one for each
    lane of transfers.

    Parameters
    ----------
    simulation
        What `simulate` gave.

    Returns
    -------
    dict
        To be written as JSON.
    """
    lanes = sorted({span.lane for span in simulation.spans} - {"compute"})
    threads = {lane: number for number, lane in enumerate(["compute", *lanes])}
    tracks = {(span.rank, threads[span.lane]): span.lane for span in simulation.spans}
    made: list[dict[str, Any]] = [
        {
            "ph": "X",
            "name": span.name,
            "cat": span.kind,
            "ts": span.start_s * 1e6,
            "dur": (span.end_s - span.start_s) * 1e6,
            "pid": span.rank,
            "tid": threads[span.lane],
            "args": {"bytes": span.bytes, "step": span.step},
        }
        for span in simulation.spans
    ]
    return {
        "displayTimeUnit": "ms",
        "otherData": {
            "producer": "mercury simulate",
            "topology": simulation.topology,
            "times": PREDICTED,
        },
        "traceEvents": [*name_tracks(simulation.mesh, tracks), *made],
    }
