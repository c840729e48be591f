"""From a scheduled module to machine code of one target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..dsl.mesh import Mesh
from ..dsl.nodes import Axis, Kernel
from ..dsl.program import Program
from ..errors import CompileError
from ..libraries import runtime_path
from .events import ARENAS
from .layout import BufferLayout, Cut

__all__ = ["Compiled", "arena_sizes", "compile_for", "to_spmd"]

# Pipelines from what every rank does to the LLVM dialect.
_TARGETS = {"sim": "commir-spmd-to-llvm", "cuda": "commir-spmd-to-cuda{{chip={chip}}}"}


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A program compiled for the ranks of one mesh and one target.

    The machine code lives as long as this object.

    Attributes
    ----------
    program, mesh
        What runs, and where.
    layouts
        Who owns which part of each buffer, by name.
    local_bytes, symmetric_bytes
        Memory of each rank beside its buffers: of its own, and what peers may read.
    spmd, located
        The text of what every rank does; `located` has the user's lines.
    entry
        The address of the host function, a ``mercury_rt_entry`` of
        ``mercury-rt/runtime.h``: ``int32_t (mercury_rt_context *, void *const *buffers)``.
        The buffers are those of the program, in its order, inputs and outputs. For the
        target ``cuda`` they and the arenas are device memory, which it never touches.
    image
        For ``cuda`` the PTX of the kernels that the host function launches by
        ``mercury_rt_device_launch``, ending in a zero byte; empty if it launches none. The
        host function carries its own copy.
    named_kernels
        What it asks for by ``mercury_rt_launch``, as in ``"torch.matmul"``: those who run
        it register them.
    remarks
        What the compiler decided that the schedule did not ask for, a line each.
    jit
        The compiler's handle of the machine code.
    context
        The MLIR context; layouts are attributes of it.
    """

    program: Program
    mesh: Mesh
    layouts: Mapping[str, BufferLayout]
    local_bytes: int
    symmetric_bytes: int
    spmd: str
    located: str
    entry: int
    image: bytes
    named_kernels: tuple[str, ...]
    remarks: tuple[str, ...]
    jit: Any
    context: Any


def compile_for(
    target: str,
    module: Any,
    program: Program,
    mesh: Mesh,
    chip: str = "sm_90a",
    puts: tuple[str, ...] = (),
) -> Compiled:
    """Compile a scheduled module.

    Parameters
    ----------
    target
        ``sim``, where ranks are threads and kernels run on the CPU, or ``cuda``.
    module, program, mesh
        The scheduled module, what it was made of, and the ranks.
    chip
        For ``cuda``, what the PTX is written for. One with a letter, such as ``sm_90a``, runs
        on that generation alone, ``sm_80`` on it and all later ones.
    puts
        The levels of the group whose messages go by puts; see `Schedule.compile`.

    Raises
    ------
    CompileError
        When there is no such target, or the compiler refuses the program.
    """
    from .._mlir import ir  # noqa: PLC0415 (no work at import)
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415

    if target not in _TARGETS:
        raise CompileError(f"there is no target {target!r}; choose 'sim' or 'cuda'")
    if not re.fullmatch(r"sm_\d+[af]?", chip):
        raise CompileError(f"the chip must be named as in 'sm_90a', got {chip!r}")
    context = module.context
    with context:
        lowered = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
    _run(_mercury, lowered, "commir-infer-placement")
    layouts = _layouts(lowered, program, mesh)
    remarks = _run(_mercury, lowered, to_spmd(target, puts))
    spmd = str(lowered.operation.get_asm())
    located = str(lowered.operation.get_asm(enable_debug_info=True))
    local_bytes, symmetric_bytes = arena_sizes(spmd)
    named = re.findall(r'commir\.launch "([^"]*)".*? impl\("([^"]*)"\)', spmd)
    _run(_mercury, lowered, _TARGETS[target].format(chip=chip))
    image = _image(lowered)
    try:
        jit = _mercury.Jit(lowered, 3, [str(runtime_path())])
    except RuntimeError as error:
        raise CompileError(str(error)) from None
    return Compiled(
        program=program,
        mesh=mesh,
        layouts=layouts,
        local_bytes=local_bytes,
        symmetric_bytes=symmetric_bytes,
        spmd=spmd,
        located=located,
        entry=jit.lookup(program.name),
        image=image,
        named_kernels=tuple(sorted({f"{impl}.{kernel}" for kernel, impl in named})),
        remarks=remarks,
        jit=jit,
        context=context,
    )


def to_spmd(target: str, puts: tuple[str, ...]) -> str:
    """Give the pipeline to what every rank does.

    Examples
    --------
    >>> to_spmd("sim", ())
    'commir-to-spmd'
    >>> to_spmd("cuda", ("node",))
    'commir-to-spmd{transports=p2p,collective,symm,rma rma-levels=node}'
    """
    if not puts:
        return "commir-to-spmd"  # the runtime takes what it has
    others = "sim" if target == "sim" else "p2p,collective,symm"
    return f"commir-to-spmd{{transports={others},rma rma-levels={','.join(puts)}}}"


def arena_sizes(spmd: str) -> tuple[int, int]:
    """Give the bytes of the local and the symmetric arena that the text of a plan states.

    Examples
    --------
    >>> arena_sizes("attributes {commir.local_bytes = 128 : i64, commir.mesh = @mesh}")
    (128, 0)
    """
    kinds = (arena.removesuffix(" arena") for arena in ARENAS)
    found = (re.search(rf"commir\.{kind}_bytes = (\d+)", spmd) for kind in kinds)
    local, symmetric = (int(each[1]) if each else 0 for each in found)
    return local, symmetric


def _run(compiler: Any, module: Any, pipeline: str) -> tuple[str, ...]:
    """Run some passes in place; what they remark, each text once."""
    succeeded, diagnostics, remarks = compiler.run_pipeline(
        module, f"builtin.module({pipeline})"
    )
    if not succeeded:
        raise CompileError.from_diagnostics(diagnostics, otherwise=f"{pipeline} failed")
    return tuple(dict.fromkeys(text for (_, text), *_ in remarks))


def _image(module: Any) -> bytes:
    """Find the compiled kernels of a lowered module."""
    from .._mlir import ir  # noqa: PLC0415 (no work at import)

    for op in module.body.operations:
        attributes = op.operation.attributes
        if (
            op.operation.name == "llvm.mlir.global"
            and ir.StringAttr(attributes["sym_name"]).value == "mercury_device_image"
        ):
            return bytes(ir.StringAttr(attributes["value"]).value_bytes)
    return b""


def _layouts(module: Any, program: Program, mesh: Mesh) -> dict[str, BufferLayout]:
    """Read the boundary placements of a placed program."""
    from .._mlir import ir  # noqa: PLC0415 (no work at import)
    from .._mlir._mlir_libs import _mercury  # noqa: PLC0415

    op = next(op for op in module.body.operations if op.operation.name == "commir.program")
    layouts = {axis.name: axis.layout for axis in map(Axis.of, op.axes)}
    ops = [op for nest in program.nests for op in nest.ops]
    masks = tuple(op.mask for op in ops if isinstance(op, Kernel) and op.mask is not None)
    found = {}
    for buffer, binding in zip(program.buffers, op.bindings, strict=True):
        cuts = {}
        for name, factors, layout in _mercury.boundary(binding):
            own = layout or ir.Attribute.parse(
                f"#commir.layout<{layouts[name]}>", module.context
            )
            # A string names a level, an integer is a cut inside a rank.
            cuts[name] = Cut(factors=tuple(factor.value for factor in factors), layout=own)
        found[buffer.name] = BufferLayout(buffer=buffer, mesh=mesh, cuts=cuts, masks=masks)
    return found
