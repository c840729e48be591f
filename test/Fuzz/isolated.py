"""Cases that run in a process of their own: a crash or a hang ends it, not the count."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

__all__ = ["Outcome", "attempt", "outcomes"]

HANG_S = 120


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a case.

    Attributes
    ----------
    number
        Of the case.
    kind
        "right", "refused: ..." with the reason, or a fault: "WRONG", "ALARM" of the plan
        checker, "ERROR", "CRASH" or "HANG".
    text
        The case in a line.
    hits
        What it was made of and how it was lowered, as ("mask", "causal").
    """

    number: int
    kind: str
    text: str
    hits: list[tuple[str, str]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether it is a fault of the compiler or the runtime."""
        return self.kind.isupper()


def attempt(run: Callable[[int], Outcome], number: int) -> Outcome:
    """Run a case; an exception that no one expects is a failure like any other."""
    try:
        return run(number)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{error!r} at {where.filename}:{where.lineno}"
        return Outcome(number=number, kind="ERROR", text=text)


def _work(
    run: Callable[[int], Outcome], numbers: range, end: float, results: Connection
) -> None:
    for number in numbers:
        if time.monotonic() >= end:
            break
        results.send(number)
        results.send(attempt(run, number))
    results.send(None)


def outcomes(
    run: Callable[[int], Outcome], numbers: range, seconds: float
) -> Iterator[Outcome]:
    """Run numbered cases until they or the time end; give what became of each."""
    fork = multiprocessing.get_context("fork")
    end = time.monotonic() + seconds
    while numbers:
        receiver, sender = fork.Pipe(duplex=False)
        process = fork.Process(target=_work, args=(run, numbers, end, sender), daemon=True)
        process.start()
        sender.close()
        number, fault = numbers[0], ""
        while not fault:
            try:
                if not receiver.poll(HANG_S):
                    fault = "HANG"
                    break
                message = receiver.recv()
            except EOFError:
                fault = "CRASH"
            else:
                if message is None:
                    process.join()
                    return
                if isinstance(message, int):
                    number = message
                else:
                    yield message
        process.kill() if fault == "HANG" else process.join()
        process.join()
        text = f"nothing in {HANG_S} s" if fault == "HANG" else f"status {process.exitcode}"
        yield Outcome(number=number, kind=fault, text=text)
        numbers = numbers[numbers.index(number) + 1 :]
