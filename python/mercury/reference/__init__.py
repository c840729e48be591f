"""What programs mean, in float64 on one device, independent of the compiler."""

from .attention import attention
from .error import relative_error
from .matmul import matmul
from .program import evaluate

__all__ = ["attention", "evaluate", "matmul", "relative_error"]
