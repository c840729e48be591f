"""The programs that ship with Mercury, written in its own language."""

from .attention import attention, attention_backward, decode_attention
from .matmul import matmul

__all__ = ["attention", "attention_backward", "decode_attention", "matmul"]
