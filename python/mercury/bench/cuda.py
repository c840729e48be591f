"""The processes of a launcher, with one GPU each."""

from __future__ import annotations

import gc
import importlib
import math
import os
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any

from .errors import AbsentError
from .processes import Work, exchange_messages

__all__ = ["Cuda"]

_HOW = "torchrun --nproc-per-node GPUS -m mercury COMMAND"


class Cuda:
    """The process and its GPU, among those that ``torchrun`` started; alone without it.

    Collectives of tensors on the GPU go through NCCL, words between hosts through gloo, so
    that a measurement does not disturb what it measures.

    Raises
    ------
    AbsentError
        When there is no PyTorch, or no GPU for this rank.
    """

    def __init__(self, timeout_s: float = 120.0) -> None:
        try:
            self.torch: Any = importlib.import_module("torch")
        except ImportError as error:
            raise AbsentError(
                f"measuring needs PyTorch with CUDA ({error}); install torch, and start it as "
                f"{_HOW}"
            ) from None
        local = int(os.environ.get("LOCAL_RANK", "0"))
        there = self.torch.cuda.device_count() if self.torch.cuda.is_available() else 0
        if there <= local:
            raise AbsentError(
                f"measuring needs a GPU for each rank, this host has {there} and local rank "
                f"{local} wants one more; start it as {_HOW}"
            )
        self.torch.cuda.set_device(local)
        self.device, self.name = f"cuda:{local}", self.torch.cuda.get_device_name(local)
        for key, value in {
            "RANK": "0",
            "WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29531",
        }.items():
            os.environ.setdefault(key, value)
        self.dist: Any = importlib.import_module("torch.distributed")
        self.dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(seconds=timeout_s))
        self.rank, self.size = self.dist.get_rank(), self.dist.get_world_size()
        self._graphs: list[Any] = []
        self._together = self.torch.zeros(1, device=self.device)

    def __enter__(self) -> Cuda:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            return  # peers may be anywhere: what waits for them would hang
        self.forget()
        self.dist.destroy_process_group()

    def forget(self) -> None:
        """Destroy the graphs, and give memory back."""
        self.torch.cuda.synchronize()
        for graph in self._graphs:
            graph.reset()
        self._graphs.clear()
        self._give_back()

    def maximum(self, value: float) -> float:
        """See `Processes.maximum`."""
        worst = self.torch.tensor(math.inf if math.isnan(value) else value)
        self.dist.all_reduce(worst, op=self.dist.ReduceOp.MAX)
        return float(worst)

    def agree(self, message: str | None) -> str | None:
        """See `Processes.agree`."""
        messages: list[str | None] = [None] * self.size
        self.dist.all_gather_object(messages, message)
        return exchange_messages(messages)

    def seconds(self) -> float:
        """See `Processes.seconds`."""
        return self.maximum(time.perf_counter() if self.rank == 0 else -math.inf)

    def milliseconds(self, work: Work, times: int) -> float:
        """See `Processes.milliseconds`."""
        cuda = self.torch.cuda
        begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
        cuda.synchronize()
        self.maximum(0.0)
        if self.size > 1:
            self.dist.all_reduce(self._together)  # no GPU leaves it before the last has come
        begin.record()
        for _ in range(times):
            work()
        end.record()
        cuda.synchronize()
        return self.maximum(begin.elapsed_time(end) / times)

    def capture(self, work: Callable[[], Any]) -> tuple[Work, Any]:
        """See `Processes.capture`."""
        graph = self.torch.cuda.CUDAGraph()
        # NCCL's watchdog asks for its events meanwhile, in a thread of its own.
        with self.torch.cuda.graph(graph, capture_error_mode="thread_local"):
            made = work()
        self._graphs.append(graph)
        return graph.replay, made

    def free_memory(self) -> int:
        """See `Processes.free_memory`."""
        self._give_back()
        free, _ = self.torch.cuda.mem_get_info()
        return -int(self.maximum(-free))

    def _give_back(self) -> None:
        gc.collect()
        self.torch.cuda.empty_cache()

    def synchronize(self) -> None:
        """See `Processes.synchronize`."""
        self.torch.cuda.synchronize()

    def versions(self) -> dict[str, str]:
        """Give the versions that a measurement depends on."""
        torch = self.torch
        nccl = torch.cuda.nccl.version()
        return {
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
            "nccl": ".".join(map(str, nccl)) if isinstance(nccl, tuple) else str(nccl),
            "driver": _driver(),
        }


def _driver() -> str:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            line = file.readline()
    except OSError:
        return "unknown"
    return next((word for word in line.split() if word[:1].isdigit()), "unknown")
