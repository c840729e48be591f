"""Running a plan once on random data on GPUs, and comparing a sample of it with float64."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..reference import relative_error
from ..reference.sampled import draw_on, rows_dim, sampled
from ..runtime.trial import LIMITS, limits
from .plan import CudaPlan
from .session import Session
from .tensors import torch_with_gpus

__all__ = ["CudaTrial", "cuda_limits", "distances", "trial"]

_TERMS = 64  # positions of each output that a rank compares


@dataclass(frozen=True, kw_only=True)
class CudaTrial:
    """What came of it.

    Attributes
    ----------
    errors
        The largest relative error of each output over the ranks.
    limits
        The largest that rounding explains, for each output.
    """

    errors: dict[str, float]
    limits: dict[str, float]

    @property
    def right(self) -> bool:
        """Whether every output is as near as its dtype allows."""
        return all(error <= self.limits[name] for name, error in self.errors.items())


def trial(plan: CudaPlan, session: Session, seed: int = 0) -> CudaTrial:
    """Run a plan on random inputs of unit scale; every rank does so together.

    Parameters
    ----------
    plan
        A plan of attention or products.
    session
        Where it runs.
    seed
        Of the inputs.
    """
    device = torch_with_gpus().device("cuda", session.device)
    whole = draw_on(plan.program, device, seed)
    outputs = plan.run(session, **plan.shard(session, **whole))
    own = distances(plan, session.rank, whole, outputs, seed)
    told = session.gather("errors", " ".join(own[name].hex() for name in outputs))
    rows = [[float.fromhex(error) for error in text.split()] for text in told]
    return CudaTrial(
        errors={name: max(row[i] for row in rows) for i, name in enumerate(outputs)},
        limits=cuda_limits(plan),
    )


def cuda_limits(plan: CudaPlan) -> dict[str, float]:
    """Give the largest error of each output that rounding explains.

    A library hands over results in the type of the tensors it is given, and its products
    are of weights that it rounded to that type: twice what one rounding explains.
    """
    given = max(LIMITS[buffer.dtype] for buffer in plan.program.inputs)
    return {name: 2 * max(given, limit) for name, limit in limits(plan.program).items()}


def distances(
    plan: CudaPlan,
    rank: int,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    seed: int = 0,
    terms: int = _TERMS,
) -> dict[str, float]:
    """Compare a rank's shards of outputs with float64 at random positions.

    Parameters
    ----------
    plan, rank
        Whose shards.
    inputs
        Whole tensors.
    outputs
        Shards.
    seed, terms
        Of the positions, and how many.

    Returns
    -------
    dict
        The relative error of each output; 0 where the rank holds none of it.
    """
    torch = importlib.import_module("torch")
    rng = np.random.default_rng([seed, rank])
    found = {}
    for name, shard in outputs.items():
        dim = rows_dim(plan.program, name)
        held = plan.layout(name).indices(rank)
        if shard.numel() == 0:
            found[name] = 0.0
            continue
        at = np.sort(rng.permutation(len(held[dim]))[:terms])
        device = next(iter(inputs.values())).device
        positions = torch.from_numpy(held[dim][at]).to(device)
        expected = sampled(plan.program, inputs, name, positions)
        for other, indices in enumerate(held):
            if other != dim and len(indices) != expected.shape[other]:
                expected = expected.index_select(other, torch.from_numpy(indices).to(device))
        given = shard.index_select(dim, torch.from_numpy(at).to(shard.device))
        found[name] = relative_error(given.double().cpu().numpy(), expected.cpu().numpy())
    return found
