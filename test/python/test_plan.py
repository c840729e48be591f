"""Plans as values, and the data that they take."""

import mercury as mc
import numpy as np
import pytest
from mercury.runtime import dtypes


@pytest.fixture(scope="module")
def plan():
    program = mc.programs.matmul(m=10, n=7, depth=5, dtype="f32")
    return mc.strategies.get("ag-gemm-shifted").schedule(mc.Mesh(gpu=3), program).compile()


def given(plan):
    return {b.name: np.ones(b.shape, np.float32) for b in plan.program.inputs}


def test_layout_says_who_owns_which_rows(plan):
    layout = plan.layout("A")
    assert [layout.indices(rank)[0].tolist() for rank in range(3)] == [
        [0, 1, 2, 3],
        [4, 5, 6],
        [7, 8, 9],
    ]
    assert layout.shape(1) == (3, 5)
    assert plan.layout("C").positions(2, "j").tolist() == [5, 6]
    with pytest.raises(mc.RunError, match="no axis 'j'"):
        layout.positions(0, "j")
    with pytest.raises(mc.RunError, match="no buffer 'Z'; it has A, B, C"):
        plan.layout("Z")


@pytest.mark.parametrize("layout", ["block", "zigzag", "striped(2)", "bounds[0, 1, 6, 11]"])
def test_permutation_and_inverse(layout):
    program = mc.programs.attention(h=1, sq=11, sk=4, d=2, dtype="f32", layout={"sq": layout})
    plan = mc.Schedule(program, mc.Mesh(gpu=3)).parallelize("sq", "gpu").compile()
    owned = plan.layout("Q")
    permutation, inverse = owned.permutation("sq"), owned.inverse("sq")
    whole = np.random.default_rng(0).standard_normal((1, 11, 1, 2))
    shards = owned.scatter(whole)
    joined = np.concatenate(shards, axis=1)
    np.testing.assert_array_equal(whole[:, permutation], joined)
    np.testing.assert_array_equal(joined[:, inverse], whole)
    np.testing.assert_array_equal(owned.gather(shards), whole)


def test_data_that_does_not_fit_is_refused(plan):
    with pytest.raises(mc.RunError, match="expected the inputs A, B, got A"):
        plan.scatter(A=np.ones((10, 5)))
    with pytest.raises(mc.RunError, match=r"has shape \(10, 5\), got \(5, 10\)"):
        plan.scatter(A=np.ones((5, 10)), B=np.ones((5, 7)))
    shards = plan.scatter(**given(plan))
    with pytest.raises(mc.RunError, match="has 3 ranks, got 2 shards"):
        plan.run(shards[:2])
    shards[1]["A"] = shards[1]["A"].astype(np.float64)
    with pytest.raises(mc.RunError, match="'A' on rank 1 must be a contiguous array of shape"):
        plan.run(shards)
    shards[1]["A"] = np.ones((5, 3), np.float32).T
    with pytest.raises(mc.RunError, match="not contiguous"):
        plan.run(shards)
    with pytest.raises(mc.RunError, match="has 3 shards, one a rank, got 2"):
        plan.layout("C").gather([np.ones((1, 1))] * 2)
    with pytest.raises(mc.RunError, match="on rank 0 has shape"):
        plan.layout("C").gather([np.ones((1, 1))] * 3)


def test_two_plans_live_in_one_process(plan):
    program = mc.programs.matmul(m=4, n=7, depth=5, dtype="f64")
    other = mc.Schedule(program, mc.Mesh(gpu=2)).parallelize("i", "gpu").compile()
    assert np.allclose(other.gather(other.run(other.scatter(**given(other)))), 5)
    assert np.allclose(plan.gather(plan.run(plan.scatter(**given(plan)))), 5)


def test_the_text_of_a_plan_does_not_grow_with_the_ranks():
    sizes = set()
    for ranks in (4, 16, 64):
        program = mc.programs.attention(h=2, sq=640, sk=640, d=16, dtype="f32")
        plan = mc.strategies.get("ring").schedule(mc.Mesh(gpu=ranks), program).compile()
        sizes.add(len(plan.spmd.splitlines()))
    assert max(sizes) - min(sizes) <= 2, sizes


def test_bfloat16_rounds_to_nearest_even():
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -2.5, np.inf, -np.inf, np.nan, 3e38])
    rounded = dtypes.decode(dtypes.encode(values, "bf16"), "bf16")
    assert rounded[:6].tolist() == [1.0, 1.0, 1 + 2**-6, -2.5, np.inf, -np.inf]
    assert np.isnan(rounded[6])
    assert dtypes.encode(np.array([5], np.uint16), "bf16").tolist() == [5]


def test_gather_wants_each_output_of_each_rank(plan):
    with pytest.raises(mc.RunError, match="the outputs C of rank 1"):
        plan.gather([{"C": np.zeros((1, 7))}, {}, {}])
