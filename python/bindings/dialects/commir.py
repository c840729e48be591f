"""The ops of the commir dialect, as generated from TableGen."""

from ._commir_ops_gen import *
