"""Schedules: one method a transform, chainable, and atomic."""

import inspect

import mercury as mc
import pytest
from mercury.runtime.trial import trial
from mercury.schedule import format_recipe, parse_recipe


def attention(mesh, **extents):
    return mc.Schedule(mc.programs.attention(h=4, sq=8, sk=8, d=4, **extents), mesh)


def test_the_script_and_the_recipe_read_back():
    schedule = attention(mc.Mesh(gpu=8))
    (
        schedule.split_level("gpu", {"slow": 2, "fast": 4})
        .tile("sk", "slow", ["sk_far", "sk_near"])
        .parallelize("sq", ["slow", "fast"])
        .shift("sk_far", by="sq", over="slow", direction=-1, offset=1, reads="pull", chunks=2)
        .shift("sk_near", by="sq", over="fast", via={"V": "pull"}, link="bf16")
        .join("b", "h", "bh")
        .reorder("sk_far", "bh")
        .shard("Q", "sq", "fast")
        .replicate("LSE", "slow")
        .patch("attention*", "generated")
    )
    for text in (schedule.recipe(), str(schedule)):
        again = attention(mc.Mesh(gpu=8)).apply(text)
        assert again.ir() == schedule.ir()
        assert again.recipe() == schedule.recipe()
        assert str(again) == str(schedule)
    assert schedule.mesh == mc.Mesh(slow=2, fast=4)


def test_replicas_over_an_outer_level_leave_the_inner_one_its_parts_of_each():
    """Rank (x, y) holds what all ranks (*, y) made: a strided placement, not a new cut."""
    program = mc.programs.matmul(m=10, n=6, depth=5, dtype="f32")
    schedule = mc.Schedule(program, mc.Mesh(x=2, y=2)).parallelize("i", ["x", "y"])
    plan = schedule.replicate("C", "x").compile()
    rows = [plan.layout("C").positions(rank, "i").tolist() for rank in range(4)]
    assert rows == 2 * [[0, 1, 2, 5, 6, 7], [3, 4, 8, 9]]
    assert trial(plan).right


def test_an_illegal_step_changes_nothing_and_has_the_python_line():
    schedule = attention(mc.Mesh(gpu=2)).parallelize("sq", "gpu")
    before = (schedule.ir(), schedule.recipe(), str(schedule))
    line = inspect.currentframe().f_lineno + 2
    with pytest.raises(mc.ScheduleError, match="'h' is not parallel; parallelize it") as caught:
        schedule.shift("sk", by="h")
    assert caught.value.location.endswith(f"test_schedule.py:{line}")
    assert (schedule.ir(), schedule.recipe(), str(schedule)) == before


def test_a_recipe_is_applied_whole_or_not_at_all():
    schedule = attention(mc.Mesh(gpu=2))
    before = schedule.ir()
    with pytest.raises(mc.ScheduleError, match="'k' is none"):
        schedule.apply("parallelize(sq, gpu); shift(k, by=sq)")
    assert schedule.ir() == before
    assert schedule.recipe() == ""
    script = str(attention(mc.Mesh(gpu=2)).parallelize("sq", "gpu"))
    broken = script.replace(
        "    transform.yield",
        '    transform.commir.replicate "O" over "node" in %program : !transform.any_op\n'
        "    transform.yield",
    )
    with pytest.raises(mc.ScheduleError, match="'node'"):
        schedule.apply(broken)
    assert schedule.ir() == before


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("parallelise(sq, gpu)", "no transform 'parallelise'; they are tile, join"),
        ("parallelize(sq", "does not read as transforms"),
        ("sq", r"expected a transform such as shift\(sk, by=sq\), got 'sq'"),
        ("shift(sk)", r"cannot apply shift\(sk\).*'by'"),
        ("parallelize(sq, node, gpu)", r"parallelize\(loop: .*a list is \[node, gpu\]"),
        ("tile(sk, 2.5)", "expected a name, a number or a list, got '2.5'"),
        ("shift(sk, by=sq, reads=x)", "shift .* reads x does not read as a transform"),
        ("shift(sk, by=sq, link=int7)", "link int7 does not read as a transform"),
        ("tile(sk, 0)", "must be tiled into a number of parts or a level, got 0"),
        ("tile(sk, node)", "must be tiled into a number of parts or a level, got 'node'"),
        ("tile(sk, 2, names=[a])", "must have two new names"),
        ("parallelize(sq, node)", r"must name levels of the mesh \('gpu'\), got 'node'"),
        ("parallelize(sq, gpu); parallelize(h, gpu)", "must not run two parallel loops"),
        (
            "parallelize(q, gpu)",
            "must name a loop of the program, 'q' is none; the loops are 'b', 'h', 'sq', 'sk'",
        ),
        ("shard(K, sq, gpu)", "must cut axes of its buffer, 'sq' is none"),
        ("shard(Z, sq, gpu)", "must name a buffer of the program, 'Z' is none"),
        ("shard(K, sk, gpu); shard(K, h, gpu)", "must not be sharded twice over a level"),
        ("shard(K, sk, gpu); replicate(K, gpu)", "must not be both replicated and sharded"),
        ("parallelize(sq, gpu); shift(sk, by=sq, direction=2)", "must be 1 or -1, got 2"),
        ("parallelize(sq, gpu); tile(sk, 5); shift(sk_outer, by=sq)", "must be a multiple"),
        ("split_level(gpu, dict(a=3, b=2))", "must multiply to the size of the level, 4"),
        ("reorder(sq, sq)", "must be at least two different loops"),
        ("join(b, sq)", "must be adjacent, outer first"),
        ("patch(matmul, cublas)", "must match a kernel of the program"),
    ],
)
def test_a_wrong_step_says_what_is_wrong(recipe, message):
    schedule = attention(mc.Mesh(gpu=4))
    before = schedule.ir()
    with pytest.raises(mc.ScheduleError, match=message):
        schedule.apply(recipe)
    assert schedule.ir() == before


def test_a_script_that_does_not_parse_says_where():
    with pytest.raises(mc.ScheduleError, match="the script does not read"):
        attention(mc.Mesh(gpu=4)).apply("transform.named_sequence nonsense")
    with pytest.raises(mc.ScheduleError, match=r"could not find.*__transform_main"):
        attention(mc.Mesh(gpu=4)).apply("// transform.named_sequence\nmodule {}")


def test_what_is_not_lowered_yet_is_refused_by_name():
    schedule = attention(mc.Mesh(gpu=4)).parallelize("sq", "gpu")
    schedule.shift("sk", by="sq", link="f8E4M3FN")
    with pytest.raises(mc.CompileError, match=r"R3 and R6 with link.*does not lower yet"):
        schedule.compile()
    with pytest.raises(mc.CompileError, match="no target 'tpu'; targets are 'sim' and 'cuda'"):
        attention(mc.Mesh(gpu=4)).compile(target="tpu")


def test_recipes_are_text():
    text = "tile(sk, 4, names=[a, b]); shift(a, by=[i, j], via=dict(K='pull'))"
    assert format_recipe(parse_recipe(text)) == text.replace("'pull'", "pull")


def test_strategies_are_named():
    assert mc.strategies.names() == [
        "context-parallel",
        "ring",
        "double-ring",
        "ulysses",
        "usp",
        "tree",
        "shifted-reduction",
        "split-reduction",
        "hybrid",
        "column-parallel",
        "row-parallel",
        "ag-gemm",
        "ag-gemm-shifted",
        "gemm-rs",
        "gemm-rs-shifted",
        "async-tp",
        "cannon",
        "summa",
    ]
    with pytest.raises(mc.ScheduleError, match="no strategy 'star'; they are context-parallel"):
        mc.strategies.get("star")


def test_a_copy_goes_its_own_way():
    schedule = attention(mc.Mesh(gpu=2)).parallelize("sq", "gpu")
    other = schedule.copy().shift("sk", by="sq")
    assert schedule.recipe() == "parallelize(sq, gpu)"
    assert "shift" not in schedule.ir()
    assert "shift" in other.ir()


def test_a_script_lists_what_it_applied():
    script = str(attention(mc.Mesh(gpu=2)).parallelize("sq", "gpu"))
    helper = (
        "  transform.named_sequence @unused(%program: !transform.any_op "
        "{transform.readonly}) {\n"
        '    transform.commir.tile "sk" into 2 in %program : !transform.any_op\n'
        "    transform.yield\n  }\n"
    )
    head, rest = script.split("\n", 1)
    schedule = attention(mc.Mesh(gpu=2)).apply(f"{head}\n{helper}{rest}")
    assert schedule.recipe() == "parallelize(sq, gpu)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "-1 offset 3"}, "direction must be a whole number, got '-1 offset 3'"),
        ({"link": "bf16 in %program"}, "link must be a word"),
        ({"reads": "pull chunks 2"}, "reads must be a word"),
    ],
)
def test_an_option_is_not_text_of_a_script(options, message):
    schedule = attention(mc.Mesh(gpu=2)).parallelize("sq", "gpu")
    with pytest.raises(mc.ScheduleError, match=message):
        schedule.shift("sk", by="sq", **options)


def test_a_schedule_is_of_a_program_on_a_mesh():
    with pytest.raises(mc.ProgramError, match="expected a program and a mesh"):
        mc.Schedule(mc.programs.matmul, mc.Mesh(gpu=2))
    with pytest.raises(mc.ProgramError, match="expected a program and a mesh"):
        mc.Schedule(mc.programs.matmul(), 4)
