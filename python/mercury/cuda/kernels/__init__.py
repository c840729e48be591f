"""Kernels of libraries on GPUs, by the name that a plan launches: ``"cudnn.attention_fwd"``.

One file a library. Each is imported when one of its kernels is launched.
"""

from .registry import KERNELS, default_library

__all__ = ["KERNELS", "default_library"]
