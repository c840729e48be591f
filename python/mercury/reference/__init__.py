"""What the shipped programs mean, in float64 on one device, independent of the compiler."""

from .attention import attention
from .error import relative_error
from .matmul import matmul

__all__ = ["attention", "matmul", "relative_error"]
