"""The shipped programs: named products, and what kernels work in."""

import mercury as mc
import pytest
from program_checks import check

# --- Named products -----------------------------------------------------------------


@pytest.mark.parametrize("mesh", [mc.Mesh(gpu=3), mc.Mesh(node=2, gpu=2)])
def test_named_products_have_the_boundary_that_makes_them(mesh):
    sizes = {"m": 13, "n": 9, "depth": 11, "dtype": "bf16"}
    levels = "[" + ", ".join(mesh.names) + "]"
    for program, recipe, buffer in (
        (mc.programs.ag_gemm(**sizes), f"parallelize(j, {levels}); shard(A, i, {levels})", "A"),
        (mc.programs.gemm_rs(**sizes), f"parallelize(k, {levels}); shard(C, i, {levels})", "C"),
    ):
        schedule = mc.Schedule(program, mesh).apply(recipe)
        check(schedule)
        plan = schedule.compile()
        rows = [plan.layout(buffer).shape(rank)[0] for rank in range(mesh.size)]
        assert sum(rows) == 13
        assert max(rows) - min(rows) <= 1
        check(mc.strategies.get(program.name.replace("_", "-")).schedule(mesh, program))


def test_a_product_is_resharded_to_its_boundary_by_any_schedule():
    program = mc.programs.ag_gemm(m=12, n=7, depth=9, dtype="f32")
    # Rows are gathered, or moved to columns.
    for recipe in ("parallelize(j, gpu)", "parallelize(i, gpu)", "parallelize(k, gpu)"):
        check(mc.Schedule(program, mc.Mesh(gpu=3)).apply(recipe))
    # A boundary that is given wins.
    schedule = mc.Schedule(program, mc.Mesh(gpu=3), {"A": {"k": "gpu"}})
    assert schedule.compile().layout("A").shape(0) == (12, 3)


def test_a_cut_is_along_an_axis_of_its_buffer():
    @mc.program
    def wrong(p):
        i, j = p.axes(i=4, j=4)
        p.input("A", (i, 3), "f32", cut=j)

    with pytest.raises(
        mc.ProgramError, match="'A' is to be cut along 'j', which is no axis of"
    ):
        wrong()


# --- Memory -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "elements"),
    [
        (mc.programs.attention, 64 * (2 * 24 + 2 * 64)),
        (mc.programs.attention_backward, 64 * (24 + 20 + 2 * 64 + 64 + 128)),
    ],
)
def test_what_kernels_work_in_has_its_place_in_the_arena(program, elements):
    sizes = {"h": 2, "sq": 9, "sk": 11, "d": 24, "dv": 20}
    for dtype, width in (("f32", 4), ("f64", 8)):
        plan = mc.Schedule(program(dtype=dtype, **sizes), mc.Mesh(gpu=1)).compile()
        # One device needs no other memory, and compiled code has no allocator to call.
        assert plan.arena_bytes == elements * width
        assert "memref.alloc" not in plan.spmd
