"""A plan for GPUs: one compiled host program, which every rank runs on its own shards."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from typing import Any

from ..dsl.mesh import Mesh
from ..dsl.nodes import Buffer
from ..dsl.program import Program
from ..errors import RunError
from ..implementations import implement
from ..libraries import ABI_VERSION
from ..runtime.compiled import Compiled, compile_for
from ..runtime.events import Event
from ..runtime.layout import BufferLayout
from ..runtime.plan import Plan
from .call import Call
from .context import uses_expandable_segments
from .kernels import default_library
from .session import Session
from .tensors import Shard, check_apart, empty, shard_of, torch_with_gpus

__all__ = ["CudaPlan", "compile_plan"]

_TARGET = "cuda"


class CudaPlan:
    """Compiled code for every rank of a mesh of GPUs.

    Made by ``Schedule.compile(target="cuda")``, also on a machine without a GPU.

    Attributes
    ----------
    program, mesh
        What runs, and where.
    local_bytes, symmetric_bytes, arena_bytes
        Memory of each GPU beside its buffers: of its own, what peers map, and both. Libraries
        take their own.
    spmd
        The text of what every rank does.
    remarks
        What the compiler decided that the schedule did not ask for, a line each.
    """

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled  # the machine code lives as long
        self._told = Plan.of(compiled)
        self.program: Program = compiled.program
        self.mesh: Mesh = compiled.mesh
        self.local_bytes: int = compiled.local_bytes
        self.symmetric_bytes: int = compiled.symmetric_bytes
        self.arena_bytes: int = self.local_bytes + self.symmetric_bytes
        self.spmd: str = compiled.spmd
        self.remarks: tuple[str, ...] = compiled.remarks

    def __repr__(self) -> str:
        return (
            f"<CUDA plan of {self.program.name} on {self.mesh}, arena {self.arena_bytes} bytes>"
        )

    def layout(self, buffer: str) -> BufferLayout:
        """Say who owns which part of a buffer outside the program."""
        return self._told.layout(buffer)

    def events(self, rank: int | None = None) -> list[Event]:
        """Say what a rank does, in order, or all ranks; see `mercury.Plan.events`."""
        return self._told.events(rank)

    @property
    def entry(self) -> int:
        """The address of the host program."""
        return self._compiled.entry

    @cached_property
    def digest(self) -> str:
        """What two ranks compare before they run it together."""
        told = f"{_TARGET} {ABI_VERSION}\n{self.mesh}\n{self.spmd}"
        return hashlib.sha256(told.encode()).hexdigest()

    @cached_property
    def groups(self) -> dict[tuple[str, ...], bool]:
        """The levels of each group that it names, and whether its ranks send messages."""
        found: dict[tuple[str, ...], bool] = {}
        for op, levels in re.findall(
            r'\bcommir\.([\w.]+) .* on ("\w+"|\["[^\]]*\])', self.spmd
        ):
            group = tuple(re.findall(r"\w+", levels))
            found[group] = found.get(group, False) or op != "lease.open"
        return dict(sorted(found.items()))

    @cached_property
    def puts(self) -> tuple[str, ...]:
        """The levels of the group whose ranks put into each other's memory; empty if none."""
        found = re.search(
            r'\bcommir\.exchange\.start .* on ("\w+"|\[[^\]]*\]) .*commir\.transport = "rma"',
            self.spmd,
        )
        return tuple(re.findall(r"\w+", found[1])) if found else ()

    @property
    def sends(self) -> bool:
        """Whether it sends messages; reads of a peer's memory need no communicator."""
        return any(self.groups.values())

    @cached_property
    def calls_back(self) -> bool:
        """Whether kernels by name, of a library or the user's, put work into its streams."""
        return re.search(r"\bcommir\.launch .* impl\(", self.spmd) is not None

    @cached_property
    def reads(self) -> bool:
        """Whether it reads the memory of peers."""
        return "commir.lease.open" in self.spmd

    def shard(self, session: Session, **whole: Any) -> dict[str, Any]:
        """Cut whole tensors into this rank's shards, for tests and examples.

        Parameters
        ----------
        session
            Whose rank.
        **whole
            Tensors of whole buffers, on any device.

        Returns
        -------
        dict
            Contiguous tensors on this rank's GPU.
        """
        torch = torch_with_gpus()
        place = torch.device("cuda", session.device)
        found = {}
        for name, tensor in whole.items():
            layout = self.layout(name)
            if tuple(tensor.shape) != layout.buffer.shape:
                raise RunError(
                    f"buffer {layout.buffer} has shape {layout.buffer.shape}, got "
                    f"{tuple(tensor.shape)}"
                )
            cut = tensor
            for dim, held in enumerate(layout.indices(session.rank)):
                if len(held) != cut.shape[dim]:
                    cut = cut.index_select(dim, torch.from_numpy(held).to(cut.device))
            found[name] = cut.to(place).contiguous()
        return found

    def bind(self, session: Session, **tensors: Any) -> Call:
        """Bind the plan to this rank's shards.

        The first time a session meets a plan, all its ranks bind it together, and compare
        it.

        Parameters
        ----------
        session
            Where it runs.
        **tensors
            The shard of each input and output, a contiguous CUDA tensor of PyTorch or an
            array with ``__cuda_array_interface__``. They are used where they lie, and
            read there by peers: also after an error keep them until the session is closed.

        Returns
        -------
        Call
            What runs it.

        Raises
        ------
        RunError
            When a shard does not fit, or the ranks have different plans.
        """
        session.check()
        names = [buffer.name for buffer in self.program.buffers]
        if set(tensors) != set(names):
            raise RunError(
                f"expected the tensors {', '.join(names)}, got {', '.join(tensors) or 'none'}"
            )
        if self.reads and self.mesh.size > 1 and uses_expandable_segments():
            raise RunError(
                "the plan reads memory of other GPUs, and PyTorch's expandable segments cannot "
                "be read by them; unset expandable_segments in PYTORCH_CUDA_ALLOC_CONF, or "
                "choose a schedule that sends (reads='rotate')"
            )
        shards = {
            buffer.name: self._shard(session, buffer, tensors[buffer.name])
            for buffer in self.program.buffers
        }
        check_apart(shards, {buffer.name for buffer in self.program.outputs})
        return Call(self, session, shards)

    def run(self, session: Session, **inputs: Any) -> dict[str, Any]:
        """Run the plan once, and wait for it.

        Parameters
        ----------
        session
            Where it runs.
        **inputs
            This rank's shard of each input, a CUDA tensor of PyTorch.

        Returns
        -------
        dict
            This rank's shard of each output.

        Raises
        ------
        RunError
            When the data does not fit, or a rank fails.
        """
        wanted = [buffer.name for buffer in self.program.inputs]
        if set(inputs) != set(wanted):
            raise RunError(
                f"expected the inputs {', '.join(wanted)}, got {', '.join(inputs) or 'none'}"
            )
        outputs = {
            buffer.name: empty(
                buffer, self.layout(buffer.name).shape(session.rank), session.device
            )
            for buffer in self.program.outputs
        }
        call = self.bind(session, **inputs, **outputs)
        try:
            call()
            session.synchronize()
        except RunError:
            session.keep(call)  # peers may read its results yet
            raise
        return outputs

    def _shard(self, session: Session, buffer: Buffer, tensor: Any) -> Shard:
        shape = self.layout(buffer.name).shape(session.rank)
        return shard_of(buffer, tensor, shape, session.rank, session.device)


def compile_plan(
    module: Any, program: Program, mesh: Mesh, puts: tuple[str, ...] = ()
) -> CudaPlan:
    """Lower a scheduled module to a plan for GPUs; see `Schedule.compile`."""
    from .._mlir import ir  # noqa: PLC0415 (no work at import)

    with module.context:
        chosen = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
    implement(chosen, default_library)
    return CudaPlan(compile_for(_TARGET, chosen, program, mesh, puts=puts))
