"""Timing schedules of any program on the GPUs of this process and its peers, for `tune`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .cuda import Cuda
from .errors import BenchError
from .links import measure_links
from .measure import Settings, compare
from .ours import OwnPlan, candidate
from .processes import Processes, Work
from .statistics import median

if TYPE_CHECKING:
    from ..dsl import Mesh
    from ..schedule import Schedule

__all__ = ["RandomProblem", "observe_links", "on_gpus", "seconds_of"]

_LARGE_MIB = 1024.0  # what topologies are measured with at the most


class RandomProblem:
    """Inputs of normal numbers, different on each rank, for plans of any program.

    Numbers of one launch do not change its time; what they mean is checked where the plan
    runs on embedded ranks.
    """

    def __init__(self, on: Processes, dtypes: dict[str, str]) -> None:
        self._on, self._dtypes = on, dtypes

    def part(self, name: str, indices: Sequence[Any]) -> Any:
        """Give a tensor of the shape of a shard."""
        torch = self._on.torch
        kinds = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
        shape = [len(index) for index in indices]
        made = torch.empty(shape, dtype=kinds[self._dtypes[name]], device=self._on.device)
        return made.normal_()


def seconds_of(
    on: Processes, schedules: Sequence[Schedule], settings: Settings | None = None
) -> list[float | str]:
    """Time schedules in turns; give the seconds of a run of each, or why it has none."""
    ready: dict[str, Work] = {}
    reasons: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        for number, schedule in enumerate(schedules):
            name = f"{number}"
            dtypes = {buffer.name: buffer.dtype for buffer in schedule.program.buffers}
            own, message = candidate(OwnPlan(name=name, schedule=schedule)), None
            try:
                prepared = own.prepare(RandomProblem(on, dtypes), on)
                stack.callback(prepared.close)
                ready[name] = prepared.graph or prepared.run
                _complete(on, prepared.run(), ready[name])
            except Exception as error:  # one plan that fails must not end the search
                message = f"{type(error).__name__}: {error}"
            agreed = on.agree(message)
            if agreed is not None:
                ready.pop(name, None)
                reasons[name] = agreed
        if not ready:
            return [reasons[f"{number}"] for number in range(len(schedules))]
        # No plan is a floor here: what is slow is measured all the same, and only loses.
        own_settings = settings or Settings(slow=100.0)
        timing = compare(on, ready, own_settings)
    return [
        reasons.get(name) or median(timing.samples.get(name) or [timing.tried[name]]) / 1000
        for name in map(str, range(len(schedules)))
    ]


def _complete(on: Processes, outputs: Any, replay: Work) -> None:
    """Replay over outputs that hold no number; all must hold one then."""
    on.synchronize()
    for output in outputs.values():
        output.fill_(float("nan"))
    replay()
    on.synchronize()
    for name, output in outputs.items():
        missing = int(on.torch.isnan(output).sum())
        if missing:
            raise BenchError(f"{missing} elements of '{name}' are not written, or not numbers")


def observe_links(on: Cuda) -> dict[str, float]:
    """Measure each level with a large message; give bytes per second, for `Observed`.

    Examples
    --------
    >>> from mercury.tuner import Observed
    >>> def main(found, session, on):
    ...     seen = Observed(bandwidths=observe_links(on))
    ...     return found.compile("cuda", seen, session=session)
    """
    points = measure_links(on, sizes=(_LARGE_MIB,), rounds=3)
    return {
        point.level: 1e9 * point.gb_per_s
        for point in points
        if point.transport == "p2p" and point.ranks == "all"
    }


@contextlib.contextmanager
def on_gpus(
    mesh: Mesh,
) -> Iterator[
    tuple[Callable[[Sequence[Schedule]], list[float | str]], Callable[[str], Sequence[str]]]
]:
    """Give `tune` its measurement and its vote, while the ranks of torchrun are together.

    Raises
    ------
    BenchError
        When there are not as many ranks as the mesh has, or no GPU.
    """
    with Cuda() as on:
        if on.size != mesh.size:
            raise BenchError(
                f"{mesh} has {mesh.size} ranks and {on.size} were started; start as many with "
                f"torchrun --nproc-per-node {mesh.size}, or give mesh"
            )

        def vote(text: str) -> Sequence[str]:
            texts = [""] * on.size
            on.dist.all_gather_object(texts, text)
            return texts

        yield lambda schedules: seconds_of(on, schedules), vote
