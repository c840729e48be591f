"""The programs that ship with Mercury, written in its own language."""

from .attention import attention, decode_attention
from .matmul import matmul

__all__ = ["attention", "decode_attention", "matmul"]
