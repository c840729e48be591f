"""What others do for the same work: optional packages, each in its own file."""

from __future__ import annotations

from ..candidate import Candidate
from ..workload import Attention, Workload
from . import context_parallel, gather, nccl_matmul, ring, symm_mem, usp

__all__ = ["peers_of"]


def peers_of(workload: Workload, ranks: int) -> tuple[Candidate, ...]:
    """List the peers of a workload; whether each is there, it says when it is prepared."""
    if isinstance(workload, Attention):
        return (*ring.PEERS, *gather.PEERS, *usp.peers(ranks), *context_parallel.PEERS)
    return (*nccl_matmul.PEERS, *symm_mem.PEERS)
