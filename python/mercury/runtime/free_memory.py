"""What memory this machine has left."""

from __future__ import annotations

from pathlib import Path

__all__ = ["free_memory"]


def free_memory() -> int | None:
    """Give the bytes that can be taken without swapping; None where the system is silent."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None
