"""Ctrl-C as a question that a search asks, not an error that may come anywhere."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts"]


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Say whether Ctrl-C was pressed meanwhile; a second one raises, as the first did before.

    Python raises `KeyboardInterrupt` wherever it is just then. In a destructor or a callback
    of C++ it is printed and lost, and a search that was told to end would go on; in the middle
    of a schedule it throws away what was found. Threads other than the main one, and programs
    that handle the signal themselves, keep what they have.
    """
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            signal.default_int_handler(number, frame)
        pressed = True

    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
