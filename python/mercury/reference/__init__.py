"""What programs mean, in float64 on one device, independent of the compiler."""

from .attention import attention, attention_backward, attention_sink_backward
from .condition import condition
from .error import relative_error
from .matmul import matmul
from .program import draw, evaluate, needed_bytes

__all__ = [
    "attention",
    "attention_backward",
    "attention_sink_backward",
    "condition",
    "draw",
    "evaluate",
    "matmul",
    "needed_bytes",
    "relative_error",
]
