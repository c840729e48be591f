"""A plan with its tensors: run it, or capture it once and replay it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import RunError
from . import native
from .tensors import Shard, current_stream

if TYPE_CHECKING:
    from .plan import CudaPlan
    from .session import Session

__all__ = ["Call", "Graph"]


class Call:
    """A plan bound to this rank's tensors; calling it puts a run into the current stream.

    Made by `CudaPlan.bind`. A call returns at once: what comes later in the stream sees
    the results, and `Session.synchronize` waits for them and tells what failed. Every rank
    makes the same calls in the same order.

    Attributes
    ----------
    plan, session
        What runs, and where.
    tensors
        Each by its buffer's name.
    """

    def __init__(self, plan: CudaPlan, session: Session, shards: Mapping[str, Shard]) -> None:
        self.plan, self.session = plan, session
        self.tensors = {name: shard.tensor for name, shard in shards.items()}
        self._context = session.context(plan)
        ordered = [shards[buffer.name] for buffer in plan.program.buffers]
        self._buffers = native.pointers([shard.address or None for shard in ordered])
        self._has_run = False

    def __call__(self) -> None:
        """Put a run into the current stream.

        Raises
        ------
        RunError
            When it cannot be, or a run failed before.
        """
        self.session.check()
        with self.session.guarded():
            self._context.run(
                self.plan.entry,
                self._buffers,
                current_stream(self.session.device),
                calls_back=self.plan.calls_back,
            )
        self._has_run = True

    def capture(self) -> Graph:
        """Capture the run into a CUDA graph, which costs the host one launch to replay.

        A call that never ran is run first, so that libraries have what they allocate. Every
        rank captures the same calls in the same order.

        Raises
        ------
        RunError
            When a kernel cannot be captured.
        """
        self.session.check()
        if not self._has_run:
            self()
            self.session.synchronize()
        with self.session.guarded():
            made = self._context.capture(
                self.plan.entry, self._buffers, calls_back=self.plan.calls_back
            )
        return Graph(self, made)


class Graph:
    """A captured run; calling it puts a replay into the current stream.

    Made by `Call.capture`. It reads and writes the tensors of its call, whatever they hold
    when it is replayed.
    """

    def __init__(self, call: Call, handle: int) -> None:
        self.call = call
        self._handle: int | None = handle

    def __call__(self) -> None:
        """Put a replay into the current stream.

        Raises
        ------
        RunError
            When it cannot be, or a run failed before.
        """
        session = self.call.session
        session.check()
        if self._handle is None:
            raise RunError("the graph is closed; capture the call again")
        with session.guarded():
            self.call._context.replay(self._handle, current_stream(session.device))

    def close(self) -> None:
        """Wait for the replays and free the graph; closing the session does so too."""
        if self._handle is not None:
            self.call._context.free(self._handle)
            self._handle = None
