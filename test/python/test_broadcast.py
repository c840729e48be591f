"""Panels that their owners broadcast, one a step, against float64."""

from __future__ import annotations

import mercury as mc
import pytest
from mercury.runtime.trial import LIMITS, trial
from mercury.tuner.placed import read_placed
from mercury.tuner.sentence import sentence

GRIDS = [(2, 3), (3, 2), (3, 1), (1, 3), (2, 2), (2, 4)]


def summa(rows: int, cols: int, *more: str, **sizes: object) -> mc.Schedule:
    """SUMMA on a grid, with more steps."""
    program = mc.programs.matmul(**{"m": 11, "n": 7, "depth": 13, "dtype": "f32", **sizes})
    schedule = mc.strategies.get("summa").schedule(mc.Mesh(row=rows, col=cols), program)
    for step in more:
        schedule.apply(step)
    return schedule


def lines(size: int) -> int:
    """Give the bytes of what starts at a multiple of 64."""
    return -(-size // 64) * 64


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("layout", ["block", "zigzag", "bounds"])
def test_panels_are_right_and_each_byte_comes_once(grid, layout):
    rows, cols = grid
    bounds = f"bounds{[*range(12), 13]}"  # into 12 shards, which 1 to 4 ranks join
    layouts = {"i": "zigzag", "k": bounds if layout == "bounds" else layout}
    found = trial(summa(rows, cols, layout=layouts).compile())
    assert found.right, found.errors
    assert found.report.bytes_sent == {
        "row": 13 * 7 * 4 * (rows - 1),
        "col": 11 * 13 * 4 * (cols - 1),
    }


@pytest.mark.parametrize(("m", "n", "depth"), [(1, 1, 1), (2, 3, 2), (0, 3, 5), (5, 4, 64)])
@pytest.mark.parametrize("grid", [(2, 3), (3, 2)], ids=str)
def test_shards_may_be_empty(grid, m, n, depth):
    found = trial(summa(*grid, m=m, n=n, depth=depth).compile())
    assert found.right, found.errors


@pytest.mark.parametrize(
    "mesh", [mc.Mesh(gpu=3), mc.Mesh(gpu=6), mc.Mesh(a=2, b=2, c=2)], ids=str
)
@pytest.mark.parametrize("dtype", ["f64", "bf16"])
def test_summa_runs_on_any_mesh(mesh, dtype):
    program = mc.programs.matmul(m=9, n=10, depth=17, dtype=dtype)
    found = trial(mc.strategies.get("summa").schedule(mesh, program).compile())
    assert found.right, found.errors


def test_two_panels_are_all_the_memory_that_it_takes():
    plan = summa(2, 3, m=64, n=48, depth=96).compile()
    # 6 panels: 16 columns of 32 rows, and 16 rows of 16 columns.
    assert plan.arena_bytes == 2 * 32 * 16 * 4 + 2 * 16 * 16 * 4
    whole = mc.strategies.get("summa").schedule(mc.Mesh(row=2, col=3), plan.program)
    gathered = mc.Schedule(plan.program, whole.mesh)
    gathered.apply(whole.recipe().replace(", reads=broadcast", ""))
    # All columns of the rank's rows, and all rows of its columns.
    assert gathered.compile().arena_bytes >= 4 * 96 * (32 + 16)


def test_tiles_make_finer_panels():
    program = mc.programs.matmul(m=11, n=7, depth=29, dtype="f32")
    schedule = mc.Schedule(program, mc.Mesh(row=2, col=3))
    schedule.apply("tile(k, 12); parallelize(i, row); parallelize(j, col)")
    schedule.apply("shard(A, k, col, reads=broadcast); shard(B, k, row, reads=broadcast)")
    plan = schedule.compile()
    assert trial(plan).right
    assert plan.arena_bytes == 2 * lines(6 * 3 * 4) + 2 * lines(3 * 3 * 4)
    started = [e for e in plan.events(rank=0) if e.kind == "broadcast" and e.happens]
    assert len(started) == 2 * 12


@pytest.mark.parametrize(
    ("steps", "turns", "rows"),
    [
        # A slice of the rows is broadcast at a time.
        ("tile(i, 4); parallelize(j, gpu)", 1, 3),
        ("tile(i, 4); parallelize(j, gpu); reorder(k, i_outer, i_inner)", 1, 12),
        # A loop over columns, which A has not, has its panels come again.
        ("tile(j, 2); parallelize(j_inner, gpu)", 2, 12),
        ("tile(j, 2); parallelize(j_inner, gpu); reorder(k, j_outer, j_inner)", 1, 12),
        # Joined loops nest where they run in sequence.
        ("join(j, k)", 1, 12),
    ],
)
def test_loops_around_the_panels_take_slices_or_repeat(steps, turns, rows):
    program = mc.programs.matmul(m=12, n=13, depth=9, dtype="f32")
    schedule = mc.Schedule(program, mc.Mesh(gpu=3)).apply(steps)
    plan = schedule.shard("A", "k", "gpu", reads="broadcast").compile()
    found = trial(plan)
    assert found.right, found.errors
    assert found.report.bytes_sent == {"gpu": turns * 12 * 9 * 4 * 2}
    assert plan.arena_bytes == 2 * lines(rows * 3 * 4)


@pytest.mark.parametrize("link", [None, "bf16"])
def test_one_input_rotates_while_the_other_is_broadcast(link):
    program = mc.programs.matmul(m=10, n=8, depth=14, dtype="f32")
    schedule = mc.Schedule(program, mc.Mesh(row=3, col=3))
    schedule.parallelize("i", "row").parallelize("j", "col")
    schedule.shard("A", "k", "col", reads="broadcast").shift("k", by="i", link=link)
    found = trial(schedule.compile())
    # With a link it is gathered: what it brings is not rounded.
    assert found.right != bool(link), found.errors
    assert max(found.errors.values()) < 2 * LIMITS[link or "f32"]
    moved = 2 if link else 4
    assert found.report.bytes_sent == {"row": 14 * 8 * moved * 2, "col": 10 * 14 * 4 * 2}


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("sizes", [{}, {"m": 2}], ids=str)
@pytest.mark.parametrize("layout", ["block", "zigzag"])
def test_ranks_at_unlike_slices_gather(ranks, sizes, layout):
    sizes = {"m": 11, "n": 7, "depth": 13} | sizes
    program = mc.programs.matmul(**sizes, dtype="f32", layout={"i": layout, "k": layout})
    schedule = mc.Schedule(program, mc.Mesh(gpu=ranks)).parallelize("j", "gpu")
    schedule.shard("A", "k", "gpu", reads="broadcast").shift("i", by="j").reorder("i", "k")
    found = trial(schedule.compile())
    assert found.right, found.errors
    assert found.report.bytes_sent == {"gpu": sizes["m"] * sizes["depth"] * 4 * (ranks - 1)}


@pytest.mark.parametrize("levels", [["gpu"], ["node", "gpu"]], ids=str)
def test_a_nest_that_runs_where_the_shards_are_broadcasts_nothing(levels):
    program = mc.programs.matmul(m=5, n=7, depth=11, dtype="f32")

    def run(**reads):
        schedule = mc.Schedule(program, mc.Mesh(node=2, gpu=3))
        found = trial(
            schedule.shard("A", "k", levels, **reads).parallelize("k", levels).compile()
        )
        assert found.right, found.errors
        return found.report.bytes_sent

    assert run(reads="broadcast") == run()


@pytest.mark.parametrize("mesh", [mc.Mesh(gpu=3), mc.Mesh(node=2, gpu=2)], ids=str)
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_one_nest_takes_panels_and_another_its_own(mesh, mask):
    sizes = {"h": 4, "group": 2, "sq": 13, "sk": 11, "d": 4}
    program = mc.programs.attention_backward(**sizes, dtype="f32", mask=mask)
    schedule = mc.Schedule(program, mesh).parallelize("sk", mesh.names[0])
    for name in ("Q", "O", "dO"):
        schedule.shard(name, "sq", "gpu", reads="broadcast")
    found = trial(schedule.compile())
    assert found.right, found.errors


@pytest.mark.parametrize("levels", [["gpu"], ["node", "gpu"]], ids=str)
@pytest.mark.parametrize("layout", ["block", "zigzag", "striped(2)"])
@pytest.mark.parametrize("program", ["attention", "attention_backward"])
def test_keys_and_values_come_in_panels(program, levels, layout):
    mesh = mc.Mesh(gpu=3) if len(levels) == 1 else mc.Mesh(node=2, gpu=2)
    made = getattr(mc.programs, program)(
        h=4, group=2, sq=13, sk=11, d=4, dtype="f32", mask="causal", layout={"sk": layout}
    )
    schedule = mc.Schedule(made, mesh).parallelize("sq", levels)
    schedule.shard("K", "sk", levels, reads="broadcast")
    schedule.shard("V", "sk", levels, reads="broadcast")
    plan = schedule.compile()
    found = trial(plan)
    assert found.right, found.errors
    if program == "attention":
        keys = 11 * 2 * 4 * 4
        assert sum(found.report.bytes_sent.values()) == 2 * keys * (mesh.size - 1)
    # The recipe says it, and so does the sentence.
    again = mc.Schedule(made, mesh).apply(schedule.recipe())
    assert again.ir() == schedule.ir()
    assert "K and V are broadcast panel by panel" in sentence(read_placed(schedule))


@pytest.mark.parametrize(("sq", "sk"), [(13, 18), (18, 13), (1, 21)])
def test_striped_panels_of_more_keys_than_queries(sq, sk):
    layout = {"sq": "striped(1)", "sk": "striped(1)"}
    made = mc.programs.attention(b=3, h=2, sq=sq, sk=sk, d=4, mask="causal", layout=layout)
    schedule = mc.Schedule(made, mc.Mesh(gpu=4)).parallelize("sq", "gpu")
    for keys in ("K", "V"):
        schedule.shard(keys, "sk", "gpu", reads="broadcast")
    found = trial(schedule.compile())
    assert found.right, found.errors


def test_the_text_of_a_plan_does_not_grow_with_the_ranks():
    sizes = {
        len(summa(n, n, m=64, n=64, depth=64).compile().spmd.splitlines()) for n in (2, 4, 8)
    }
    assert max(sizes) - min(sizes) <= 2, sizes


def test_what_is_not_legal_says_so():
    schedule = mc.Schedule(mc.programs.matmul(m=4, n=4, depth=4), mc.Mesh(row=2, col=3))
    with pytest.raises(mc.ScheduleError, match="must be an input, along an axis that it is"):
        schedule.shard("C", "i", "row", reads="broadcast")
    with pytest.raises(mc.ScheduleError, match="gather, broadcast"):
        schedule.shard("A", "k", "col", reads="rotate")
    with pytest.raises(mc.ScheduleError, match="reads must be a word, got 'a b'"):
        schedule.shard("A", "k", "col", reads="a b")
    schedule.shard("A", "k", "col", reads="broadcast")
    with pytest.raises(mc.ScheduleError, match="broadcast along it, 3 of 'A', got 4 in loop"):
        schedule.tile("k", 4)
    schedule.parallelize("i", "col")
    with pytest.raises(mc.ScheduleError, match="level that its axis is broadcast on"):
        schedule.shift("k", by="i")
    assert schedule.recipe() == "shard(A, k, col, reads=broadcast); parallelize(i, col)"
