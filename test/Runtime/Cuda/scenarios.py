"""Faults that end a job: every rank hears of them in time, and can work again.

Run by test/Runtime/Cuda/ranks.py on the fake driver, and by test/Gpu/faults.py on GPUs.
"""

from __future__ import annotations

import os
import re
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mercury as mc

DEADLINE_MS = 8000
# Beyond the deadline: what is left in the lanes is ended, and the session is closed.
SPARE_S = 12.0


class Bound(ABC):
    """A plan bound to shards of its own, which the machine makes.

    Parameters
    ----------
    session, schedule
        What is bound, and where.
    within
        What it is bound within.
    """

    def __init__(
        self,
        session: mc.cuda.Session,
        schedule: mc.Schedule,
        within: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.session = session
        self.plan = schedule.compile(target="cuda")
        shards = self.make_shards()
        session.gather("shards", "")  # no more memory is taken until all have theirs
        with within or nullcontext():
            self.call = self.plan.bind(session, **shards)

    @abstractmethod
    def make_shards(self) -> Mapping[str, Any]:
        """Take memory for this rank's shards."""

    @abstractmethod
    def draw(self, seed: int) -> None:
        """Put new inputs into the shards, and NaN where results come."""

    @abstractmethod
    def check(self) -> None:
        """Compare the outputs with what they must be."""


class Machine(ABC):
    """This rank, and what it runs.

    Attributes
    ----------
    rank, ranks, device
        This rank, how many there are, and its GPU.
    shares
        Whether ranks share a GPU.
    kernels
        What sessions are opened with.
    bind
        The class of its bound plans.
    """

    rank: int
    ranks: int
    device: int
    shares = False
    kernels: Mapping[str, mc.cuda.DeviceKernel] = {}
    bind: type[Bound]

    def session(self, mesh: mc.Mesh, deadline_ms: int) -> mc.cuda.Session:
        """Open a session on this rank's GPU."""
        return mc.cuda.Session(
            mesh, kernels=self.kernels, deadline_ms=deadline_ms, device=self.device
        )

    @abstractmethod
    def schedule(self, name: str) -> mc.Schedule:
        """Give a schedule by its name.

        ``reads`` only reads from peers, ``sends`` sends to them, ``other`` reads and is of
        another program, and ``large`` needs more memory than `starved` leaves. ``alone`` is
        for a mesh of one rank.
        """

    @abstractmethod
    def starved(self) -> AbstractContextManager[Any]:
        """Leave little memory on this rank's GPU."""


def refused(
    work: Callable[[], Any], kind: type[mc.MercuryError] = mc.RunError
) -> mc.MercuryError:
    """The error that work ends with."""
    try:
        work()
    except kind as error:
        return error
    raise AssertionError("expected an error, there was none")


def run_right(machine: Machine, session: mc.cuda.Session, name: str, seed: int = 0) -> Bound:
    """Run a plan once, on all ranks, and compare it."""
    bound = machine.bind(session, machine.schedule(name))
    bound.draw(seed)
    session.gather("drawn", "")  # peers may read the shards from now on
    bound.call()
    session.synchronize()
    bound.check()
    return bound


def mesh_of(machine: Machine) -> mc.Mesh:
    return mc.Mesh(gpu=machine.ranks)


def expect_end(session: mc.cuda.Session, work: Callable[[], Any]) -> str:
    """Work fails in time, and so does all that follows; close the session."""
    began = time.monotonic()
    error = refused(work)
    assert "failed before" in str(refused(session.synchronize))
    session.close()
    seconds = time.monotonic() - began
    assert seconds < DEADLINE_MS / 1000 + SPARE_S, f"it took {seconds} s"
    return str(error)


def mismatched_plans(machine: Machine) -> None:
    """Rank 0 has another plan than the others: all are told, and take the same one then."""
    with machine.session(mesh_of(machine), DEADLINE_MS) as session:
        schedule = machine.schedule("other" if machine.rank == 0 else "reads")
        error = str(refused(lambda: machine.bind(session, schedule)))
        others = ", ".join(str(rank) for rank in range(1, machine.ranks))
        assert "rank 0: matmul" in error, error
        assert f"rank{'s' if machine.ranks > 2 else ''} {others}: attention" in error, error
        run_right(machine, session, "other")


def absent(machine: Machine, name: str, *, replays: bool) -> None:
    """The last rank never calls the plan: all end within the deadline, and work again."""
    session = machine.session(mesh_of(machine), DEADLINE_MS)
    bound = run_right(machine, session, name)
    call: Callable[[], None] = bound.call.capture() if replays else bound.call
    session.gather("ready", "")

    def work() -> None:
        if machine.rank != machine.ranks - 1:
            call()
        while True:  # one that is done hears of it when it asks
            session.synchronize()

    error = expect_end(session, work)
    assert error.startswith("rank "), error
    assert f"within {DEADLINE_MS} ms" in error, error
    if name == "reads":
        assert f"group rank {machine.ranks - 1}" in error, error
    elif not replays:
        assert re.search(r"operation \d+, exchange on level 'gpu', is not over", error), error
    with machine.session(mesh_of(machine), DEADLINE_MS) as again:
        run_right(machine, again, "other")


def killed(machine: Machine, name: str) -> None:
    """The last rank ends in the middle: the others end in time, and can work alone."""
    session = machine.session(mesh_of(machine), DEADLINE_MS)
    bound = run_right(machine, session, name)
    session.gather("ready", "")
    if machine.rank == machine.ranks - 1:
        os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        while True:
            bound.call()
            session.synchronize()

    error = expect_end(session, work)
    assert error.startswith("rank "), error
    with machine.session(mc.Mesh(gpu=1), DEADLINE_MS) as alone:
        run_right(machine, alone, "alone")


def out_of_memory(machine: Machine) -> None:
    """The last rank has too little memory: all are told, and run a smaller plan."""
    last = machine.ranks - 1
    with machine.session(mesh_of(machine), DEADLINE_MS) as session:
        run_right(machine, session, "reads")
        within = machine.starved() if machine.rank == last else None
        error = str(refused(lambda: machine.bind(session, machine.schedule("large"), within)))
        first = r"\d+" if machine.shares else str(last)
        assert re.match(rf"rank {first} \(gpu={first}\), opening GPU", error), error
        assert "CUDA_ERROR_OUT_OF_MEMORY" in error, error
        session.gather("memory is free", "")
        run_right(machine, session, "other")


FAULTS: dict[str, Callable[[Machine], None]] = {
    "mismatched-plans": mismatched_plans,
    "out-of-memory": out_of_memory,
    "absent-reads": lambda machine: absent(machine, "reads", replays=False),
    "absent-reads-replayed": lambda machine: absent(machine, "reads", replays=True),
    "killed-reads": lambda machine: killed(machine, "reads"),
    "absent-sends": lambda machine: absent(machine, "sends", replays=False),
    "absent-sends-replayed": lambda machine: absent(machine, "sends", replays=True),
    "killed-sends": lambda machine: killed(machine, "sends"),
}
"""By name; those with ``sends`` need a GPU for each rank."""
