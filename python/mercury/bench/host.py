"""``mercury bench host``: what a step of a plan costs the host, where no graph holds it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..cuda import CudaPlan, Session
from ..cuda.tensors import empty, torch_with_gpus
from ..dsl import Mesh
from ..programs import attention
from ..reference.sampled import draw_on
from ..schedule import Schedule
from ..strategies import get, names
from .statistics import middle

__all__ = [
    "HostPoint",
    "host_table",
    "measure_host",
    "named_plans",
    "small_tensors",
    "steps_of",
]

# Steps between two looks at the GPU: a driver's queue that is full would stop the host.
_STEPS = 128
# What a step waits for, and what it lends: part of its cost.
_COMPANY = frozenset({"wait", "lease_open", "lease_close"})


@dataclass(frozen=True, kw_only=True)
class HostPoint:
    """The host's time for one call of a plan: the maximum over the ranks.

    Attributes
    ----------
    plan
        Its name.
    steps
        The kernels, copies, fills and transfers that a call starts, on the rank with most.
    call_us, low, high
        Median time of a call, and its interval of 95 %, in microseconds.
    step_us
        The same of one step.
    """

    plan: str
    steps: int
    call_us: float
    low: float
    high: float
    step_us: float


def named_plans(mesh: Mesh) -> Iterator[tuple[str, CudaPlan]]:
    """Give every named method and two longer rings, small, with generated kernels alone.

    No step calls back into Python, so that the host's time is that of the plan.
    """
    for name in names():
        method = get(name)
        program = method.program(**_SMALL[method.program.name])
        yield name, _compile(method.schedule(mesh, program))
    for slices in (1, 8):
        program = attention(b=8, h=2, sq=128, sk=128)
        schedule = Schedule(program, mesh).tile("b", slices).parallelize("sq", mesh.names)
        schedule.shift("sk", by="sq", reads="pull")
        yield f"ring by pull, {slices}", _compile(schedule)


_SMALL: dict[str, dict[str, int]] = {
    "attention": {"h": 8, "sq": 512, "sk": 512},
    "decode_attention": {"h": 8, "sk": 4096},
    "matmul": {"m": 512, "n": 512, "depth": 512},
}


def _compile(schedule: Schedule) -> CudaPlan:
    plan = schedule.patch("*", "generated").compile(target="cuda")
    assert isinstance(plan, CudaPlan)
    return plan


def small_tensors(plan: CudaPlan, session: Session) -> dict[str, Any]:
    """Make this rank's shards of a plan, with PyTorch."""
    torch = torch_with_gpus()
    found = plan.shard(session, **draw_on(plan.program, torch.device("cuda", session.device)))
    for buffer in plan.program.outputs:
        shape = plan.layout(buffer.name).shape(session.rank)
        found[buffer.name] = empty(buffer, shape, session.device)
    torch.cuda.synchronize(session.device)
    return found


def steps_of(plan: CudaPlan) -> int:
    """Count what a call starts, on the rank that starts most."""
    return max(
        sum(event.happens and event.kind not in _COMPANY for event in plan.events(rank))
        for rank in range(plan.mesh.size)
    )


def measure_host(
    session: Session, name: str, plan: CudaPlan, tensors: Mapping[str, Any], *, rounds: int
) -> HostPoint:
    """Time calls of a plan that follow each other; every rank does so together.

    Parameters
    ----------
    session, name, plan
        What runs, and where.
    tensors
        This rank's shards.
    rounds
        How often it is measured.
    """
    call, steps = plan.bind(session, **tensors), steps_of(plan)
    repeat = max(1, _STEPS // max(steps, 1))
    call()
    session.synchronize()
    own = []
    for _ in range(rounds):
        session.gather("next round", "")
        call()  # where ranks read from each other it brings their hosts together
        began = time.perf_counter_ns()
        for _ in range(repeat):
            call()
        own.append((time.perf_counter_ns() - began) / 1000 / repeat)
        session.synchronize()
    told = session.gather("host times", " ".join(taken.hex() for taken in own))
    rows = [[float.fromhex(taken) for taken in text.split()] for text in told]
    found = middle([max(column) for column in zip(*rows, strict=True)])
    return HostPoint(
        plan=name,
        steps=steps,
        call_us=found.median,
        low=found.low,
        high=found.high,
        step_us=found.median / max(steps, 1),
    )


def host_table(points: list[HostPoint]) -> str:
    """Lay the points out."""
    lines = [f"{'plan':20}{'steps':>7}{'us a call':>11}{'interval':>18}{'us a step':>11}"]
    lines += [
        f"{each.plan:20}{each.steps:7}{each.call_us:11.1f}"
        f"{f'{each.low:.1f} to {each.high:.1f}':>18}{each.step_us:11.2f}"
        for each in points
    ]
    return "\n".join(lines)
