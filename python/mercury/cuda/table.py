"""The table of kernels of a context: those of libraries, and the user's own."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from ..runtime.kernel_abi import Arguments, Entry, make_entry
from ..runtime.kernels import check_kernels
from .kernels import KERNELS
from .launch import DeviceKernel, launch_of
from .tensors import loaded_torch

__all__ = ["DeviceTable"]


class DeviceTable:
    """Functions of Python as the runtime's table of kernels.

    Parameters
    ----------
    kernels
        By name; they come before those of libraries.
    device
        The GPU they run on.
    stream
        Gives the stream that the work of the kernel that is called goes into.

    Attributes
    ----------
    cause
        The first exception that one of them raised.
    """

    def __init__(
        self,
        kernels: Mapping[str, DeviceKernel],
        device: int,
        stream: Callable[[], int],
    ) -> None:
        check_kernels(kernels)
        self.cause: BaseException | None = None
        self._device, self._stream = device, stream
        self._streams: dict[int, Any] = {}
        table = {**KERNELS, **kernels}
        entries = [make_entry(name, self._wrap(table[name]), self._note) for name in table]
        self._entries = (Entry * len(entries))(*entries)
        self.address = ctypes.addressof(self._entries)

    def __len__(self) -> int:
        """Give the number of kernels."""
        return len(self._entries)

    def _wrap(self, kernel: DeviceKernel) -> Callable[[Arguments], None]:
        def run(arguments: Arguments) -> None:
            stream = self._stream()
            with self._current(stream):
                kernel(launch_of(arguments, stream))

        return run

    def _note(self, error: BaseException) -> None:
        self.cause = self.cause or error

    def _current(self, stream: int) -> contextlib.AbstractContextManager[Any]:
        """Make a stream PyTorch's current one, where there is PyTorch and it has a GPU."""
        torch = loaded_torch()
        if torch is None:
            return contextlib.nullcontext()
        if stream not in self._streams:
            self._streams[stream] = torch.cuda.ExternalStream(
                stream, device=torch.device("cuda", self._device)
            )
        found: contextlib.AbstractContextManager[Any] = torch.cuda.stream(self._streams[stream])
        return found
