"""Our plans for a workload: schedules that are worth measuring, compiled for GPUs."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .candidate import Candidate, Prepared
from .errors import AbsentError
from .processes import Processes
from .workload import Attention, Workload

if TYPE_CHECKING:
    from ..dsl import Mesh, Program
    from ..schedule import Schedule

__all__ = ["OwnPlan", "candidate", "plans_of"]

_PULL = "parallelize(sq, {all}); shift(sk, by=sq, reads=pull{more})"
_BY_HEADS = "parallelize(sq, {all}); shift(h, by=sq, reads=pull)"
_BY_FEWER = "parallelize(sq, {all}); tile(h, {parts}); shift(h_outer, by=sq, reads=pull)"
_RING = "parallelize(sq, {all}); shift(sk, by=sq{more})"
_REDUCTION = "parallelize(sk, {all}); {shards}; shift(sq, by=sk, offset=1{more})"
_AG_PULL = "parallelize(j, {all}); shift(i, by=j, reads=pull{more})"
_AG_RING = "parallelize(j, {all}); shift(i, by=j{more})"
_RS = "parallelize(k, {all}); shard(C, i, {all}); shift(i, by=k{more})"
_TRAVEL, _DELIVER = ", offset=1", ", offset=1, results=deliver"
_FETCH_WIDE = ", offset=1, results=fetch"
_FETCH = f"{_FETCH_WIDE}, link=bf16"

_BY_HAND: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "attention": {
        "pull, merged once": (_PULL + "; {defer}", ""),
        "pull, overlapped, merged once": (_PULL + "; {defer}; overlap(sk)", ""),
        "pull": (_PULL, ""),
        "pull, 2 chunks": (_PULL, ", chunks=2"),
        # Whole rows of a few heads at a time: nothing to merge, and the least memory.
        "pull by heads": (_BY_HEADS, ""),
        "pull by fewer heads": (_BY_FEWER, ""),
    },
    # The gradients of a rank's own keys come last: those of the other's travel meanwhile.
    "attention-bwd": {
        "pull, own last, merged once": (_PULL + "; {defer}", _DELIVER),
        "pull, own first, merged once": (_PULL + "; {defer}", ", results=deliver"),
        "pull, fetch, merged once": (_PULL + "; {defer}", _FETCH_WIDE),
        "pull, dQ merged once": (_PULL + "; {defer_dq}", ""),
    },
    "ag-gemm": {
        "pull": (_AG_PULL, ""),
        # The second product begins in the last wave of the first.
        "pull, overlapped": (_AG_PULL + "; overlap(i)", ""),
        "pull, 4 chunks": (_AG_PULL, ", chunks=4"),
    },
    "gemm-rs": {
        "fetch, 2 chunks, bf16": (_RS, f"{_FETCH}, chunks=2"),
        "fetch, 4 chunks, bf16": (_RS, f"{_FETCH}, chunks=4"),
        "deliver, 2 chunks, bf16": (_RS, f"{_DELIVER}, chunks=2, link=bf16"),
    },
}
# Of a batch: the next slice is read, and gradients leave, under the work on one.
_IN_SLICES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "attention": {
        f"pull in {n} slices, merged once": (f"tile(b, {n}); {_PULL}; {{defer}}", "")
        for n in (4, 8)
    }
    # The first slice has little to come under.
    | {
        "pull in growing slices, merged once": (
            f"tile(b, {{growing}}); {_PULL}; {{defer}}",
            "",
        )
    },
    "attention-bwd": {
        f"pull, fetch in {n} slices, merged once": (
            f"tile(b, {n}); {_PULL}; {{defer}}",
            _FETCH_WIDE,
        )
        for n in (4, 8)
    }
    | {
        "pull, fetch in growing slices, merged once": (
            f"tile(b, {{growing}}); {_PULL}; {{defer}}",
            _FETCH_WIDE,
        )
    },
}
# Each rank has all rows of some of every slice, so nothing is merged; what the next slice
# needs comes, and what the last one made leaves, under the work on one.
_EXCHANGED: Mapping[str, tuple[str, str]] = {
    f"exchanged in {n} slices": (
        f"tile(b, {n}); parallelize(b_inner, {{all}}); overlap(b_outer)",
        "",
    )
    for n in (4, 8)
} | {
    "exchanged in 5 uneven slices": (
        "tile(b, {batches}); parallelize(b_inner, {all}); overlap(b_outer)",
        "",
    )
}
_HEADS_EXCHANGED: Mapping[str, tuple[str, str]] = {
    f"heads exchanged in {n} slices": (
        f"tile(h, {n}); parallelize(h_inner, {{all}}); overlap(h_outer)",
        "",
    )
    for n in (4, 8)
} | {
    "heads exchanged in 5 uneven slices": (
        "tile(h, {head_slices}); parallelize(h_inner, {all}); overlap(h_outer)",
        "",
    )
}
# All keys of a slice for a rank's own rows.
_GATHERED = "parallelize(sq, {all}); replicate(K, {all}); replicate(V, {all}); overlap(b_outer)"
_KEYS_GATHERED: Mapping[str, tuple[str, str]] = {
    "keys gathered in growing slices": (f"tile(b, {{growing}}); {_GATHERED}", ""),
    "keys gathered in 8 slices": (f"tile(b, 8); {_GATHERED}", ""),
}
# Without a batch, of heads: few first.
_IN_SLICES_OF_HEADS = {
    "pull, fetch, few heads first, merged once": (
        f"tile(h, {{few_first}}); {_PULL}; {{defer}}",
        _FETCH_WIDE,
    )
}
_WIDE: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "attention-bwd": {
        "pull, 2 chunks": (_PULL, ", chunks=2"),
        "pull, link in bf16": (_PULL + "; {defer_dq}", ", link=bf16"),
        "ring, own last": (_RING, ", offset=1"),
        "shifted-reduction, pull": (_REDUCTION, ", reads=pull"),
        # dK and dV move with the keys, each in a way of its own.
        "pull, deliver": (_PULL, ", results=deliver"),
        "pull, own last, deliver": (_PULL, _DELIVER),
        "pull, fetch": (_PULL, _FETCH_WIDE),
        "ring, deliver": (_RING, ", results=deliver"),
        "pull, own last, bf16": (_PULL, ", offset=1, link=bf16"),
        "pull, own last, deliver, bf16": (_PULL, f"{_DELIVER}, link=bf16"),
    },
    "attention": {
        "pull, 4 chunks": (_PULL, ", chunks=4"),
        "pull, own last": (_PULL, ", offset=1"),
        "pull, 8 chunks": (_PULL, ", chunks=8"),
        "pull, own last, 2 chunks": (_PULL, ", offset=1, chunks=2"),
        "ring, own last": (_RING, ", offset=1"),
        "shifted-reduction, deliver": (_REDUCTION, ", results=deliver"),
        "shifted-reduction, pull": (_REDUCTION, ", reads=pull"),
    },
    "ag-gemm": {
        "pull, 8 chunks": (_AG_PULL, ", chunks=8"),
        "pull, own last": (_AG_PULL, ", offset=1"),
        "pull, own last, 2 chunks": (_AG_PULL, ", offset=1, chunks=2"),
        "pull, 3 chunks": (_AG_PULL, ", chunks=3"),
        "pull, own last, 4 chunks": (_AG_PULL, ", offset=1, chunks=4"),
        "ring, own last": (_AG_RING, ", offset=1"),
        "pull, 16 chunks": (_AG_PULL, ", chunks=16"),
    },
    "gemm-rs": {
        "fetch, 3 chunks, bf16": (_RS, f"{_FETCH}, chunks=3"),
        "fetch, bf16": (_RS, _FETCH),
        "fetch, 2 chunks": (_RS, f"{_FETCH_WIDE}, chunks=2"),
        "deliver, bf16": (_RS, f"{_DELIVER}, link=bf16"),
        "deliver, 2 chunks": (_RS, f"{_DELIVER}, chunks=2"),
        "deliver": (_RS, _DELIVER),
        "deliver, merged once": (_RS + "; defer(C, partial=bf16)", f"{_DELIVER}, link=bf16"),
        "fetch, merged once": (_RS + "; defer(C, partial=bf16)", _FETCH),
        "deliver, 4 chunks": (_RS, f"{_DELIVER}, chunks=4"),
        "deliver, 4 chunks, bf16": (_RS, f"{_DELIVER}, chunks=4, link=bf16"),
        "deliver, own first": (_RS, ", results=deliver"),
        "travel, bf16": (_RS, f"{_TRAVEL}, link=bf16"),
        "travel, own first": (_RS, ""),
    },
}
_STRATEGIES = {
    "attention": (
        "ring",
        "context-parallel",
        "ulysses",
        "double-ring",
        "usp",
        "shifted-reduction",
        "split-reduction",
        "hybrid",
    ),
    "ag-gemm": ("ag-gemm", "ag-gemm-shifted", "async-tp"),
    "gemm-rs": ("gemm-rs", "gemm-rs-shifted"),
}
_TWO_LEVELS = ("double-ring", "usp", "split-reduction", "hybrid")
_BOUNDARY = {"attention": "ring", "ag-gemm": "ag-gemm", "gemm-rs": "gemm-rs"}


@dataclass(frozen=True, kw_only=True)
class OwnPlan:
    """A schedule to be measured.

    Attributes
    ----------
    name
        Of the named strategy, or what is particular to the schedule.
    schedule
        The schedule.
    """

    name: str
    schedule: Schedule

    @property
    def recipe(self) -> str:
        """The schedule in one line."""
        return self.schedule.recipe()


def plans_of(
    workload: Workload,
    mesh: Mesh,
    skipped: Callable[[str, str], None] = lambda *_: None,
    *,
    wide: bool = False,
) -> Iterator[OwnPlan]:
    """Give the schedules of a workload: those by hand, then every named strategy.

    All have the same boundary: tokens in blocks over all ranks, as operators before and after
    have them. Causal attention is given in the balanced layout, and by heads also in blocks.
    A method of two levels is given every split of a mesh of one: the most even one by its
    name alone, ``usp 2x4`` for others.

    Parameters
    ----------
    workload
        What to schedule.
    mesh
        The ranks.
    skipped
        Is told the name of what this mesh does not allow, and why.
    wide
        More variants, at least 12 on two ranks, to compare predictions with.
    """
    from .. import strategies  # noqa: PLC0415 (loads the compiler)
    from ..errors import MercuryError  # noqa: PLC0415

    kind = "attention" if isinstance(workload, Attention) else workload.operator
    base = strategies.get(_BOUNDARY[kind])
    is_backward = isinstance(workload, Attention) and workload.backward
    table = f"{kind}-bwd" if is_backward else kind
    by_hand = {**_BY_HAND[table], **(_WIDE[table] if wide else {})}
    if isinstance(workload, Attention):
        gathered = {} if workload.backward else _KEYS_GATHERED
        if workload.batch % 8 == 0:
            by_hand = {**_IN_SLICES[table], **gathered, **_EXCHANGED, **by_hand}
        elif workload.backward and workload.heads % (8 * workload.group) == 0:
            by_hand = {**_IN_SLICES_OF_HEADS, **_HEADS_EXCHANGED, **by_hand}
    if mesh.size != 2:  # a ring of two steps overlaps, a longer one is a loop
        by_hand = {name: how for name, how in by_hand.items() if not _in_lanes(how[0])}
    names = (*by_hand, *_STRATEGIES[kind]) if mesh.size > 1 else (base.name,)
    for name, split, levels in _on_splits(names, mesh):
        for layout, program in _programs(workload, name).items():
            called = name + split + layout
            try:
                schedule = base.start(levels, program)
                if name in by_hand:
                    schedule.apply(_recipe(*by_hand[name], levels, program))
                else:
                    schedule.apply("; ".join(strategies.get(name).steps(levels, program)))
            except MercuryError as error:
                skipped(called, error.message)
                continue
            if _degenerate(schedule.mesh, mesh):
                skipped(called, f"it would be one of one level, on {schedule.mesh}")
                continue
            yield OwnPlan(name=called, schedule=schedule)


def _on_splits(names: Iterable[str], mesh: Mesh) -> Iterator[tuple[str, str, Mesh]]:
    """Give each name with the mesh, and again with every split that it would not choose."""
    from ..strategies.levels import even_split  # noqa: PLC0415 (loads the compiler)

    for name in names:
        yield name, "", mesh
        if name not in _TWO_LEVELS or len(mesh.levels) > 1:
            continue
        ((level, size),) = mesh.levels
        for inner in (n for n in range(2, size) if size % n == 0):
            if inner != even_split(size)[1]:
                split = {f"{level}0": size // inner, f"{level}1": inner}
                yield name, f" {size // inner}x{inner}", type(mesh)(**split)


def _in_lanes(recipe: str) -> bool:
    return "overlap(" in recipe and "shift(" in recipe


def _degenerate(split: Mesh, mesh: Mesh) -> bool:
    """Whether a level was split into one of a single rank, which says nothing new."""
    return 1 in [split[name] for name in split if name not in mesh.names]


def _recipe(text: str, more: str, mesh: Mesh, program: Program) -> str:
    from ..tuner.arrangement import growing_sizes  # noqa: PLC0415 (loads the compiler)
    from ..tuner.exchange import halves_at_ends  # noqa: PLC0415

    levels = mesh.names[0] if len(mesh.names) == 1 else f"[{', '.join(mesh.names)}]"
    results = [
        buffer.name
        for buffer in program.outputs
        if any(dim.axis is not None and dim.axis.name == "sq" for dim in buffer.dims)
    ]
    shards = "; ".join(f"shard({name}, sq, {levels})" for name in results)
    extents = {axis.name: axis.extent for axis in program.axes}
    batch, heads = extents.get("b", 1), extents.get("h", 1)
    # Partial results in the type of the results, as libraries round them.
    waits = ["O"] if "O" in results else ["dQ", "dK", "dV"]
    defer = "; ".join(f"defer({name}, partial=bf16)" for name in waits)
    return text.format(
        all=levels,
        parts=2 * mesh.size,
        more=more,
        growing=list(growing_sizes(batch, 4)),
        batches=list(halves_at_ends(batch, 4)),
        head_slices=list(halves_at_ends(heads, 4)),
        few_first=[heads // 8, heads - heads // 8],
        shards=shards,
        defer=defer,
        defer_dq="defer(dQ, partial=bf16)",
    )


def _programs(workload: Workload, name: str) -> dict[str, Program]:
    """Build the program, in each layout that is measured; the key says which."""
    from .. import programs  # noqa: PLC0415 (loads the compiler)

    if not isinstance(workload, Attention):
        return {"": programs.matmul(m=workload.m, n=workload.n, depth=workload.k)}
    layouts: dict[str, dict[str, str] | None] = {"": None}
    if workload.causal:
        mirrored = {"sq": "zigzag", "sk": "zigzag"}
        layouts = {", zigzag": mirrored}
        if name == "ulysses":
            layouts[""] = None
    function = programs.attention_backward if workload.backward else programs.attention
    return {
        text: function(
            b=workload.batch,
            h=workload.heads,
            sq=workload.rows,
            sk=workload.rows,
            d=workload.depth,
            group=workload.group,
            mask="causal" if workload.causal else "full",
            layout=layout,
        )
        for text, layout in layouts.items()
    }


def candidate(own: OwnPlan, *, deadline_ms: int = 30_000) -> Candidate:
    """Make a candidate of a schedule, with a session of its own: one that fails ends alone.

    Parameters
    ----------
    own
        The schedule.
    deadline_ms
        The longest wait for a peer.
    """

    def prepare(problem: Any, on: Processes) -> Prepared:
        plan: Any = own.schedule.compile(target="cuda")
        try:
            cuda = importlib.import_module("mercury.cuda")
        except ImportError as error:
            raise AbsentError(
                f"this version of Mercury does not run on GPUs: {error}"
            ) from None
        stack = contextlib.ExitStack()
        with contextlib.ExitStack() as failing:
            session = failing.enter_context(cuda.Session(plan.mesh, deadline_ms=deadline_ms))
            tensors, held = _tensors(plan, problem, on)
            call = plan.bind(session, **tensors)
            outputs = {name: tensors[name] for name in held}

            def run() -> Mapping[str, Any]:
                call()
                return outputs

            run()
            session.synchronize()  # tells of a peer that never comes, which PyTorch's cannot
            graph = call.capture()
            stack = failing.pop_all()
        return Prepared(run=run, held=held, graph=graph, close=stack.close)

    return Candidate(name=own.name, prepare=prepare)


def _tensors(
    plan: Any, problem: Any, on: Processes
) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """Give this rank's tensors of a plan, outputs without a number, and what they hold."""
    torch = on.torch
    kinds = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    tensors: dict[str, Any] = {}
    held: dict[str, tuple[Any, ...]] = {}
    for buffer in plan.program.buffers:
        indices = plan.layout(buffer.name).indices(on.rank)
        if not buffer.output:
            tensors[buffer.name] = problem.part(buffer.name, indices)
            continue
        held[buffer.name] = indices
        tensors[buffer.name] = torch.full(
            [len(index) for index in indices],
            torch.nan,
            dtype=kinds[buffer.dtype],
            device=on.device,
        )
    return tensors, held
