"""Operators on whole tensors: what runs is a plan, on the embedded ranks."""

from .attention import attention
from .errors import OpError
from .plans import Plans

__all__ = ["OpError", "Plans", "attention"]
