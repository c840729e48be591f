"""The space of schedules: complete, each once, in one order, and all of them legal."""

import os
import subprocess
import sys

import mercury as mc
import pytest
from mercury.runtime.trial import trial
from mercury.tuner import Space, SpaceOptions, Style
from mercury.tuner.traffic import transfers
from small_spaces import ROTATE, attention, matmul

# -- what is one schedule, and what are two -----------------------------------


def fingerprint(recipe, mesh, boundary=None, links=None, program=None):
    program = program or attention()
    schedule = mc.Schedule(program, mesh, boundary).apply(recipe)
    return Space(program, mesh, boundary, links=links).fingerprint(schedule)


SPLIT = "split_level(gpu, dict(x=2, y=2)); "
RING = "parallelize(sq, gpu); shift(sk, by=sq"
TWO = mc.Mesh(a=2, b=2)


@pytest.mark.parametrize(
    ("one", "other", "mesh"),
    [
        # Steps that commute, and names.
        ("parallelize(sq, a); parallelize(h, b)", "parallelize(h, b); parallelize(sq, a)", TWO),
        (
            "parallelize(sq, a); tile(sk, 2, names=[u, v]); shift(u, by=sq)",
            "tile(sk, 2); parallelize(sq, a); shift(sk_outer, by=sq)",
            TWO,
        ),
        # What follows from the loops may also be said.
        (
            "parallelize(sq, gpu); shift(sk, by=sq)",
            "parallelize(sq, gpu); shift(sk, by=sq); shard(K, sk, gpu); shard(V, sk, gpu)",
            mc.Mesh(gpu=4),
        ),
        # A parallel loop and a loop of one part take no time: the order in an axis counts.
        (
            "parallelize(sq, gpu); shift(sk, by=sq)",
            "parallelize(sq, gpu); shift(sk, by=sq); reorder(sk, b, sq, h)",
            mc.Mesh(gpu=4),
        ),
        ("parallelize(sq, gpu)", "join(b, h, bh); parallelize(sq, gpu)", mc.Mesh(gpu=4)),
        # A join spreads its axes one after another.
        (
            "split_level(gpu, dict(x=4, y=2)); parallelize(h, x); parallelize(sq, y)",
            "split_level(gpu, dict(x=4, y=2)); join(h, sq); parallelize(h_sq, [x, y])",
            mc.Mesh(gpu=8),
        ),
        # Levels that came from one and are used together.
        (SPLIT + "parallelize(sq, [x, y])", "parallelize(sq, gpu)", mc.Mesh(gpu=4)),
        (
            "split_level(gpu, dict(x=2, y=2, z=2)); parallelize(sq, [x, y, z])",
            "parallelize(sq, gpu)",
            mc.Mesh(gpu=8),
        ),
        # One loop over several levels nests.
        (
            "parallelize(sq, [a, b]); shift(sk, by=sq)",
            "parallelize(sq, [a, b]); tile(sk, a); shift(sk_outer, by=sq, over=a); "
            "shift(sk_inner, by=sq, over=b)",
            TWO,
        ),
        # Levels of one size on one link.
        (
            SPLIT + "parallelize(sq, x); parallelize(h, y)",
            SPLIT + "parallelize(h, x); parallelize(sq, y)",
            mc.Mesh(gpu=4),
        ),
        # Operands that nothing uses.
        (
            "parallelize(sq, gpu); shift(sk, by=sq)",
            "parallelize(sq, gpu); shift(sk, by=sq, results=deliver)",
            mc.Mesh(gpu=4),
        ),
        (
            "parallelize(sq, gpu); shift(sk, by=sq, offset=1)",
            "parallelize(sq, gpu); shift(sk, by=sq, offset=5)",
            mc.Mesh(gpu=4),
        ),
        # Panels are those of the loop, or as few as there can be.
        (
            "parallelize(sq, gpu); shard(K, sk, gpu, reads=broadcast)",
            "tile(sk, 4); parallelize(sq, gpu); shard(K, sk, gpu, reads=broadcast)",
            mc.Mesh(gpu=4),
        ),
    ],
)
def test_schedules_that_mean_the_same_plan_are_one(one, other, mesh):
    assert fingerprint(one, mesh) == fingerprint(other, mesh)


def test_a_level_of_one_rank_is_none():
    assert fingerprint("parallelize(sq, gpu)", mc.Mesh(gpu=4)) == fingerprint(
        "parallelize(sq, [gpu, one])", mc.Mesh(gpu=4, one=1), links={"gpu": "gpu", "one": "one"}
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("parallelize(sq, gpu)", "parallelize(h, gpu)"),
        ("parallelize(sq, gpu)", "parallelize(sq, gpu); shift(sk, by=sq)"),
        ("parallelize(sq, gpu)", "parallelize(sq, gpu); shard(K, sk, gpu)"),
        *[
            (RING + ")", f"{RING}, {text})")
            for text in (
                "direction=-1",
                "offset=1",
                "reads=pull",
                "chunks=2",
                "link=bf16",
                "via=dict(K=pull)",
            )
        ],
        (
            "parallelize(sq, gpu); shift(sk, by=sq)",
            SPLIT + "parallelize(sq, [x, y]); shift(sk, by=sq)",
        ),
        (
            "parallelize(sq, gpu); tile(h, 2); shift(sk, by=sq)",
            "parallelize(sq, gpu); tile(h, 2); shift(sk, by=sq); reorder(sk, h_outer, h_inner)",
        ),
        # Partial results are merged level by level: fewer are sent.
        (
            "parallelize(sk, gpu); replicate(O, gpu)",
            SPLIT + "parallelize(sk, [x, y]); replicate(O, x); replicate(O, y)",
        ),
        # A parallel inner loop gives a strided placement.
        (
            "tile(sq, 2); parallelize(sq_outer, gpu)",
            "tile(sq, 2); parallelize(sq_inner, gpu)",
        ),
        ("parallelize(sq, gpu)", "parallelize(sq, gpu); patch(attention_fwd, cudnn)"),
        (
            "parallelize(sq, gpu); shard(K, sk, gpu)",
            "parallelize(sq, gpu); shard(K, sk, gpu, reads=broadcast)",
        ),
    ],
)
def test_schedules_that_differ_are_two(one, other):
    mesh = mc.Mesh(gpu=4)
    if "tile(sq, 2)" in one:
        mesh = mc.Mesh(gpu=2)
    assert fingerprint(one, mesh) != fingerprint(other, mesh)


def test_equal_levels_differ_by_their_link_and_by_the_boundary():
    one, other = (
        "parallelize(sq, a); parallelize(h, b)",
        "parallelize(h, a); parallelize(sq, b)",
    )
    same, different = {"a": "nvlink", "b": "nvlink"}, {"a": "network", "b": "nvlink"}
    assert fingerprint(one, TWO, links=same) == fingerprint(other, TWO, links=same)
    assert fingerprint(one, TWO, links=different) != fingerprint(other, TWO, links=different)
    at = {"Q": {"sq": ("a", "b")}}
    assert fingerprint(one, TWO, at, same) != fingerprint(other, TWO, at, same)


# -- the space itself ---------------------------------------------------------


def test_the_space_has_each_schedule_once_in_one_order():
    code = (
        "import mercury as mc; from mercury.tuner import Space, SpaceOptions, Style\n"
        "for each in Space(mc.programs.matmul(m=12, n=12, depth=12), mc.Mesh(gpu=4),\n"
        "                  options=SpaceOptions(styles=(Style(),))):\n"
        "    print(each.fingerprint, each.recipe)\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 200
    assert len({line.split()[0] for line in runs[0]}) == len(runs[0])


def test_merges_wait_where_they_can_gain_and_narrow_only_where_allowed():
    program = attention(h=4, sq=16, sk=16, d=4)
    mesh = mc.Mesh(gpu=2)
    exact = list(Space(program, mesh))
    later = [each for each in exact if each.eager]
    assert not any("partial=" in each.recipe or "link=" in each.recipe for each in exact)
    assert {each.eager for each in later} < {each.fingerprint for each in exact}
    assert len({each.fingerprint for each in exact}) == len(exact)
    # Of keys that come in parts there are several partial results, of whole keys one.
    assert any("shift(sk, by=sq" in each.recipe for each in later)
    assert not any("shift(" not in each.recipe for each in later)
    narrow = [
        each.recipe for each in Space(program, mesh, options=SpaceOptions(narrow=("f16",)))
    ]
    assert {each.recipe for each in exact} < set(narrow)
    assert any("defer(O, partial=f16)" in recipe for recipe in narrow)
    assert any("results=deliver, link=f16" in recipe for recipe in narrow)
    # The inputs are float32 here: a ring that moves them would round them, too.
    moves_q = [r for r in narrow if "shift(sq, by=sk" in r and "link" in r]
    assert all("replicate(Q, gpu)" in recipe or "shard(Q" in recipe for recipe in moves_q)
    for each in later[:: max(1, len(later) // 6)]:
        assert trial(each.schedule.compile()).right, each.recipe


def test_a_product_alone_merges_as_it_goes():
    kept = [each for each in Space(matmul(), mc.Mesh(gpu=2)) if each.eager]
    assert kept
    assert all(
        "results=deliver" in each.recipe or "results=fetch" in each.recipe for each in kept
    )


def test_a_ring_that_pulls_may_come_in_slices_of_a_batch():
    mesh = mc.Mesh(gpu=2)
    program = attention(b=12, h=2, d=2)
    plain = {each.fingerprint for each in Space(program, mesh, options=SpaceOptions(slices=()))}
    space = Space(program, mesh)
    found = list(space)
    assert plain < {each.fingerprint for each in found}
    assert len({each.fingerprint for each in found}) == space.made == len(found)
    sliced = [each for each in found if each.fingerprint not in plain]
    # 8 does not divide 12; slices of one size and slices that grow have the same few.
    tiles = ["tile(b, 2)", "tile(b, [4, 8])", "tile(b, 4)", "tile(b, [1, 1, 3, 7])"]
    numbers = [sum(tile in each.recipe for each in sliced) for tile in tiles]
    assert numbers == [len(sliced) / 4] * 4
    assert numbers[0] < len(plain) / 8
    assert all("reads=pull" in each.recipe for each in sliced)
    assert not any("chunks" in each.recipe for each in sliced)
    for each in sliced[::3]:
        assert trial(each.schedule.compile()).right, each.recipe
        moved = sum(transfer.bytes for transfer in transfers(each))
        # Of each rank, and of both.
        assert 2 * moved == trial(each.schedule.compile()).report.bytes_sent["gpu"], each.recipe


def test_panels_are_tried_where_loops_over_several_axes_need_them():
    found = [each for each in Space(matmul(), TWO, options=ROTATE) if _broadcasts(each)]
    summa = [each for each in found if _broadcasts(each) == 2]
    fox = [each for each in found if _broadcasts(each) == 1]
    assert summa
    assert fox
    assert not any("shift(" in each.recipe for each in summa)
    assert all("shift(k" in each.recipe for each in fox)
    for each in found[::3]:
        plan = each.schedule.compile()
        run = trial(plan)
        assert run.right, each.recipe
        moved = dict.fromkeys(plan.mesh.names, 0.0)
        for transfer in transfers(each):
            moved[transfer.level] += 4 * transfer.bytes  # of each rank
        assert moved == run.report.bytes_sent, each.recipe
    # What one loop alone needs, a ring brings as well.
    for program in (matmul(), attention()):
        assert not any(map(_broadcasts, Space(program, mc.Mesh(gpu=2))))
    recipes = [each.recipe for each in Space(attention(), TWO) if _broadcasts(each)]
    assert not any(f"sk, {level}, reads" in recipe for recipe in recipes for level in "ab")


def _broadcasts(candidate):
    return candidate.recipe.count("reads=broadcast")


def test_slices_that_do_not_lie_together_are_left_out():
    for program in (attention(), matmul()):
        mesh = mc.Mesh(gpu=2)
        plain = Space(program, mesh, options=SpaceOptions(slices=()))
        assert [e.recipe for e in Space(program, mesh)] == [e.recipe for e in plain]


def test_the_space_of_attention_on_8_ranks_is_that_of_the_paper_and_more():
    program = mc.programs.attention(h=32, sq=4096, sk=4096)
    space = Space(program, mc.Mesh(gpu=8), options=ROTATE)
    recipes = [each.recipe for each in space]
    assert (len(recipes), space.made, sum(space.illegal.values())) == (1805, 1805, 0)
    assert sum("split_level" in recipe for recipe in recipes) > 1500
    # A mask makes the direction of a ring matter.
    causal = Space(
        mc.programs.attention(h=32, sq=4096, sk=4096, mask="causal"),
        mc.Mesh(gpu=8),
        options=ROTATE,
    )
    assert sum("direction=-1" in each.recipe for each in causal) > 500


def test_the_space_is_lazy():
    space = Space(mc.programs.attention(h=64, sq=1 << 20, sk=1 << 20), mc.Mesh(node=8, gpu=64))
    first = next(iter(space))
    assert first.placed.levels == (("node", 8), ("gpu", 64))
    assert space.made == 1


def test_options_add_blocks_implementations_and_single_buffers():
    mesh = mc.Mesh(gpu=2)
    plain = {each.fingerprint for each in Space(attention(), mesh, options=ROTATE)}
    for options, text in (
        (SpaceOptions(styles=(Style(),), blocks=(2,)), "tile("),
        (
            SpaceOptions(
                styles=(Style(),), implementations={"attention_fwd": ("generated", "cudnn")}
            ),
            "patch(attention_fwd, cudnn)",
        ),
        (SpaceOptions(styles=(Style(),), untied=True), "shard(K, h, gpu); shard(V, sk, gpu)"),
        (SpaceOptions(styles=(Style(), Style(link="bf16"))), "link=bf16"),
    ):
        more = list(Space(attention(), mesh, options=options))
        assert len(more) > len(plain)
        assert any(text in each.recipe for each in more)
    untied = Space(attention(), mesh, options=SpaceOptions(styles=(Style(),), untied=True))
    assert plain <= {each.fingerprint for each in untied}


def test_the_boundary_is_kept_by_every_schedule():
    boundary = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}}
    for each in Space(attention(), mc.Mesh(gpu=4), boundary, options=ROTATE):
        levels = tuple(name for name, _ in each.placed.levels)
        for buffer, axis in (("Q", "sq"), ("K", "sk")):
            (cut,) = each.placed.boundary[buffer]
            assert (cut.axis, cut.factors) == (axis, levels)


def test_what_the_compiler_refuses_is_counted_by_its_reason():
    program = matmul(layout={"i": "bounds[0, 5, 12]"})
    space = Space(program, mc.Mesh(gpu=3), options=ROTATE)
    recipes = [each.recipe for each in space]
    assert recipes
    assert not any("(i, gpu)" in recipe for recipe in recipes)
    assert space.illegal
    assert all("must fit" in reason for reason in space.illegal), space.illegal


def test_more_ranks_than_positions_still_have_a_schedule():
    program = attention(h=1, sq=1, sk=3)
    first = next(iter(Space(program, mc.Mesh(gpu=4), options=ROTATE)))
    assert first.recipe == "parallelize(sk, gpu); replicate(O, gpu); replicate(LSE, gpu)"
