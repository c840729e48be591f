"""How much a kernel loses beside a message: they share the multiprocessors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cuda import Cuda
from .links import levels_of
from .processes import Work
from .statistics import median

__all__ = ["measure_slowdowns", "slowdown"]

_SIZE = 8192  # of a square product, which takes longer than the message
_MESSAGE = 64 << 20
_MOST = 0.9


def slowdown(kernel: float, message: float, together: float) -> float:
    """Give the part of its speed that a kernel loses while a message is under way.

    Parameters
    ----------
    kernel, message
        The time of each alone, the kernel's the longer one.
    together
        Of both, begun at once.

    Examples
    --------
    >>> slowdown(4.0, 2.0, 4.0), slowdown(4.0, 2.0, 5.0), slowdown(4.0, 2.0, 6.0)
    (0.0, 0.5, 0.9)
    """
    return min(_MOST, max(0.0, (together - kernel) / message))


def measure_slowdowns(on: Cuda, *, rounds: int = 9) -> dict[str, dict[str, float]]:
    """Measure, for each level, what sends and gathers take of a product beside them."""
    torch, dist = on.torch, on.dist
    a = torch.ones(_SIZE, _SIZE, dtype=torch.bfloat16, device=on.device)
    b, c = torch.ones_like(a), torch.empty_like(a)

    def product() -> None:
        torch.mm(a, b, out=c)

    found: dict[str, dict[str, float]] = {}
    for level, groups in levels_of(on).items():
        made = [(ranks, dist.new_group(ranks)) for ranks in groups]
        ranks, group = next(each for each in made if on.rank in each[0])
        found[level] = {
            transport: _slowdown(on, product, begin, rounds)
            for transport, begin in _messages(on, ranks, group).items()
        }
        on.forget()
    return found


def _slowdown(
    on: Cuda, product: Work, begin: Callable[[], Callable[[], None]], rounds: int
) -> float:
    def message() -> None:
        begin()()

    def both() -> None:
        end = begin()
        product()
        end()

    alone, sent, together = (
        _milliseconds(on, each, rounds) for each in (product, message, both)
    )
    return slowdown(alone, sent, together)


def _milliseconds(on: Cuda, work: Work, rounds: int) -> float:
    work()
    on.synchronize()
    replay, _ = on.capture(work)
    on.milliseconds(replay, 4)
    return median([on.milliseconds(replay, 4) for _ in range(rounds)])


def _messages(
    on: Cuda, ranks: list[int], group: Any
) -> dict[str, Callable[[], Callable[[], None]]]:
    """Give what begins a message of each transport, and gives what waits for it."""
    torch, dist = on.torch, on.dist
    rank, count = dist.get_rank(group), len(ranks)
    to, source = (ranks[(rank + step) % count] for step in (1, -1))
    own = torch.ones(_MESSAGE // 2, dtype=torch.bfloat16, device=on.device)
    other, every = torch.empty_like(own), own.new_empty(count * len(own))

    def exchange() -> Callable[[], None]:
        requests = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, own, to, group=group),
                dist.P2POp(dist.irecv, other, source, group=group),
            ]
        )

        def end() -> None:
            for request in requests:
                request.wait()

        return end

    def gather() -> Callable[[], None]:
        request = dist.all_gather_into_tensor(every, own, group=group, async_op=True)

        def end() -> None:
            request.wait()

        return end

    return {"p2p": exchange, "collective": gather}
