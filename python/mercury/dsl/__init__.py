"""The language in which programs are written: meshes, axes, buffers, masks, kernels."""

from .builder import Axis, Buffer, Dim, ProgramBuilder, Tile
from .mask import Mask, causal, full, window
from .mesh import Mesh
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
