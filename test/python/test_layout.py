"""The layout arithmetic, exhaustively where that is affordable.

Every pass, the plan checker and the Python face ask the same functions, so a wrong shard here
is a wrong shard everywhere.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import pytest
from mercury._mlir import ir
from mercury._mlir._mlir_libs._mercury import layout_owner, layout_shard

EXTENTS = range(201)
RANKS = range(1, 18)
SPLITS = [(a, b) for a in range(1, 7) for b in range(1, 7)]
Intervals = list[tuple[int, int]]


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[ir.Context]:
    with ir.Context() as made:
        yield made


def layout(text: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#commir.layout<{text}>")


def bounds_layout(bounds: list[int]) -> ir.Attribute:
    return layout(f"bounds[{', '.join(map(str, bounds))}]")


def positions(intervals: Intervals) -> list[int]:
    return [x for begin, end in intervals for x in range(begin, end)]


def check_partition(cut: ir.Attribute, extent: int, shards: int) -> list[list[int]]:
    """Check all that holds for every layout; the positions of each shard."""
    owners = [-1] * extent
    owned = []
    for index in range(shards):
        intervals = layout_shard(cut, extent, shards, index)
        last = -1
        for begin, end in intervals:
            assert last < begin < end, "sorted, disjoint, not adjacent and not empty"
            last = end
        owned.append(positions(intervals))
        for x in owned[-1]:
            assert owners[x] == -1, "owned once"
            owners[x] = index
    assert -1 not in owners, "every position has an owner"
    return owned


def check_owner(cut: ir.Attribute, extent: int, shards: int, owned: list[list[int]]) -> None:
    for index, xs in enumerate(owned):
        for x in xs:
            assert layout_owner(cut, extent, shards, x) == index


@pytest.mark.parametrize("kind", ["block", "zigzag", *(f"striped({c})" for c in range(1, 8))])
def test_partition(kind: str) -> None:
    cut = layout(kind)
    for extent, shards in itertools.product(EXTENTS, RANKS):
        owned = check_partition(cut, extent, shards)
        check_owner(cut, extent, shards, owned)


def test_block_is_the_formula() -> None:
    cut = layout("block")
    for extent, shards in itertools.product(EXTENTS, RANKS):
        for index in range(shards):
            low, high = (math.ceil(i * extent / shards) for i in (index, index + 1))
            want = [(low, high)] if low < high else []
            assert layout_shard(cut, extent, shards, index) == want


def test_zigzag_is_two_blocks() -> None:
    zigzag, block = layout("zigzag"), layout("block")
    for extent, shards in itertools.product(EXTENTS, RANKS):
        for index in range(shards):
            want = [
                x
                for i in (index, 2 * shards - 1 - index)
                for x in positions(layout_shard(block, extent, 2 * shards, i))
            ]
            assert positions(layout_shard(zigzag, extent, shards, index)) == want


@pytest.mark.parametrize("chunk", range(1, 8))
def test_striped_deals_chunks_in_turn(chunk: int) -> None:
    cut = layout(f"striped({chunk})")
    for extent, shards in itertools.product(EXTENTS, RANKS):
        for index in range(shards):
            want = [x for x in range(extent) if x // chunk % shards == index]
            assert positions(layout_shard(cut, extent, shards, index)) == want


def test_sizes_differ_by_at_most_one() -> None:
    cut = layout("block")
    for extent, shards in itertools.product(EXTENTS, RANKS):
        sizes = [len(positions(layout_shard(cut, extent, shards, i))) for i in range(shards)]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == extent


def random_bounds(source: random.Random, extent: int, shards: int) -> list[int]:
    return [0, *sorted(source.randint(0, extent) for _ in range(shards - 1)), extent]


def test_bounds_are_what_they_say() -> None:
    source = random.Random(1)
    for extent in EXTENTS:
        for shards in source.sample(RANKS, 4):
            bounds = random_bounds(source, extent, shards)
            cut = bounds_layout(bounds)
            owned = check_partition(cut, extent, shards)
            check_owner(cut, extent, shards, owned)
            for index, (begin, end) in enumerate(itertools.pairwise(bounds)):
                assert owned[index] == list(range(begin, end))


def test_bounds_cut_finer_and_coarser() -> None:
    source = random.Random(2)
    for extent in source.sample(EXTENTS, 60):
        shards = source.choice((2, 3, 4, 6))
        bounds = random_bounds(source, extent, shards)
        cut = bounds_layout(bounds)
        named = check_partition(cut, extent, shards)
        for factor in (2, 3, 5):
            finer = check_partition(cut, extent, shards * factor)
            check_owner(cut, extent, shards * factor, finer)
            for index in range(shards):
                inner = finer[index * factor : (index + 1) * factor]
                assert [x for xs in inner for x in xs] == named[index]
                assert max(map(len, inner)) - min(map(len, inner)) <= 1
        for joined in (n for n in range(2, shards + 1) if shards % n == 0):
            coarser = check_partition(cut, extent, shards // joined)
            check_owner(cut, extent, shards // joined, coarser)
            for index in range(shards // joined):
                parts = named[index * joined : (index + 1) * joined]
                assert coarser[index] == [x for xs in parts for x in xs]


@pytest.mark.parametrize("kind", ["block", "zigzag"])
def test_outer_shard_is_the_union_of_its_inner_shards(kind: str) -> None:
    """A split level (n = a * b) keeps who has what on the slow level."""
    cut = layout(kind)
    for extent, (a, b) in itertools.product(range(0, 201, 3), SPLITS):
        for outer in range(a):
            union = [
                x
                for inner in range(b)
                for x in positions(layout_shard(cut, extent, a * b, outer * b + inner))
            ]
            assert sorted(union) == positions(layout_shard(cut, extent, a, outer))


def test_bounds_over_a_split_level() -> None:
    source = random.Random(3)
    for a, b in SPLITS:
        extent = source.choice(EXTENTS)
        cut = bounds_layout(random_bounds(source, extent, a * b))
        for outer in range(a):
            union = [
                x
                for inner in range(b)
                for x in positions(layout_shard(cut, extent, a * b, outer * b + inner))
            ]
            assert union == positions(layout_shard(cut, extent, a, outer))


def causal_work(cut: ir.Attribute, extent: int, shards: int) -> list[int]:
    """(query, key) pairs that each shard of the queries sees under a causal mask."""
    return [
        sum(x + 1 for x in positions(layout_shard(cut, extent, shards, index)))
        for index in range(shards)
    ]


def test_zigzag_balances_a_causal_mask() -> None:
    for shards in RANKS:
        work = causal_work(layout("zigzag"), 16 * 2 * shards, shards)
        assert max(work) == min(work)
    # Block leaves the last rank with almost twice the mean.
    block = causal_work(layout("block"), 1024, 8)
    assert max(block) / (sum(block) / 8) == pytest.approx(1.875, abs=0.01)


def test_zigzag_is_close_on_uneven_extents() -> None:
    for extent, shards in itertools.product(range(100, 201), range(1, 9)):
        work = causal_work(layout("zigzag"), extent, shards)
        # Two blocks differ by at most one position each, whose work is at most the extent.
        assert max(work) - min(work) <= 2 * extent


def test_extents_beyond_32_bits() -> None:
    extent, shards = 1 << 40, 1 << 20
    for kind in ("block", "zigzag", f"striped({1 << 30})"):
        cut = layout(kind)
        for index in (0, 1, shards // 2, shards - 1):
            for begin, end in layout_shard(cut, extent, shards, index):
                assert 0 <= begin < end <= extent
                assert layout_owner(cut, extent, shards, begin) == index
                assert layout_owner(cut, extent, shards, end - 1) == index


@pytest.mark.parametrize(
    ("text", "extent", "shards", "index"),
    [
        ("block", 8, 4, 4),
        ("block", 8, 4, -1),
        ("block", 8, 0, 0),
        ("block", 8, -2, 0),
        ("block", -1, 2, 0),
        ("block", (1 << 40) + 1, 2, 0),
        ("block", 8, (1 << 20) + 1, 0),
        ("zigzag", 8, 4, 4),
        ("striped(2)", 8, 4, 4),
        ("bounds[0, 3, 7]", 8, 2, 0),
        ("bounds[0, 3, 9]", 8, 2, 0),
        ("bounds[0, 1, 2, 8]", 8, 2, 0),
        ("bounds[0, 1, 2, 8]", 8, 4, 0),
    ],
)
def test_refused_shard(text: str, extent: int, shards: int, index: int) -> None:
    with pytest.raises(ValueError, match="cannot cut"):
        layout_shard(layout(text), extent, shards, index)


@pytest.mark.parametrize(
    ("text", "extent", "shards", "position"),
    [
        ("block", 8, 4, 8),
        ("block", 8, 4, -1),
        ("block", 0, 4, 0),
        ("bounds[0, 3, 7]", 8, 2, 0),
    ],
)
def test_refused_owner(text: str, extent: int, shards: int, position: int) -> None:
    with pytest.raises(ValueError, match="cannot cut"):
        layout_owner(layout(text), extent, shards, position)


@pytest.mark.parametrize("text", ["striped(0)", "bounds[1, 8]", "bounds[0, 5, 3]", "bounds[]"])
def test_refused_layout(text: str) -> None:
    with pytest.raises(ir.MLIRError):
        layout(text)


def test_only_layouts_are_taken() -> None:
    other = ir.Attribute.parse("5 : i64")
    with pytest.raises(TypeError, match=r"expected a #commir\.layout"):
        layout_shard(other, 8, 4, 0)
    with pytest.raises(TypeError, match=r"expected a #commir\.layout"):
        layout_owner(other, 8, 4, 0)
