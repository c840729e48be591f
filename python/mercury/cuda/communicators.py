"""Communicators of groups that span hosts, made by nccl4py.

The runtime makes those of one host itself.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..dsl.mesh import Mesh
from ..errors import RunError

__all__ = ["make_communicator", "start_aborts", "wait_for_aborts"]


def make_communicator(
    mesh: Mesh,
    rank: int,
    group: tuple[str, ...],
    tell_all: Callable[[str, str], list[str]],
) -> Any:
    """Make the communicator of this rank's group on some levels; all ranks do so together.

    Parameters
    ----------
    mesh, rank, group
        The group: the ranks that differ on these levels only, row-major.
    tell_all
        Tells every rank a text under a name, and gives what each of them told.

    Returns
    -------
    nccl.core.Communicator
        Its ``ptr`` is the ``ncclComm_t``; ``destroy`` ends it, ``abort`` after a failure.

    Raises
    ------
    RunError
        When nccl4py is not there, or NCCL refuses.
    """
    named = f"level{'s' if len(group) > 1 else ''} {', '.join(map(repr, group))}"
    try:
        nccl = importlib.import_module("nccl.core")
    except ImportError as error:
        raise RunError(
            f"the ranks of {named} are on several hosts; nccl4py makes their communicator, and "
            f"it is not there ({error}); pip install nccl4py, or pass one as "
            f"Session(..., communicators={{'{','.join(group)}': ...}})"
        ) from None
    members = _members(mesh, rank, group)
    try:
        own = bytes(nccl.get_unique_id()).hex() if rank == members[0] else ""
        told = tell_all(f"communicator of {','.join(group)}", own)
        unique = nccl.UniqueId.from_bytes(bytes.fromhex(told[members[0]]))
        return nccl.Communicator.init(len(members), members.index(rank), unique)
    except RunError:
        raise
    except Exception as error:
        raise RunError(
            f"rank {rank} cannot make the communicator of {named}: {error}"
        ) from error


def start_aborts(communicators: Sequence[Any]) -> list[threading.Thread]:
    """Begin to abort communicators, which ends their messages.

    An abort returns when no graph has messages of its communicator, and such a graph, when it
    runs, can be destroyed once its messages have ended. So each abort has a thread, to be
    waited for after the graphs.
    """
    aborts = [threading.Thread(target=each.abort, daemon=True) for each in communicators]
    for abort in aborts:
        abort.start()
    return aborts


def wait_for_aborts(aborts: Sequence[threading.Thread], deadline_ms: int) -> str:
    """Wait for aborts that were begun; say how many are late, or nothing."""
    ends = time.monotonic() + deadline_ms / 1000
    for abort in aborts:
        abort.join(max(0, ends - time.monotonic()))
    late = sum(abort.is_alive() for abort in aborts)
    if not late:
        return ""
    return (
        f"NCCL did not abort {late} of {len(aborts)} communicators between hosts within "
        f"{deadline_ms} ms; end the process"
    )


def _members(mesh: Mesh, rank: int, group: tuple[str, ...]) -> list[int]:
    """Give the global ranks of this rank's group; ranks are row-major, so in its order."""
    here = mesh.coordinates(rank)
    return [
        other
        for other in range(mesh.size)
        if all(
            at == here[level] or level in group for level, at in mesh.coordinates(other).items()
        )
    ]
