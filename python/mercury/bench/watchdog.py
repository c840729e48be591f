"""Ending a process that hangs: what waits on a GPU cannot be interrupted."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

__all__ = ["Watchdog"]

HUNG = 70
"""The exit status of a process that was ended."""


def _end(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
    os._exit(HUNG)


class Watchdog:
    """Ends the process unless it hears of progress in time.

    Parameters
    ----------
    end
        What to do, given a text that says where it hung.
    """

    def __init__(self, end: Callable[[str], None] = _end) -> None:
        self._end = end
        self._timer: threading.Timer | None = None

    def expect(self, what: str, seconds: float) -> None:
        """Expect the next word within so many seconds."""
        self.stop()
        text = (
            f"{what} has not ended in {seconds:.0f} s and cannot be stopped: this process "
            "ends; results until here are written, and --resume goes on from there"
        )
        self._timer = threading.Timer(seconds, self._end, [text])
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Expect nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
