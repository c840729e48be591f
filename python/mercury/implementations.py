"""Which implementation runs a kernel that a schedule says nothing about.

The machine decides: where a library has the kernel, a plan for that machine calls it. That
changes the plan, not only its speed: attention of a library merges into nothing and rounds
what it hands over, so merges become kernels of their own. What is compiled for GPUs and what
is simulated of a machine take the same way through here, and are the same plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = ["LIBRARIES", "ON_GPUS", "implement", "takes"]

# Of each library, the element types that its kernels take; all where there are none.
LIBRARIES: dict[str, frozenset[str]] = {
    "cublas": frozenset(),
    "cudnn": frozenset({"bf16", "f16"}),
}
# The library of each kernel on GPUs, where PyTorch is installed.
ON_GPUS = {"matmul": "cublas", "attention_fwd": "cudnn", "attention_bwd": "cudnn"}
_ELEMENTS = re.compile(r"\b(bf16|f16|f32|f64)>$")


def takes(library: str, dtype: str) -> bool:
    """Whether kernels of a library work on an element type.

    Examples
    --------
    >>> takes("cudnn", "bf16"), takes("cudnn", "f32"), takes("cublas", "f32")
    (True, False, True)
    """
    return not LIBRARIES[library] or dtype in LIBRARIES[library]


def implement(module: Any, library_of: Callable[[str], str]) -> None:
    """Name a library, in place, for each kernel of a scheduled module that has none.

    Parameters
    ----------
    module
        An ``mlir.ir.Module``.
    library_of
        Gives the library for a kernel's name; empty for the kernel that Mercury generates,
        which also runs where the library does not take the first operand's type.
    """
    from ._mlir import ir  # noqa: PLC0415 (no work at import)

    def visit(op: Any) -> Any:
        if op.name == "commir.kernel" and "impl" not in op.attributes:
            library = library_of(ir.StringAttr(op.attributes["kernel"]).value)
            if library and takes(library, _dtype(op.operands[0].type)):
                op.attributes["impl"] = ir.StringAttr.get(library)
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit)


def _dtype(tile: Any) -> str:
    found = _ELEMENTS.search(str(tile))
    return found[1] if found else ""
