"""Kernels that a run brings along."""

import threading

import mercury as mc
import numpy as np
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial


def matmul_plan(impl, dtype="f32", strategy="ag-gemm-shifted", ranks=3):
    program = mc.programs.matmul(m=10, n=7, depth=5, dtype=dtype)
    schedule = mc.strategies.get(strategy).schedule(mc.Mesh(gpu=ranks), program)
    return schedule.patch("matmul", impl).compile()


def numpy_matmul(launch):
    a, b = (tile.array for tile in launch.inputs)
    launch.outputs[0].array[...] += a @ b


def test_a_python_kernel_gives_the_result():
    threads = set()

    def kernel(launch):
        threads.add(threading.get_ident())
        assert [tile.dtype for tile in (*launch.inputs, *launch.outputs)] == ["f32"] * 3
        assert launch.parameters == {}
        numpy_matmul(launch)

    result = trial(matmul_plan("mine"), options=SimOptions(kernels={"mine.matmul": kernel}))
    assert result.right
    assert len(threads) == 3  # each rank ran it


@pytest.mark.parametrize("strategy", ["gemm-rs", "gemm-rs-shifted", "row-parallel"])
def test_a_python_kernel_merges_into_what_is_there(strategy):
    plan = matmul_plan("mine", strategy=strategy)
    assert trial(plan, options=SimOptions(kernels={"mine.matmul": numpy_matmul})).right


def test_bfloat16_arrives_as_bits():
    def kernel(launch):
        a, b = ((tile.array.astype(np.uint32) << 16).view(np.float32) for tile in launch.inputs)
        assert [tile.dtype for tile in launch.inputs] == ["bf16", "bf16"]
        # One launch makes all of the result, so it is written in its own type.
        assert launch.outputs[0].dtype == "bf16"
        assert not launch.outputs[0].array.any()
        bits = (a @ b).view(np.uint32)
        launch.outputs[0].array[...] = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16

    plan = matmul_plan("mine", dtype="bf16")
    assert trial(plan, options=SimOptions(kernels={"mine.matmul": kernel})).right


def test_attention_is_told_where_its_tiles_begin():
    seen = []
    program = mc.programs.attention(h=4, group=2, sq=12, sk=12, d=4, dtype="f32", mask="causal")
    schedule = mc.strategies.get("ring").schedule(mc.Mesh(gpu=3), program)
    plan = schedule.patch("attention*", "mine").compile()

    def kernel(launch):
        seen.append((launch.parameters["at_sq"], launch.parameters["at_sk"]))
        assert launch.parameters["scale"] == 0.5
        assert launch.parameters["group"] == 2
        assert launch.parameters["right"] == 0
        assert launch.parameters["left"] >= 12
        assert [tile.array.shape for tile in launch.inputs] == [
            (1, 4, 4, 4),
            (1, 4, 2, 4),
            (1, 4, 2, 4),
        ]

    plan.run(
        plan.scatter(**{name: np.ones(shape) for name, shape in shapes(program)}),
        SimOptions(kernels={"mine.attention_fwd": kernel}),
    )
    assert sorted(seen) == [(q, k) for q in (0, 4, 8) for k in (0, 4, 8)]


def shapes(program):
    return [(buffer.name, buffer.shape) for buffer in program.inputs]


def test_an_exception_ends_the_run_with_its_rank_and_cause():
    plan = matmul_plan("mine", strategy="row-parallel", ranks=1)
    shards = plan.scatter(A=np.ones((10, 5)), B=np.ones((5, 7)))

    def broken(_):
        raise ValueError("no such shape: größer")

    with pytest.raises(mc.RunError) as caught:
        plan.run(shards, SimOptions(kernels={"mine.matmul": broken}))
    assert "rank 0 (gpu=0), after operation 0, kernel 'mine.matmul' failed" in str(caught.value)
    assert "ValueError: no such shape: größer" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    # The plan is as good as before.
    plan.run(shards, SimOptions(kernels={"mine.matmul": numpy_matmul}))


def test_a_kernel_that_nobody_brought_is_named():
    plan = matmul_plan("cublas")
    shards = plan.scatter(A=np.ones((10, 5)), B=np.ones((5, 7)))
    with pytest.raises(mc.RunError, match=r"kernel 'cublas\.matmul': there is no kernel"):
        plan.run(shards)


def test_a_name_without_its_implementation_is_refused():
    plan = matmul_plan("mine")
    shards = plan.scatter(A=np.ones((10, 5)), B=np.ones((5, 7)))
    with pytest.raises(mc.RunError, match=r"a name such as 'mine\.matmul'"):
        plan.run(shards, SimOptions(kernels={"matmul": numpy_matmul}))


def has_torch():
    try:
        import torch  # noqa: F401, PLC0415
    except ImportError:
        return False
    return True


@pytest.mark.skipif(has_torch(), reason="PyTorch is there")
def test_torch_that_is_not_there_is_said():
    plan = matmul_plan("torch")
    shards = plan.scatter(A=np.ones((10, 5)), B=np.ones((5, 7)))
    with pytest.raises(mc.RunError, match="RuntimeError: a kernel is patched with 'torch' but"):
        plan.run(shards)


@pytest.mark.skipif(not has_torch(), reason="needs PyTorch")
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("strategy", ["ag-gemm-shifted", "gemm-rs-shifted", "row-parallel"])
def test_torch_matmul(strategy, dtype):
    assert trial(matmul_plan("torch", dtype, strategy)).right


@pytest.mark.skipif(not has_torch(), reason="needs PyTorch")
@pytest.mark.parametrize("mask", [None, "causal", mc.window(3, 2)])
@pytest.mark.parametrize("ranks", [1, 3, 5])
@pytest.mark.parametrize(
    "strategy", ["ring", "context-parallel", "shifted-reduction", "ulysses"]
)
def test_torch_attention(strategy, ranks, mask):
    # With 5 ranks some have no key.
    sizes = {"b": 2, "h": 10, "group": 2, "sq": 11, "sk": 4, "d": 8, "dv": 5}
    program = mc.programs.attention(mask=mask, dtype="f32", **sizes)
    schedule = mc.strategies.get(strategy).schedule(mc.Mesh(gpu=ranks), program)
    assert trial(schedule.patch("attention*", "torch").compile()).right
