"""How fast a GPU does what only moves bytes: the generated kernels, and a library's merges.

A generated kernel is measured as plans run it: in the graph of a plan on one GPU whose other
kernels do nothing. What an empty plan takes is taken away.
"""

from __future__ import annotations

import contextlib
import importlib
from math import prod
from typing import TYPE_CHECKING, Any

from ..topology import Work as Shape
from .cuda import Cuda
from .kernels import KernelPoint
from .links import time_in_graph
from .processes import Processes, Work, say
from .statistics import middle

if TYPE_CHECKING:
    from ..cuda import CudaPlan
    from ..runtime.events import Event

__all__ = ["MOVES", "measure_moves", "moved_bytes", "plan_that_moves"]

# (batch, rows) of tensors of 32 heads of 128: 16 MiB to 1 GiB in bf16.
SIZES = ((1, 2048), (1, 8192), (16, 8192))
MOVES = ("softmax_merge_all", "sum_all", "copy")
_MERGES = ("merge_attention_fwd", "merge_attention_bwd")
_NOTHING = "probe"
_BYTES = {"bf16": 2, "f16": 2, "f32": 4}
_REPEAT = 16


def plan_that_moves(kind: str, batch: int, rows: int) -> CudaPlan:
    """Compile a plan for one GPU whose only kernel that does anything is of a kind.

    Parameters
    ----------
    kind
        Of `MOVES`; empty for a plan that does nothing.
    batch, rows
        The size of what is moved, with 32 heads of 128.
    """
    from .. import Mesh, Schedule, programs  # noqa: PLC0415 (loads the compiler)

    if kind in ("sum_all", "copy"):  # two partial results, or their sum in a wider type
        program = programs.matmul(m=batch * rows, n=32 * 128, depth=256)
        made = Schedule(program, Mesh(gpu=1)).tile("k", 2)
        if kind == "sum_all":
            made.defer("C")
    else:
        program = programs.attention(b=batch, h=32, sq=rows, sk=256)
        made = Schedule(program, Mesh(gpu=1))
        if kind == "softmax_merge_all":
            made.tile("sk", 2).defer("O", partial="bf16")
    return made.patch("*", _NOTHING).compile(target="cuda")


def moved_bytes(plan: CudaPlan) -> dict[str, float]:
    """Give the bytes read and written by each kind of a plan's moves, as the simulator does."""
    found: dict[str, float] = {}
    for event in plan.events(0):
        own = event.kernel if event.kind == "launch" else event.kind
        if own in (*MOVES, "fill", "accumulate", "softmax_merge"):
            found[own] = found.get(own, 0.0) + _bytes(event)
    return found


def _bytes(event: Event) -> float:
    read = sum(prod(box.sizes) * _BYTES[box.dtype] for box in event.inputs)
    flags = event.overwrites or (event.kind != "accumulate",) * len(event.outputs)
    written = sum(
        prod(box.sizes) * _BYTES[box.dtype] * (1 if whole else 2)
        for box, whole in zip(event.outputs, flags, strict=True)
    )
    return float(read + written)


def measure_moves(on: Cuda, *, rounds: int = 9) -> list[KernelPoint]:
    """Measure every kind of move at every size; what fails is told and left out."""
    points: list[KernelPoint] = []
    for batch, rows in SIZES:
        ways = {**dict.fromkeys(MOVES, _generated), **dict.fromkeys(_MERGES, _merge)}
        for kind, measure in ways.items():
            message, size, samples = None, 0.0, [0.0]
            try:
                size, samples = measure(on, kind, batch, rows, rounds)
            except Exception as error:  # one kind that fails must not end the probe
                message = f"{type(error).__name__}: {error}"
            on.forget()
            if (agreed := on.agree(message)) is not None:
                say(on, f"{kind} of {batch}, {rows} left out: {agreed}")
                continue
            seen = middle(samples)
            points.append(
                KernelPoint(
                    kernel=f"move {kind}",
                    shape=f"{batch}, {rows}",
                    work=Shape(flops=size, rows=rows),
                    ms=max(seen.median, 1e-6),
                    low=seen.low,
                    high=seen.high,
                )
            )
    return points


def _generated(
    on: Processes, kind: str, batch: int, rows: int, rounds: int
) -> tuple[float, list[float]]:
    plan, empty = plan_that_moves(kind, batch, rows), plan_that_moves("", 1, 256)
    with contextlib.ExitStack() as stack:
        moving, resting = (_graph(on, each, stack) for each in (plan, empty))
        for work in (moving, resting):
            on.milliseconds(work, _REPEAT)
        samples = [
            on.milliseconds(moving, _REPEAT) - on.milliseconds(resting, _REPEAT)
            for _ in range(rounds)
        ]
    return moved_bytes(plan)[kind], samples


def _graph(on: Processes, plan: CudaPlan, stack: contextlib.ExitStack) -> Work:
    cuda = importlib.import_module("mercury.cuda")
    kernels = {f"{_NOTHING}.{name}": _nothing for name in ("attention_fwd", "matmul")}
    device = on.torch.device(on.device).index or 0
    session = stack.enter_context(cuda.Session(plan.mesh, kernels=kernels, device=device))
    kinds = {"bf16": on.torch.bfloat16, "f32": on.torch.float32}
    tensors = {
        buffer.name: on.torch.zeros(
            plan.layout(buffer.name).shape(0), dtype=kinds[buffer.dtype], device=on.device
        )
        for buffer in plan.program.buffers
    }
    graph: Work = plan.bind(session, **tensors).capture()
    return graph


def _nothing(_: Any) -> None:
    """Compute nothing; what it should have written holds whatever it held."""


def _merge(
    on: Processes, kind: str, batch: int, rows: int, rounds: int
) -> tuple[float, list[float]]:
    """Time what a library's launch adds where it merges into float32."""
    torch = on.torch
    shape = (batch, rows, 32, 128)
    part = torch.zeros(shape, dtype=torch.bfloat16, device=on.device)
    whole = torch.zeros(shape, dtype=torch.float32, device=on.device)
    size = part.numel() * (2 + 4 + 4)
    work: Work
    if kind == "merge_attention_fwd":
        merge = importlib.import_module("mercury.cuda.kernels.merge").softmax_merge
        sums = (torch.zeros(batch, 32, rows, device=on.device) for _ in range(2))
        total, lse = sums
        size += lse.numel() * (2 + 4 + 4)

        def work() -> None:
            merge(part, total, whole, lse)
    else:

        def work() -> None:
            whole.add_(part)

    return float(size), time_in_graph(on, work, repeat=_REPEAT, rounds=rounds)
