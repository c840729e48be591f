"""Communicators of levels that span hosts, made by nccl4py.

The runtime makes those of one host itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ..dsl.mesh import Mesh
from ..errors import RunError

__all__ = ["make_communicator"]


def make_communicator(
    mesh: Mesh, rank: int, level: str, tell_all: Callable[[str, str], list[str]]
) -> Any:
    """Make the communicator of this rank's group on a level; all ranks do so together.

    Parameters
    ----------
    mesh, rank, level
        The group: the ranks that differ on the level only.
    tell_all
        Tells every rank a text under a name, and gives what each of them told.

    Returns
    -------
    nccl.core.Communicator
        Its ``ptr`` is the ``ncclComm_t``; ``destroy`` ends it.

    Raises
    ------
    RunError
        When nccl4py is not there, or NCCL refuses.
    """
    try:
        nccl = importlib.import_module("nccl.core")
    except ImportError as error:
        raise RunError(
            f"level '{level}' spans several hosts, whose communicator nccl4py makes, and it is "
            f"not there ({error}); pip install nccl4py, or pass one as "
            f"Session(..., communicators={{'{level}': ...}})"
        ) from None
    at = mesh.coordinates(rank)
    try:
        own = bytes(nccl.get_unique_id()).hex() if at[level] == 0 else ""
        told = tell_all(f"communicator of {level}", own)
        first = {**at, level: 0}
        named = told[next(r for r in range(mesh.size) if mesh.coordinates(r) == first)]
        unique = nccl.UniqueId.from_bytes(bytes.fromhex(named))
        return nccl.Communicator.init(mesh[level], at[level], unique)
    except RunError:
        raise
    except Exception as error:
        raise RunError(
            f"rank {rank} cannot make the communicator of level '{level}': {error}"
        ) from error
