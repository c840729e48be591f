"""The runtime's table of kernels in C, ``mercury_rt_kernel`` of ``mercury-rt/runtime.h``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

__all__ = ["ELEMENT_TYPES", "Arguments", "Entry", "TileRecord", "make_entry"]

ELEMENT_TYPES = {1: "f16", 2: "bf16", 3: "f32", 4: "f64"}
_FAILED = 100  # MERCURY_RT_FIRST_FREE


class TileRecord(ctypes.Structure):
    """``mercury_rt_tile``; strides are in elements."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("element_type", ctypes.c_int32),
        ("rank", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )


class _Parameter(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("integer", ctypes.c_int64),
        ("number", ctypes.c_double),
    )


class Arguments(ctypes.Structure):
    """``mercury_rt_launch_arguments``."""

    _fields_ = (
        ("number_of_inputs", ctypes.c_int64),
        ("inputs", ctypes.POINTER(TileRecord)),
        ("number_of_outputs", ctypes.c_int64),
        ("outputs", ctypes.POINTER(TileRecord)),
        ("number_of_parameters", ctypes.c_int64),
        ("parameters", ctypes.POINTER(_Parameter)),
    )

    def numbers(self) -> dict[str, float]:
        """Give the parameters by name; the scale is the only one that is no whole number."""
        return {
            one.name.decode(): one.number if one.name == b"scale" else one.integer
            for one in self.parameters[: self.number_of_parameters]
        }


_Function = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.POINTER(Arguments),
    ctypes.c_void_p,
    ctypes.c_int64,
)


class Entry(ctypes.Structure):
    """``mercury_rt_kernel``; it keeps its function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", _Function),
        ("user_data", ctypes.c_void_p),
    )


def make_entry(
    name: str,
    run: Callable[[Arguments], None],
    note: Callable[[BaseException], None],
) -> Entry:
    """Make a function of Python an entry of the table.

    Parameters
    ----------
    name
        As a launch has it, ``"mine.matmul"``.
    run
        What the launch does.
    note
        Is told each exception; the runtime gets its text.
    """

    def call(_: int, arguments: ctypes._Pointer[Arguments], message: int, size: int) -> int:
        # An exception that leaves a ctypes callback is lost.
        try:
            run(arguments.contents)
        except BaseException as error:
            note(error)
            text = f"{type(error).__name__}: {error}".encode()[: size - 1]
            ctypes.memmove(message, text + b"\0", len(text) + 1)
            return _FAILED
        return 0

    return Entry(name.encode(), _Function(call), None)
