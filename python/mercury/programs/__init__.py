"""The programs that ship with Mercury, written in its own language."""

from .attention import attention, attention_backward, decode_attention
from .matmul import ag_gemm, gemm_rs, matmul

__all__ = [
    "ag_gemm",
    "attention",
    "attention_backward",
    "decode_attention",
    "gemm_rs",
    "matmul",
]
