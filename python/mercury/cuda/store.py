"""How the processes of a job tell each other a few words before they run.

A launcher such as torchrun names a meeting place in the environment; PyTorch's store
meets there. ``MERCURY_STORE``, a folder that every process sees, is one without PyTorch.
"""

from __future__ import annotations

import importlib
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from ..errors import RunError

__all__ = ["FolderStore", "Launch", "Store", "agree", "find_launch", "ranks_text"]


class Store(Protocol):
    """Words by name, seen by every process."""

    def put(self, name: str, text: str) -> None:
        """Say something under a name that nobody used before."""

    def get(self, name: str) -> str | None:
        """Give what was said, or None as long as nothing was."""


class FolderStore:
    """A folder, with a file for each name.

    Parameters
    ----------
    folder
        Made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, text: str) -> None:
        """Write a file; others see all of it or nothing."""
        place = self._folder / name.replace("/", ".")
        made = place.with_name(f"{place.name}.{os.getpid()}")
        made.write_text(text)
        made.rename(place)

    def get(self, name: str) -> str | None:
        """Read a file, if it is there."""
        try:
            return (self._folder / name.replace("/", ".")).read_text()
        except FileNotFoundError:
            return None


class _TorchStore:
    """PyTorch's store at ``MASTER_ADDR``; that of torchrun is used where it runs one."""

    def __init__(self, seconds: float) -> None:
        torch = importlib.import_module("torch.distributed")
        timeout = timedelta(seconds=seconds)
        try:
            store, _, _ = next(torch.rendezvous("env://", timeout=timeout))
        except Exception as error:
            where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
            raise RunError(
                f"the processes of this job did not meet at {where} within {seconds:.0f} s "
                f"({error}); start all of them, with the same MASTER_ADDR and MASTER_PORT"
            ) from error
        self._store = torch.PrefixStore("mercury", store)

    def put(self, name: str, text: str) -> None:
        self._store.set(name, text)

    def get(self, name: str) -> str | None:
        return str(self._store.get(name).decode()) if self._store.check([name]) else None


# One for a process: rank 0 serves the others at the port that the launcher named.
_stores: dict[str, Store] = {}


def _torch_store(seconds: float) -> Store:
    where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    if where not in _stores:
        _stores[where] = _TorchStore(seconds)
    return _stores[where]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A process among those of its job.

    Attributes
    ----------
    rank, size
        Its number, and how many there are.
    local_rank
        Its number on its host.
    store
        Where they meet; None for a job of one.
    """

    rank: int
    size: int
    local_rank: int
    store: Store | None


def find_launch(size: int, deadline_ms: int) -> Launch:
    """Read how this process was started.

    Parameters
    ----------
    size
        The ranks of the mesh. One needs no launcher.
    deadline_ms
        The longest wait for the other processes.

    Raises
    ------
    RunError
        When no launcher started it, or one for another number of ranks.
    """
    given = os.environ
    local = int(given.get("LOCAL_RANK", "0"))
    if size == 1:
        return Launch(rank=0, size=1, local_rank=local, store=None)
    folder = given.get("MERCURY_STORE")
    wanted = ["RANK", "WORLD_SIZE", *([] if folder else ["MASTER_ADDR", "MASTER_PORT"])]
    absent = [name for name in wanted if not given.get(name)]
    if absent:
        raise RunError(
            f"a mesh of {size} ranks needs a process for each, and {', '.join(absent)} of the "
            f"environment is not set; start with: torchrun --nproc-per-node {size} ..."
        )
    rank, processes = int(given["RANK"]), int(given["WORLD_SIZE"])
    if processes != size or not 0 <= rank < size:
        raise RunError(
            f"the mesh has {size} ranks and this is process {rank} of {processes}; start as "
            "many processes as the mesh has ranks, or compile for another mesh"
        )
    store = FolderStore(Path(folder)) if folder else _torch_store(deadline_ms / 1000)
    return Launch(
        rank=rank,
        size=size,
        local_rank=int(given.get("LOCAL_RANK", rank)),
        store=store,
    )


def agree(launch: Launch, name: str, text: str, deadline_ms: int) -> list[str]:
    """Tell every rank something, and hear what each of them tells.

    Parameters
    ----------
    launch
        This process.
    name
        Of this exchange; each is used once.
    text
        What this rank tells.
    deadline_ms
        The longest wait for the others.

    Returns
    -------
    list of str
        By rank.

    Raises
    ------
    RunError
        When ranks are silent beyond the deadline, naming them.
    """
    if launch.store is None:
        return [text]
    launch.store.put(f"{name}/{launch.rank}", text)
    end = time.monotonic() + deadline_ms / 1000
    heard: dict[int, str] = {}
    while True:
        for rank in set(range(launch.size)) - set(heard):
            said = launch.store.get(f"{name}/{rank}")
            if said is not None:
                heard[rank] = said
        if len(heard) == launch.size:
            return [heard[rank] for rank in range(launch.size)]
        if time.monotonic() > end:
            silent = sorted(set(range(launch.size)) - set(heard))
            raise RunError(
                f"rank {launch.rank} waited {deadline_ms} ms for {ranks_text(silent)} at "
                f"'{name}'; look for a process that ended, or that does something else"
            )
        time.sleep(0.001)


def ranks_text(ranks: list[int]) -> str:
    """Name ranks in words."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
