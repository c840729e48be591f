"""A cost model that cannot hang a search."""

from __future__ import annotations

import threading
import time

from ..topology import Topology
from .costs import CostModel, PlanCosts
from .lower import Lowered
from .quantity import TuneError, format_seconds

__all__ = ["Guarded"]

_LEAST_S = 1.0  # what a candidate is given even when the search is late


class Guarded:
    """Gives up on a candidate after some time; the search goes on without it.

    A model that hangs is left behind in its thread, as Python cannot end one.

    Parameters
    ----------
    cost
        Any model, as one that measures.
    seconds
        That one candidate may take.
    deadline
        Of the search, on `time.monotonic`'s clock; None for none.
    """

    def __init__(self, cost: CostModel, seconds: float, deadline: float | None) -> None:
        self.name, self.measured = cost.name, cost.measured
        self._cost, self._seconds, self._deadline = cost, seconds, deadline

    def __call__(self, lowered: Lowered, topology: Topology) -> PlanCosts:
        """Give the cost of a plan.

        Raises
        ------
        TuneError
            When the model does not answer in time.
        """
        found: list[PlanCosts] = []
        raised: list[BaseException] = []

        def ask() -> None:
            try:
                found.append(self._cost(lowered, topology))
            except BaseException as error:  # raised again where it was asked
                raised.append(error)

        thread = threading.Thread(target=ask, name="mercury-cost", daemon=True)
        thread.start()
        patience = self._patience()
        thread.join(patience)
        if raised:
            raise raised[0]
        if not found:
            raise TuneError(f"{self.name} gave no answer in {format_seconds(patience)}")
        return found[0]

    def _patience(self) -> float:
        if self._deadline is None:
            return self._seconds
        return min(self._seconds, max(self._deadline - time.monotonic(), _LEAST_S))
