"""Bytes of an element."""

__all__ = ["DTYPE_BYTES"]

DTYPE_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8}
