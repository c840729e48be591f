"""A session: the ranks of a mesh, each a process with a GPU, ready to run plans."""

from __future__ import annotations

import os
import socket
import sys
import uuid
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..dsl.mesh import Mesh
from ..errors import RunError
from .communicators import make_communicator, start_aborts, wait_for_aborts
from .context import Context
from .launch import DeviceKernel
from .native import bus_address, free_bytes
from .store import agree, find_launch, ranks_text

if TYPE_CHECKING:
    from .call import Call
    from .plan import CudaPlan

__all__ = ["Session"]

_sessions = count()  # every rank opens its sessions in the same order


class Session:
    """The GPUs of a mesh, one a process.

    Every rank opens it together, binds the same plans in the same order, and closes it
    together. A mesh of one rank needs no launcher; a larger one is started by torchrun, or
    by whatever sets ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, ``MASTER_ADDR`` and
    ``MASTER_PORT``. No process group of PyTorch is needed, and one that is there is left
    alone.

    Parameters
    ----------
    mesh
        The ranks; of plans for it, levels may be split.
    deadline_ms
        The longest wait for a peer and the longest run. A rank that is silent for longer
        ends the run of all with an error.
    kernels
        Implementations that `patch` names, as ``{"mine.matmul": function}``; a function
        takes a `mercury.cuda.DeviceLaunch`. Those of cuDNN, cuBLAS and PyTorch are there.
    device
        The GPU of this process; its rank on the host when not given.
    communicators
        For levels of ``mesh`` by name, and for groups of several (``"node,gpu"``), an
        ``ncclComm_t`` (or an object with it as ``ptr``, as those of nccl4py) over this
        rank's group, which the caller keeps. Others are made here. After a failure abort
        it, on a thread of its own if graphs were captured, and then close the session.

    Raises
    ------
    RunError
        When the processes do not fit the mesh, or do not come, or a communicator is for
        a level that the mesh does not have.

    Examples
    --------
    >>> import mercury as mc
    >>> def main():
    ...     plan = mc.strategies.get("ring").schedule(mc.Mesh(gpu=2)).compile(target="cuda")
    ...     with mc.cuda.Session(plan.mesh) as session:
    ...         print(plan.run(session, Q=q, K=k, V=v)["O"].shape)
    """

    def __init__(
        self,
        mesh: Mesh,
        *,
        deadline_ms: int = 60_000,
        kernels: Mapping[str, DeviceKernel] | None = None,
        device: int | None = None,
        communicators: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(deadline_ms, int) or deadline_ms < 1:
            raise RunError(f"deadline_ms must be a whole number above 0, got {deadline_ms!r}")
        self.mesh = mesh
        self.deadline_ms = deadline_ms
        self._launch = find_launch(mesh.size, deadline_ms)
        self.rank = self._launch.rank
        self.device = self._launch.local_rank if device is None else device
        self._kernels = dict(kernels or {})
        self._given = {
            _group(mesh, named): given for named, given in (communicators or {}).items()
        }
        self._own: list[Any] = []  # communicators made here
        self._kept: list[Call] = []
        self._name = f"session {next(_sessions)}"
        self._steps = count()
        self._contexts: list[Context] = []
        self._of_plan: dict[str, Context] = {}
        self._problem = ""
        self._guard = _Guard(self)
        self._closed = False
        # Ranks of one host see each other's memory.
        self._hosts = self._agree("host", _host())

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except RunError as problem:
            if error is None:
                raise
            error.add_note(problem.message)

    def __repr__(self) -> str:
        return f"<session of {self.mesh}, rank {self.rank} on GPU {self.device}>"

    def synchronize(self) -> None:
        """Wait until every run is over.

        Raises
        ------
        RunError
            When one failed, or none ends within the deadline.
        """
        self.check()
        for context in self._contexts:
            with self.guarded():
                context.synchronize()

    def close(self) -> None:
        """Wait for the runs and free what the session holds; every rank does so together.

        Raises
        ------
        RunError
            When a run failed that nobody waited for, or NCCL does not end.
        """
        if self._closed:
            return
        self._closed = True
        told = self._problem
        failures = [context.failure() for context in self._contexts]
        problem = told or next(filter(None, failures), "")
        # After a failure their messages must end before a context can, else the reverse.
        aborts = start_aborts(self._own) if problem else []
        for context in self._contexts:
            context.close()
        self._contexts.clear()
        self._of_plan.clear()
        if not problem:
            for communicator in self._own:
                communicator.destroy()
        self._own.clear()
        self._kept.clear()
        late = wait_for_aborts(aborts, self.deadline_ms)
        if late or (problem and not told):
            raise RunError("; ".join(filter(None, (problem, late))))

    # -- what plans ask for -----------------------------------------------------

    def check(self) -> None:
        """Raise when the session runs nothing any more."""
        if self._closed:
            raise RunError("the session is closed; open another one")
        if self._problem:
            raise RunError(
                f"the session failed before: {self._problem}; close it and open another one"
            )

    def guarded(self) -> _Guard:
        """Take no more work after an error in what is done within."""
        return self._guard

    def fail(self, error: RunError) -> None:
        """Take no more work, because of an error."""
        self._problem = self._problem or error.message

    def context(self, plan: CudaPlan) -> Context:
        """Give a context that a plan can run in; the first time all ranks ask together.

        Raises
        ------
        RunError
            When ranks ask for different plans, or it cannot be opened.
        """
        self.check()
        found = self._of_plan.get(plan.digest)
        if found is None:
            self._compare(plan)
            found = self._suited(plan) or self._open(plan)
            self._of_plan[plan.digest] = found
        return found

    def keep(self, call: Call) -> None:
        """Keep the tensors of a call that failed until the session is closed."""
        self._kept.append(call)

    def free_bytes(self) -> int:
        """Give the memory of this rank's GPU that a plan and its shards may still take.

        It is what the driver calls free, and what PyTorch keeps without using it.

        Raises
        ------
        RunError
            When the driver does not say.
        """
        self.check()
        return free_bytes(self.device) + _kept_by_torch(self.device)

    def gather(self, what: str, text: str) -> list[str]:
        """Tell every rank a text, and give what each of them told; all do so together.

        Parameters
        ----------
        what
            What it is about, for the message when a rank is silent.
        text
            What this rank tells.

        Returns
        -------
        list of str
            By rank.
        """
        return self._agree(what, text)

    def _agree(self, what: str, text: str) -> list[str]:
        name = f"{self._name}/{next(self._steps)} {what}"
        return agree(self._launch, name, text, self.deadline_ms)

    def _compare(self, plan: CudaPlan) -> None:
        if plan.mesh.size != self.mesh.size:
            raise RunError(
                f"the plan is for {plan.mesh} and the session for {self.mesh}; compile it for "
                f"{self.mesh.size} ranks or open a session for its mesh"
            )
        own = f"{plan.program.name} {plan.digest[:12]}"
        told = self._agree("plan", f"{plan.program.name} {plan.digest}")
        names = [
            f"{name} {digest[:12]}" for name, _, digest in (t.partition(" ") for t in told)
        ]
        if len(set(told)) > 1:
            ranks = {each: [r for r, n in enumerate(names) if n == each] for each in names}
            text = "; ".join(f"{ranks_text(who)}: {each}" for each, who in ranks.items())
            raise RunError(
                f"rank {self.rank} would run plan {own}, and the ranks have different ones: "
                f"{text}; compile the same schedule with the same version on every rank"
            )

    def _suited(self, plan: CudaPlan) -> Context | None:
        fits = [
            context
            for context in self._contexts
            if context.mesh == plan.mesh
            and context.puts == plan.puts
            and context.local_bytes >= plan.local_bytes
            and context.symmetric_bytes >= plan.symmetric_bytes
            and all(
                group in context.groups and (context.groups[group] or not sends)
                for group, sends in plan.groups.items()
            )
        ]
        return min(fits, key=lambda each: each.local_bytes + each.symmetric_bytes, default=None)

    def _check_gpus(self, plan: CudaPlan) -> None:
        """Refuse a plan whose ranks send to each other and share a GPU."""
        gpus = list(zip(self._hosts, self._agree("GPU", bus_address(self.device)), strict=True))
        for group, sends in plan.groups.items():
            together: dict[tuple[Any, ...], list[int]] = {}
            for rank, gpu in enumerate(gpus):
                at = plan.mesh.coordinates(rank)
                rest = tuple(where for level, where in at.items() if level not in group)
                together.setdefault((rest, gpu), []).append(rank)
            for (_, (_, gpu)), ranks in together.items():
                if sends and len(ranks) > 1:
                    raise RunError(
                        f"{ranks_text(ranks)} share GPU {gpu} and send to each other in plan "
                        f"{plan.program.name} {plan.digest[:12]}, which NCCL does not do; give "
                        "each rank a GPU of its own (torchrun --nproc-per-node at most as many "
                        "as there are), or choose a schedule that only reads from peers "
                        "(reads='pull', results='fetch')"
                    )

    def _open(self, plan: CudaPlan) -> Context:
        if plan.sends:
            self._check_gpus(plan)
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"
        place = self._agree("place", f"{folder}/mercury-{uuid.uuid4().hex}")[0]
        local = [self._is_local(plan.mesh, level) for level in plan.mesh.names]
        given = {
            group: found
            for group, sends in plan.groups.items()
            if sends and (found := self._communicator(plan.mesh, group))
        }
        context = Context(
            mesh=plan.mesh,
            rank=self.rank,
            device=self.device,
            rendezvous=place,
            local_bytes=plan.local_bytes,
            symmetric_bytes=plan.symmetric_bytes,
            deadline_ms=self.deadline_ms,
            groups=plan.groups,
            puts=plan.puts,
            local_levels=local,
            communicators=given,
            kernels=self._kernels,
        )
        self._contexts.append(context)
        return context

    def _communicator(self, mesh: Mesh, group: tuple[str, ...]) -> int:
        """Give the communicator of a group, or 0 where the runtime makes it."""
        given = self._given.get(group)
        if given is None and not all(self._is_local(mesh, level) for level in group):
            given = make_communicator(mesh, self.rank, group, self._agree)
            self._own.append(given)
        return int(getattr(given, "ptr", given or 0))

    def _is_local(self, mesh: Mesh, level: str) -> bool:
        """Say whether each group of a level is of one host."""
        groups: dict[tuple[tuple[str, int], ...], set[str]] = {}
        for rank, host in enumerate(self._hosts):
            at = mesh.coordinates(rank)
            rest = tuple((name, where) for name, where in at.items() if name != level)
            groups.setdefault(rest, set()).add(host)
        return all(len(hosts) == 1 for hosts in groups.values())


class _Guard:
    """One for all calls, of which each microsecond counts."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, RunError):
            self._session.fail(error)


def _group(mesh: Mesh, named: str) -> tuple[str, ...]:
    """Find the levels of a group that is named as ``"node,gpu"``, in the mesh's order."""
    levels = [level.strip() for level in named.split(",")]
    group = tuple(level for level in mesh.names if level in levels)
    if len(group) != len(levels):
        raise RunError(
            f"a communicator is given for '{named}', and the levels of the mesh are "
            f"{', '.join(map(repr, mesh.names))}; name one of them, or several as "
            f"'{','.join(mesh.names)}', and open the session for the mesh of the plan if that "
            "splits a level"
        )
    return group


def _kept_by_torch(device: int) -> int:
    """Give what PyTorch has of a GPU for tensors to come; it is not asked to start."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return int(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def _host() -> str:
    """Name this host; containers of one machine have names of their own."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text().strip() if boot.is_file() else ""
    return f"{socket.gethostname()} {started}"
