"""The `transform.commir.*` ops, as generated from TableGen."""

from ._commir_transform_ops_gen import *
