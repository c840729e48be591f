"""A timeline of one run, for people who ask where the time goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .processes import Processes, Work

__all__ = ["summary", "trace"]


def trace(on: Processes, work: Work, file: Path) -> str:
    """Profile a run on every rank; the first writes its trace, for Perfetto.

    Returns
    -------
    str
        What ran on the GPU of the first rank, a line each.
    """
    profiler = on.torch.profiler
    for _ in range(2):
        work()
    on.synchronize()
    on.agree(None)
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
        work()
        on.synchronize()
    if on.rank:
        return ""
    profile.export_chrome_trace(str(file))
    return summary(json.loads(file.read_text(encoding="utf-8")))


def summary(content: Any) -> str:
    """Give the work of a GPU in a Chrome trace, a line each, in the order of its start."""
    spans = sorted(
        (float(event["ts"]), float(event["dur"]), event)
        for event in content.get("traceEvents", [])
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    first = spans[0][0] if spans else 0.0
    return "\n".join(
        f"{start - first:10.1f} us {duration:10.1f} us  stream {event.get('tid')}  "
        f"{str(event.get('name'))[:70]}"
        for start, duration, event in spans
    )
