"""Programs as users write them, and what they are told when they are wrong."""

import re

import mercury as mc
import numpy as np
import pytest
from mercury.dsl import ProgramBuilder
from mercury.runtime.trial import trial


def line_of(text):
    """The number of the line of this file that holds ``text``, told once."""
    with open(__file__, encoding="utf-8") as file:
        found = [i for i, line in enumerate(file, 1) if text in line and "line_of(" not in line]
    return found[0]


@mc.program
def scaled(p: ProgramBuilder, n=8, depth=4):
    i, k = p.axes(i=n, k=depth)
    a, b = p.input("A", (i, k), "f32"), p.input("B", (k, 3), "f32")
    c = p.output("C", (i, 3), "f32")
    with p.loops(i):
        c[i, :] = p.reduce(k, merge="sum", body=lambda: p.matmul(a[i, k], b[k, :]))  # body


def test_every_op_carries_the_line_of_the_user():
    module = scaled(n=5).build(mc.Mesh(gpu=2))
    text = module.operation.get_asm(enable_debug_info=True, pretty_debug_info=True)
    line = line_of("# body")
    for op in ("commir.load", "commir.kernel", "commir.store"):
        where = re.findall(rf"{op}.*?\[?\"?([^\[\]\"]*):(\d+):", text)
        assert where, op
        assert all(int(at) == line and file.endswith("test_program.py") for file, at in where)


def test_the_parameters_make_the_program():
    assert scaled(n=5).buffers[0].shape == (5, 4)
    assert "axes(i = 7, k = 4)" in str(scaled(n=7).build(mc.Mesh(gpu=2)))
    with pytest.raises(mc.ProgramError, match=r"no parameter.*'size'.*it has.*'n', 'depth'"):
        scaled(size=3)


def test_two_programs_do_not_know_of_each_other():
    first = mc.Schedule(scaled(n=5), mc.Mesh(gpu=2)).parallelize("i", "gpu")
    second = mc.Schedule(scaled(n=5), mc.Mesh(gpu=3))
    assert "parallel" in first.ir()
    assert "parallel" not in second.ir()


def build(body, **extents):
    """A program of one function, built on two ranks."""
    extents = extents or {"i": 4, "j": 4}

    @mc.program
    def made(p):
        body(p, *p.axes(**extents))

    return made().build(mc.Mesh(gpu=2))


def copy_rows(p, i, j):
    a, c = p.input("A", (i, j), "f32"), p.output("C", (i, j), "f32")
    with p.loops(i, j):
        (c[i, j],) = p.kernel("copy", a[i, j], results=[(i, j)], signature="m n -> m n")


def test_a_correct_program_builds():
    assert "signature" in str(build(copy_rows))


def wrong_index(p, i, j):
    a = p.input("A", (i, j), "f32")
    with p.loops(i, j):
        a[j, i]


def constant_by_axis(p, i, j):
    a = p.input("A", (i, 16), "f32")
    with p.loops(i, j):
        a[i, j]


def outside_loops(p, i, j):
    p.input("A", (i, j), "f32")[i, j]


def nested(p, i, j):
    with p.loops(i), p.loops(j):
        pass


def foreign_axis(p, i, j):
    other = ProgramBuilder("other").axes(z=3)[0]
    p.input("A", (i, other), "f32")


def dtype(p, i, j):
    p.input("A", (i, j), "float32")


def axis_twice(p, i, j):
    p.axes(i=5)


def negative(p, i, j):
    p.axes(z=-1)


def buffer_twice(p, i, j):
    p.input("A", (i,), "f32")
    p.output("A", (i,), "f32")


def read_output(p, i, j):
    c = p.output("C", (i, j), "f32")
    with p.loops(i, j):
        c[i, j]


def store_to_input(p, i, j):
    a = p.input("A", (i, j), "f32")
    with p.loops(i, j):
        a[i, j] = a[i, j]


def store_other_shape(p, i, j):
    a, c = p.input("A", (i, j), "f32"), p.output("C", (j, i), "f32")
    with p.loops(i, j):
        c[j, i] = a[i, j]


def divisor(p, i, j):
    i / 3


def half_a_pair(p, i, j):
    q, o = p.input("Q", (i, j, 1, 2), "f32"), p.output("O", (i, j, 1, 2), "f32")
    with p.loops(i, j):
        pair = p.merged(
            p.attention(q[i, j, :, :], q[i, j, :, :], q[i, j, :, :], scale=1.0),
            over=(),
            merge="softmax",
        )
        o[i, j, :, :] = pair[0]


def mask_name(p, i, j):
    q = p.input("Q", (i, j, 1, 2), "f32")
    with p.loops(i, j):
        p.attention(q[...], q[...], q[...], scale=1.0, mask="triangular")


def a_batch_of_products(p, i, j):
    a, b = p.input("A", (i, j, 4), "f32"), p.input("B", (i, 4, j), "f32")
    with p.loops(i, j):
        p.matmul(a[...], b[...])


def product_of_strangers(p, i, j):
    a, b = p.input("A", (i, j), "f32"), p.input("B", (i, j), "f32")
    with p.loops(i, j):
        p.matmul(a[...], b[...])


def attention_without_batch(p, i, j):
    q, k = p.input("Q", (i, 2, 8), "f32"), p.input("K", (j, 2, 8), "f32")
    with p.loops(i, j):
        p.attention(q[...], k[...], k[...], scale=1.0)


def unused_result(p, i, j):
    a = p.input("A", (i, j), "f32")
    c = p.output("C", (i, j), "f32")
    with p.loops(i, j):
        p.kernel("k", a[i, j], results=[(i, j)], signature="m n -> m n")
        (c[i, j],) = p.kernel("k", a[i, j], results=[(i, j)], signature="m n -> m n")


def part_of_a_constant(p, i, j):
    with p.loops(i, j):
        p.input("A", (i, 16), "f32")[i, 0:3]


def number_for_a_constant(p, i, j):
    with p.loops(i, j):
        p.input("A", (i, 16), "f32")[i, 16]


def two_ellipses(p, i, j):
    with p.loops(i, j):
        p.input("A", (i, 16), "f32")[..., ...]


def axis_looped_twice(p, i, j):
    with p.loops(i, j, i):
        pass


def axis_of_nobody(p, i, j):
    with p.loops(i, ProgramBuilder("other").axes(z=3)[0]):
        pass


def no_output(p, i, j):
    p.input("A", (i, j), "f32")


def reduced_over_nothing(p, i, j):
    a, b = p.input("A", (i, 4), "f32"), p.input("B", (4, 3), "f32")
    c = p.output("C", (i, 3), "f32")
    with p.loops(i):
        c[i, :] = p.reduce(j, merge="sum", body=lambda: p.matmul(a[i, :], b[:, :]))


def one_axis_twice(p, i, j):
    # Queries and keys over one axis: a cut would take keys from queries of other parts.
    q, o = p.input("Q", (j, i, 1, 2), "f32"), p.output("O", (j, i, 1, 2), "f32")
    lse = p.output("L", (j, 1, i), "f32")
    with p.loops(i, j):
        o[...], lse[...] = p.attention(q[...], q[...], q[...], scale=1.0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (wrong_index, r"buffer A\[i, j\] is indexed as A\[j, i\]; index each dimension"),
        (constant_by_axis, r"buffer A\[i, 16\] is indexed as A\[i, j\].*constant ones by ':'"),
        (outside_loops, "inside 'with p.loops"),
        (nested, "cannot stand inside another; use p.reduce"),
        (foreign_axis, "uses axis 'z', which is no axis of program 'made'; its axes are i, j"),
        (dtype, "must be one of bf16, f16, f32, f64, got 'float32'"),
        (axis_twice, "has an axis 'i' already"),
        (negative, r"must be a whole number from 0 to 2\*\*63 - 1, got -1"),
        (buffer_twice, "has a buffer 'A' already"),
        (read_output, "output 'C' cannot be read"),
        (store_to_input, "input 'A' cannot be stored to"),
        (store_other_shape, r"dims \[i, j\] cannot be stored to buffer C\[j, i\]"),
        (divisor, "extent 4 cannot be divided by 3"),
        (half_a_pair, "gives 2 results, and 1 of them are stored"),
        (mask_name, "expected a mask, 'full' or 'causal', got 'triangular'"),
        (
            a_batch_of_products,
            r"takes .*\[m, k\] x \[k, n\], got \[i, j, 4\] x \[i, 4, j\].*signature",
        ),
        (product_of_strangers, r"\[m, k\] x \[k, n\], got \[i, j\] x \[i, j\]"),
        (attention_without_batch, r"\[b, sq, h, d\] x .*, got \[i, 2, 8\] x \[j, 2, 8\]"),
        (unused_result, "results of kernel 'k' are not used"),
        (part_of_a_constant, r"buffer A\[i, 16\] is indexed as A\[i, :\]|constant ones by ':'"),
        (number_for_a_constant, "constant ones by ':'"),
        (two_ellipses, "indexed as A"),
        (axis_looped_twice, "a loop over axis 'i' already"),
        (axis_of_nobody, "'z' is no axis of program 'made'; its axes are i, j"),
        (no_output, "has no output; declare one with p.output"),
        (reduced_over_nothing, "a reduced axis must be a dimension of a loaded buffer, 'j'"),
        (one_axis_twice, "must not run over one axis, 'i'; declare an axis for each"),
    ],
)
def test_a_wrong_program_says_what_is_wrong(body, message):
    with pytest.raises(mc.ProgramError, match=message):
        build(body)


def test_an_unknown_layout_is_named():
    with pytest.raises(mc.ProgramError, match=r"'i' must be block, .*, got 'spiral'"):
        mc.programs.matmul(m=4, layout={"i": "spiral"})


def test_a_compiler_error_has_the_python_line():
    def unknown_kernel(p, i, j):
        a, c = p.input("A", (i, j), "f32"), p.output("C", (i, j), "f32")
        with p.loops(i, j):
            (c[i, j],) = p.kernel("nothing", a[i, j], results=[(i, j)])  # unknown kernel

    with pytest.raises(mc.ProgramError, match="known or give a signature") as caught:
        build(unknown_kernel)
    where = f"test_program.py:{line_of('# unknown kernel')}"
    assert caught.value.location.endswith(where)


@pytest.mark.parametrize(
    ("boundary", "message"),
    [
        ({"Z": {"i": "gpu"}}, "boundary is given for 'Z', which is no buffer"),
        ({"A": {"z": "gpu"}}, "must cut axes of its buffer.*'z' is none"),
        ({"A": {"i": "node"}}, r"must name levels of the mesh \('gpu'\), got 'node'"),
        ({"A": {"i": "gpu", "k": "gpu"}}, "must not use a level for two cuts"),
    ],
)
def test_a_wrong_boundary_says_what_is_wrong(boundary, message):
    with pytest.raises(mc.ProgramError, match=message):
        mc.Schedule(scaled(), mc.Mesh(gpu=2), boundary)


def test_meshes():
    assert mc.Mesh.parse("node=2,gpu=4") == mc.Mesh(node=2, gpu=4)
    assert mc.Mesh(node=2, gpu=4).coordinates(7) == {"node": 1, "gpu": 3}
    for wrong in ("", "gpu", "gpu=x", "gpu=0", "4", "gpu=2,gpu=3", "gpu=²"):
        with pytest.raises(mc.ProgramError):
            mc.Mesh.parse(wrong)
    with pytest.raises(mc.ProgramError, match="must be at least 1, got 0"):
        mc.Mesh(gpu=0)
    with pytest.raises(mc.ProgramError, match="at least one level"):
        mc.Mesh()
    with pytest.raises(mc.ProgramError, match="no level 'node'"):
        mc.Mesh(gpu=2)["node"]


@pytest.mark.parametrize(
    "mask", [mc.full(), mc.causal(), mc.causal(3), mc.window(4), mc.window(2, 1)]
)
def test_masks_say_which_pairs_they_allow(mask):
    table = mask.allowed(6, 9)
    for i in range(6):
        for j in range(9):
            left = mask.left is None or j - i >= -mask.left
            assert table[i, j] == (left and (mask.right is None or j - i <= mask.right))


def test_documents_restrict_a_mask():
    table = mc.causal().packed([0, 2, 5]).allowed(5, 5)
    assert table.sum() == 3 + 6
    assert not table[2, 1]


def test_two_nests_over_one_axis():
    @mc.program
    def mesh(p, n=9):
        (i,) = p.axes(i=n)
        a, b = p.input("A", (i, 4), "f32"), p.input("B", (4, 3), "f32")
        c, d = p.output("C", (i, 3), "f32"), p.output("D", (i, 3), "f32")
        for out in (c, d):
            with p.loops(i):
                out[i, :] = p.matmul(a[i, :], b[:, :])

    schedule = mc.Schedule(mesh(), mc.Mesh(gpu=2))
    schedule.parallelize("i", "gpu").parallelize("i_", "gpu")
    assert trial(schedule.compile()).right


def test_a_shared_position_is_not_counted_twice():
    @mc.program
    def halves(p, rows=8):
        i, j, k = p.axes(i=rows, j=4, k=4)
        a, b = p.input("A", (i / 2, k), "f32"), p.input("B", (k, j), "f32")
        c = p.output("C", (i / 2, j), "f32")
        with p.loops(i, j):
            c[i / 2, j] = p.reduce(k, merge="sum", body=lambda: p.matmul(a[i / 2, k], b[k, j]))

    assert trial(mc.Schedule(halves(), mc.Mesh(gpu=3)).parallelize("j", "gpu").compile()).right
    # Two parts of 4 rows share none of i/2, three parts of 8 rows do.
    assert trial(mc.Schedule(halves(), mc.Mesh(gpu=2)).tile("i", 2).compile()).right
    with pytest.raises(mc.CompileError, match="'i' is cut within the groups of 'i/2'"):
        mc.Schedule(halves(), mc.Mesh(gpu=3)).tile("i", 3).compile()


def test_names_that_are_no_identifiers_of_python():
    @mc.program
    def odd(p):
        axes = p.axes(**{"λ": 6, "for": 5, "true": 4})
        rows, columns, depth = axes
        a, b = p.input("é", (rows, depth), "f32"), p.input("in", (depth, columns), "f32")
        c = p.output("class", (rows, columns), "f32")
        with p.loops(rows, columns):
            c[rows, columns] = p.reduce(
                depth, merge="sum", body=lambda: p.matmul(a[rows, depth], b[depth, columns])
            )

    schedule = mc.Schedule(odd(), mc.Mesh(**{"lambda": 2}))
    schedule.parallelize("for", "lambda").shift("λ", by="for").shard("in", "true", "lambda")
    again = mc.Schedule(odd(), mc.Mesh(**{"lambda": 2})).apply(schedule.recipe())
    assert again.ir() == schedule.ir()
    assert str(mc.Schedule(odd(), mc.Mesh(**{"lambda": 2})).apply(str(schedule))) == str(
        schedule
    )


@pytest.mark.parametrize("boundary", [3, {"A": "gpu"}, {"A": {"i": 3}}])
def test_a_boundary_of_another_form_is_refused(boundary):
    with pytest.raises(mc.ProgramError, match=r"levels that its axes are cut over, as \{'Q'"):
        mc.Schedule(mc.programs.matmul(m=4, n=4, depth=4), mc.Mesh(gpu=2), boundary)


def test_sizes_may_be_numpy_integers():
    assert mc.programs.matmul(m=np.int64(3), n=4, depth=4).axes[0].extent == 3
    assert mc.Mesh(gpu=np.int32(2)) == mc.Mesh(gpu=2)
