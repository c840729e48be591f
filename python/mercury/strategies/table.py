"""The table of named methods."""

from __future__ import annotations

from collections.abc import Sequence

from ..dsl import Program
from ..dsl.nodes import Buffer
from ..errors import ScheduleError, did_you_mean
from ..programs import attention, decode_attention, matmul
from .levels import Levels
from .strategy import Axes, Strategy

__all__ = ["get", "names"]


def _over(levels: Sequence[str]) -> str:
    return levels[0] if len(levels) == 1 else f"[{', '.join(levels)}]"


def _tokens(levels: Levels) -> Axes:
    """Queries and keys cut over all levels: how tokens live between operators."""
    return {"sq": levels.all, "sk": levels.all}


def _keys(levels: Levels) -> Axes:
    return {"sk": levels.all}


def _rows(levels: Levels) -> Axes:
    return {"i": levels.all}


def _split(levels: Levels, steps: Sequence[str]) -> list[str]:
    """Split the only level first, where there is but one."""
    return [*([levels.split] if levels.split else []), *steps]


def _replicate(buffers: Sequence[str], levels: Sequence[str]) -> list[str]:
    return [f"replicate({buffer}, {level})" for buffer in buffers for level in levels]


def _shard(buffers: Sequence[str], axis: str, levels: Sequence[str]) -> list[str]:
    return [f"shard({buffer}, {axis}, {_over(levels)})" for buffer in buffers]


def _having(axis: str, buffers: Sequence[Buffer]) -> list[str]:
    """Name the buffers that have an axis: O and LSE, or dQ of the backward program."""
    return [
        buffer.name
        for buffer in buffers
        if any(dim.axis is not None and dim.axis.name == axis for dim in buffer.dims)
    ]


def _hybrid(levels: Levels, _: Program) -> list[str]:
    return _split(
        levels,
        [
            f"tile(sq, {levels.parts})",
            f"tile(sk, {levels.parts})",
            f"parallelize(sq_outer, {_over(levels.slow)})",
            f"parallelize(sk_inner, {_over(levels.fast)})",
            "shift(sk_outer, by=sq_outer)",
            "shift(sq_inner, by=sk_inner, offset=1)",
        ],
    )


_TABLE = (
    Strategy(
        name="context-parallel",
        summary="gather all keys and values, then attend locally",
        program=attention,
        boundary=_tokens,
        recipe=lambda on, program: [
            f"parallelize(sq, {_over(on.all)})",
            *_shard(_having("sk", program.buffers), "sk", on.all),
        ],
    ),
    Strategy(
        name="ring",
        summary="RingAttention: keys and values rotate, one part a step",
        program=attention,
        boundary=_tokens,
        recipe=lambda on, _: [f"parallelize(sq, {_over(on.all)})", "shift(sk, by=sq)"],
    ),
    Strategy(
        name="double-ring",
        summary="LoongTrain: a ring over the fast level inside one over the slow level",
        program=attention,
        boundary=_tokens,
        recipe=lambda on, _: _split(
            on, [f"parallelize(sq, [{', '.join((*on.slow, *on.fast))}])", "shift(sk, by=sq)"]
        ),
    ),
    Strategy(
        name="ulysses",
        summary="DeepSpeed-Ulysses: all-to-all from tokens to heads and back",
        program=attention,
        boundary=_tokens,
        recipe=lambda on, _: [f"parallelize(h, {_over(on.all)})"],
    ),
    Strategy(
        name="usp",
        summary="Ulysses on the fast level, a ring on the slow one",
        program=attention,
        boundary=_tokens,
        recipe=lambda on, _: _split(
            on,
            [
                f"parallelize(h, {_over(on.fast)})",
                f"parallelize(sq, {_over(on.slow)})",
                "shift(sk, by=sq)",
            ],
        ),
    ),
    Strategy(
        name="tree",
        summary="tree attention: each rank attends to its keys, results merge everywhere",
        program=decode_attention,
        boundary=_keys,
        buffers=("K", "V"),
        recipe=lambda on, program: [
            f"parallelize(sk, {_over(on.all)})",
            *_replicate(_having("sq", program.outputs), on.all),
        ],
    ),
    Strategy(
        name="shifted-reduction",
        summary="keys stay, partial outputs travel to the owners of their queries",
        program=attention,
        boundary=_tokens,
        recipe=lambda on, program: [
            f"parallelize(sk, {_over(on.all)})",
            *_shard(_having("sq", program.outputs), "sq", on.all),
            "shift(sq, by=sk, offset=1)",
        ],
    ),
    Strategy(
        name="split-reduction",
        summary="queries over the slow level, keys over the fast one, outputs merge there",
        program=attention,
        recipe=lambda on, program: _split(
            on,
            [
                f"parallelize(sq, {_over(on.slow)})",
                f"parallelize(sk, {_over(on.fast)})",
                *_replicate(_having("sq", program.outputs), on.fast),
            ],
        ),
    ),
    Strategy(
        name="hybrid",
        summary="keys rotate on the slow level, partial outputs travel on the fast one",
        program=attention,
        boundary=_tokens,
        recipe=_hybrid,
    ),
    Strategy(
        name="column-parallel",
        summary="each rank makes its columns of C; nothing moves",
        program=matmul,
        recipe=lambda on, _: [f"parallelize(j, {_over(on.all)})"],
    ),
    Strategy(
        name="row-parallel",
        summary="each rank sums over its part of k; all_reduce of C",
        program=matmul,
        recipe=lambda on, _: [f"parallelize(k, {_over(on.all)})", *_replicate(["C"], on.all)],
    ),
    Strategy(
        name="ag-gemm",
        summary="gather the rows of A, then multiply by the rank's columns of B",
        program=matmul,
        boundary=_rows,
        buffers=("A",),
        recipe=lambda on, _: [
            f"parallelize(j, {_over(on.all)})",
            f"shard(A, i, {_over(on.all)})",
        ],
    ),
    Strategy(
        name="ag-gemm-shifted",
        summary="the rows of A rotate, one part a step",
        program=matmul,
        boundary=_rows,
        buffers=("A",),
        recipe=lambda on, _: [f"parallelize(j, {_over(on.all)})", "shift(i, by=j)"],
    ),
    Strategy(
        name="gemm-rs",
        summary="each rank sums over its part of k; reduce_scatter of C",
        program=matmul,
        boundary=_rows,
        buffers=("C",),
        recipe=lambda on, _: [
            f"parallelize(k, {_over(on.all)})",
            f"shard(C, i, {_over(on.all)})",
        ],
    ),
    Strategy(
        name="gemm-rs-shifted",
        summary="partial rows of C travel to their owners as soon as they exist",
        program=matmul,
        boundary=_rows,
        buffers=("C",),
        recipe=lambda on, _: [
            f"parallelize(k, {_over(on.all)})",
            f"shard(C, i, {_over(on.all)})",
            "shift(i, by=k, offset=1)",
        ],
    ),
    Strategy(
        name="async-tp",
        summary="AG-GEMM whose rows are pulled from their owners, in two chunks",
        program=matmul,
        boundary=_rows,
        buffers=("A",),
        recipe=lambda on, _: [
            f"parallelize(j, {_over(on.all)})",
            "shift(i, by=j, reads=pull, chunks=2)",
        ],
    ),
    Strategy(
        name="cannon",
        summary="Cannon: blocks of A move along rows of the mesh, of B along columns",
        program=matmul,
        recipe=lambda on, _: _split(
            on,
            [
                f"parallelize(i, {_over(on.slow)})",
                f"parallelize(j, {_over(on.fast)})",
                "shift(k, by=[i, j], reads=pull)",
            ],
        ),
    ),
    Strategy(
        name="summa",
        summary="SUMMA: panels of A and B are broadcast along rows and columns",
        program=matmul,
        recipe=lambda on, _: _split(
            on,
            [
                f"parallelize(i, {_over(on.slow)})",
                f"parallelize(j, {_over(on.fast)})",
                f"shard(A, k, {_over(on.fast)}, reads=broadcast)",
                f"shard(B, k, {_over(on.slow)}, reads=broadcast)",
            ],
        ),
    ),
)


def names() -> list[str]:
    """List the named methods, attention first.

    Examples
    --------
    >>> len(names()), names()[1]
    (18, 'ring')
    """
    return [strategy.name for strategy in _TABLE]


def get(name: str) -> Strategy:
    """Give a method by name.

    Raises
    ------
    ScheduleError
        When there is none of that name.
    """
    for strategy in _TABLE:
        if strategy.name == name:
            return strategy
    raise ScheduleError(
        f"there is no strategy '{name}'; they are {', '.join(names())}"
        f"{did_you_mean(name, names())}"
    )
