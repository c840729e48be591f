"""Running a plan once on random data on GPUs, and comparing a sample of it with float64."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..reference import condition, relative_error
from ..reference.sampled import draw_on, rows_dim, sampled
from ..runtime.trial import LIMITS, limits, widened
from .plan import CudaPlan
from .session import Session
from .tensors import torch_with_gpus

__all__ = ["CudaTrial", "conditions", "cuda_limits", "distances", "trial"]

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
    errors = _worst(session, "errors", distances(plan, session.rank, whole, outputs, seed))
    # The errors are those of all ranks, so that all come to the same decision.
    explained = widened(
        cuda_limits(plan),
        errors,
        lambda: _worst(session, "conditions", conditions(plan, session.rank, whole, seed)),
    )
    return CudaTrial(errors=errors, limits=explained)


def _worst(session: Session, what: str, own: Mapping[str, float]) -> dict[str, float]:
    """Give the largest number of each output over the ranks."""
    told = session.gather(what, " ".join(number.hex() for number in own.values()))
    rows = [[float.fromhex(number) for number in text.split()] for text in told]
    return {
        name: max(column) for name, column in zip(own, zip(*rows, strict=True), strict=True)
    }


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
    found = {}
    for name, whole in _expected(plan, rank, inputs, seed, terms).items():
        at = torch.from_numpy(_positions(plan, rank, name, seed, terms)).to(
            outputs[name].device
        )
        given = outputs[name].index_select(rows_dim(plan.program, name), at)
        found[name] = relative_error(given.double().cpu().numpy(), whole)
    return found


def conditions(
    plan: CudaPlan, rank: int, inputs: Mapping[str, Any], seed: int = 0, terms: int = _TERMS
) -> dict[str, float]:
    """Tell the condition of what `distances` compares of each output."""
    torch = importlib.import_module("torch")
    device = next(iter(inputs.values())).device
    generator = torch.Generator(device=device).manual_seed(seed)

    def signs(whole: Any) -> Any:
        drawn = torch.randint(2, whole.shape, generator=generator, device=device)
        return 2.0 * drawn.double() - 1.0

    return condition(lambda moved: _expected(plan, rank, moved, seed, terms), inputs, signs)


def _positions(plan: CudaPlan, rank: int, name: str, seed: int, terms: int) -> Any:
    """Draw which rows of a rank's shard of an output are compared."""
    rows = plan.layout(name).shape(rank)[rows_dim(plan.program, name)]
    drawn = np.random.default_rng([seed, rank, *name.encode()]).permutation(rows)
    return np.sort(drawn[:terms])


def _expected(
    plan: CudaPlan, rank: int, inputs: Mapping[str, Any], seed: int, terms: int
) -> dict[str, Any]:
    """Evaluate those rows of each output, in float64; none where the rank holds none of it."""
    torch = importlib.import_module("torch")
    device = next(iter(inputs.values())).device
    found = {}
    for output in plan.program.outputs:
        name, dim = output.name, rows_dim(plan.program, output.name)
        held = plan.layout(name).indices(rank)
        at = held[dim][_positions(plan, rank, name, seed, terms)]
        if 0 in plan.layout(name).shape(rank):
            sizes = [len(at) if other == dim else len(each) for other, each in enumerate(held)]
            found[name] = np.empty(sizes)
            continue
        whole = sampled(plan.program, inputs, name, torch.from_numpy(at).to(device))
        for other, indices in enumerate(held):
            if other != dim and len(indices) != whole.shape[other]:
                whole = whole.index_select(other, torch.from_numpy(indices).to(device))
        found[name] = whole.cpu().numpy()
    return found
