"""The language in which programs are written: meshes, axes, buffers, masks, kernels."""

from .builder import ProgramBuilder
from .mask import Mask, causal, full, window
from .mesh import Mesh
from .nodes import Axis, Buffer, Dim, Tile
from .program import Program, ProgramFactory, program

__all__ = [
    "Axis",
    "Buffer",
    "Dim",
    "Mask",
    "Mesh",
    "Program",
    "ProgramBuilder",
    "ProgramFactory",
    "Tile",
    "causal",
    "full",
    "program",
    "window",
]
