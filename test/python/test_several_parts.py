"""Rings that rotate several parts a rank, or parts in chunks, as they are due.

Extents are odd, so that parts are uneven, and some are empty. Every plan is proved by the
checker before it runs.
"""

import mercury as mc
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial

MESHES = ("gpu=2", "gpu=3")
SHIFTS = (
    "",
    ", direction=-1",
    ", offset=1",
    ", offset=3",
    ", direction=-1, offset=2",
    ", link=bf16",
)


def attention(**options):
    # Two batches, so that a part is no run of its owner's memory.
    sizes = {"b": 2, "h": 2, "sq": 13, "sk": 19, "d": 3, "dtype": "f32", "mask": mc.causal(5)}
    return mc.programs.attention(**(sizes | options))


def matmul(**options):
    return mc.programs.matmul(**({"m": 13, "n": 5, "depth": 23, "dtype": "f32"} | options))


PROGRAMS = {
    "runs of memory": (matmul, "i", "k"),
    "slices of memory": (attention, "sq", "sk"),
}


def run(program, mesh, recipe, boundary=None):
    schedule = mc.Schedule(program, mc.Mesh.parse(mesh), boundary).apply(recipe)
    return trial(schedule.compile(), 1, SimOptions(seed=5, max_delay_us=100))


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("case", PROGRAMS)
@pytest.mark.parametrize("each", [2, 3])
def test_parts_rotate_as_they_are_pulled(case, shift, mesh, each):
    make, rows, axis = PROGRAMS[case]
    parts = each * mc.Mesh.parse(mesh).size
    found = {}
    for reads in ("rotate", "pull"):
        recipe = f"tile({axis}, {parts}); parallelize({rows}, gpu); "
        recipe += f"shift({axis}_outer, by={rows}, reads={reads}{shift})"
        found[reads] = run(make(), mesh, recipe)
        if "link" not in shift:
            assert found[reads].right, found[reads].errors
    # What is rounded for a link is so alike, wherever it is worked on.
    assert found["rotate"].errors == pytest.approx(found["pull"].errors, rel=1e-3)


@pytest.mark.parametrize("shift", SHIFTS[:-1])
def test_parts_that_are_given_explicitly_rotate(shift):
    program = matmul(layout={"k": "bounds[0, 1, 1, 4, 9, 10, 23]"})
    recipe = f"tile(k, 6); parallelize(i, gpu); shift(k_outer, by=i{shift})"
    assert run(program, "gpu=3", recipe).right


@pytest.mark.parametrize("shift", SHIFTS[:-1])
def test_each_part_comes_once_to_each_rank(shift):
    program = matmul()
    recipe = f"tile(k, 9); parallelize(i, gpu); shift(k_outer, by=i{shift})"
    sent = run(program, "gpu=3", recipe).report.bytes_sent["gpu"]
    # All of B, but for what a rank owns.
    assert sent == 2 * 23 * 5 * 4


@pytest.mark.parametrize("mesh", ["node=2,gpu=2", "node=2,gpu=3", "node=3,gpu=2"])
@pytest.mark.parametrize("shift", ["", ", direction=-1", ", offset=1"])
@pytest.mark.parametrize("program", [matmul(), attention()], ids=["matmul", "attention"])
def test_several_parts_beside_other_levels(program, mesh, shift):
    rows, axis = ("i", "k") if program.name == "matmul" else ("sq", "sk")
    # Rings of a node each.
    levels = dict(mc.Mesh.parse(mesh).levels)
    recipe = f"tile({axis}, {2 * levels['gpu']}); parallelize({rows}, gpu); "
    assert run(program, mesh, recipe + f"shift({axis}_outer, by={rows}{shift})").right
    # The inner of two rings.
    recipe = f"tile({axis}, node); parallelize({rows}, [node, gpu]); "
    recipe += f"tile({axis}_inner, {2 * levels['gpu']}, names=[x, y]); "
    recipe += f"shift({axis}_outer, by={rows}, over=node); shift(x, by={rows}, over=gpu{shift})"
    assert run(program, mesh, recipe).right


@pytest.mark.parametrize("mesh", ["row=2,col=3", "row=3,col=2", "row=2,col=4", "row=2,col=2"])
@pytest.mark.parametrize("shift", ["", ", direction=-1", ", offset=1"])
def test_cannon_rotates_on_any_grid(mesh, shift):
    """As many parts as the least common multiple of both sides of the grid."""
    recipe = f"parallelize(i, row); parallelize(j, col); shift(k, by=[i, j]{shift})"
    assert run(matmul(), mesh, recipe).right


@pytest.mark.parametrize("shift", SHIFTS[:-1])
@pytest.mark.parametrize("program", [matmul(), attention()], ids=["matmul", "attention"])
@pytest.mark.parametrize("each", [1, 2])
def test_parts_rotate_in_chunks(program, shift, each):
    rows, axis = ("i", "k") if program.name == "matmul" else ("sq", "sk")
    recipe = f"tile({axis}, {3 * each}); parallelize({rows}, gpu); "
    recipe += f"shift({axis}_outer, by={rows}{shift}"
    found = {n: run(program, "gpu=3", f"{recipe}, chunks={n})") for n in (1, 3)}
    assert found[3].right, found[3].errors
    assert found[3].report.bytes_sent == found[1].report.bytes_sent
