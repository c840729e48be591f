"""Operators on whole tensors: what they compute, and what they refuse."""

import sys
import threading
from types import SimpleNamespace

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.ops import OpError, Plans
from mercury.ops.plans import AttentionShape
from mercury.tuner import SpaceOptions, Style

TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}
RING = "parallelize(sq, gpu); shift(sk, by=sq)"


def tensors(b=1, sq=13, sk=11, h=4, hk=2, d=8, dv=6, dtype=np.float32):
    draw = np.random.default_rng(3).standard_normal
    return tuple(
        draw(s).astype(dtype) for s in ((b, sq, h, d), (b, sk, hk, d), (b, sk, hk, dv))
    )


def ring(**settings):
    shape = {"h": 4, "group": 2, "sq": 13, "sk": 11, "d": 8, "dv": 6, "dtype": "f32"}
    program = mc.programs.attention(**shape | settings)
    return mc.Schedule(program, mc.Mesh(gpu=3), TOKENS).apply(RING).compile()


def wide(*arrays):
    return [np.asarray(array, np.float64) for array in arrays]


# -- what it computes ---------------------------------------------------------


@pytest.mark.parametrize("mask", ["full", "causal", mc.window(3, 2), mc.causal(-4)])
def test_it_is_attention_of_whole_tensors(mask):
    """Uneven shards on 3 ranks; with causal(-4) some queries see no key."""
    q, k, v = tensors(b=2)
    o, lse = mc.ops.attention(q, k, v, plan=ring(b=2, mask=mask), lse=True)
    wanted, sums = reference.attention(*wide(q, k, v), mask=mask)
    assert o.dtype == np.float32
    assert o.shape == (2, 13, 4, 6)
    np.testing.assert_allclose(o, wanted, atol=2e-6)
    np.testing.assert_allclose(lse, sums, atol=2e-6)
    np.testing.assert_array_equal(mc.ops.attention(q, k, v, plan=ring(b=2, mask=mask)), o)


def test_types_come_back_as_they_went_in():
    for dtype, name, limit in ((np.float64, "f64", 1e-12), (np.float16, "f16", 2e-3)):
        q, k, v = tensors(dtype=dtype)
        o = mc.ops.attention(q, k, v, plan=ring(dtype=name))
        assert o.dtype == dtype
        np.testing.assert_allclose(o, reference.attention(*wide(q, k, v))[0], atol=limit)
    # bfloat16 travels as its bits: the upper half of a float32.
    singles = [np.asarray(array.view(np.uint32) >> 16, np.uint16) for array in tensors()]
    o = mc.ops.attention(*singles, plan=ring(dtype="bf16"))
    assert o.dtype == np.uint16
    cut = [(array.astype(np.uint32) << 16).view(np.float32) for array in singles]
    np.testing.assert_allclose(
        (o.astype(np.uint32) << 16).view(np.float32),
        reference.attention(*wide(*cut))[0],
        atol=2e-2,
    )


def test_tensors_of_pytorch_come_back_as_such():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(array) for array in tensors())
    for dtype, name, limit in ((torch.float32, "f32", 2e-6), (torch.bfloat16, "bf16", 2e-2)):
        given = [each.to(dtype) for each in (q, k, v)]
        o, lse = mc.ops.attention(*given, plan=ring(dtype=name), lse=True)
        assert (o.dtype, lse.dtype) == (dtype, torch.float32)
        wanted = reference.attention(*wide(*(each.float().numpy() for each in given)))
        np.testing.assert_allclose(o.float().numpy(), wanted[0], atol=limit)
        np.testing.assert_allclose(lse.numpy(), wanted[1], atol=limit)
    with pytest.raises(OpError, match=r"wants a gradient.*torch\.no_grad"):
        mc.ops.attention(q.requires_grad_(), k, v, plan=ring())
    with torch.no_grad():
        assert mc.ops.attention(q, k, v, plan=ring()).shape == (1, 13, 4, 6)


# -- plans for shapes as they come --------------------------------------------


def test_plans_tune_each_shape_once_and_keep_it():
    plans = Plans(
        "h100-3x1",
        boundary=TOKENS,
        options=SpaceOptions(max_levels=1, styles=(Style(),)),
        cache=False,
        top=1,
    )
    for length in (13, 7, 13):
        q, k, v = tensors(sq=length)
        o = mc.ops.attention(q, k, v, plan=plans, mask="causal")
        wanted, _ = reference.attention(*wide(q, k, v), mask="causal")
        np.testing.assert_allclose(o, wanted, atol=2e-6)
    assert len(plans) == len(plans.results) == 2
    recipes = [found.chosen.recipe for found in plans.results.values()]
    assert all("parallelize" in recipe for recipe in recipes)
    # Another mask is another plan; a recipe is not tuned.
    given = Plans("h100-3x1", boundary=TOKENS, recipe=RING)
    o = mc.ops.attention(q, k, v, plan=given, mask="full", scale=0.5)
    np.testing.assert_allclose(o, reference.attention(*wide(q, k, v), scale=0.5)[0], atol=2e-6)
    assert given.results == {}
    with pytest.raises(OpError, match="a recipe is taken as it is, and top"):
        Plans("h100-3x1", recipe=RING, top=2)


def test_threads_that_want_one_shape_get_one_plan():
    plans = Plans("h100-3x1", boundary=TOKENS, recipe=RING)
    shape = AttentionShape(b=1, sq=5, sk=5, h=2, d=4, dv=4, group=1, dtype="f32")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(plans.attention(shape))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    assert len({id(plan) for plan in found}) == len(plans) == 1


# -- what it refuses ----------------------------------------------------------


def test_a_plan_of_another_shape_says_both_and_the_remedy():
    q, k, v = tensors(sq=14)
    with pytest.raises(OpError) as caught:
        mc.ops.attention(q, k, v, plan=ring())
    for part in ("takes Q[1, 13, 4, 8]", "got Q[1, 14, 4, 8]", "mercury.ops.Plans"):
        assert part in caught.value.message
    q, k, v = tensors(dtype=np.float64)
    with pytest.raises(OpError, match=r"of f32, got .* of f64"):
        mc.ops.attention(q, k, v, plan=ring())


def test_options_that_the_plan_does_not_have_are_refused():
    q, k, v = tensors()
    plan = ring(mask="causal")
    mc.ops.attention(q, k, v, plan=plan, mask="causal", scale=1 / np.sqrt(8))
    with pytest.raises(OpError, match="this one has 'causal', asked for was 'full'"):
        mc.ops.attention(q, k, v, plan=plan, mask="full")
    with pytest.raises(OpError, match="the scale belongs to the plan"):
        mc.ops.attention(q, k, v, plan=plan, scale=1.0)


def test_tensors_that_do_not_fit_are_refused():
    q, k, v = tensors()
    for given, message in (
        ((q[0], k, v), r"\[batch, positions, heads, depth\], got shape \(13, 4, 8\)"),
        ((q, k[:, :5], v), "with hk dividing h, got"),
        ((q[:, :, :3], k, v), "with hk dividing h, got"),
        ((q, k.astype(np.float64), v), "must be of one type, got .*'k': 'f64'"),
        ((q.astype(np.int32), k, v), "q must be of float16, .* got int32"),
        ((q.tolist(), k, v), "q must be a NumPy array or a PyTorch tensor, got list"),
    ):
        with pytest.raises(OpError, match=message):
            mc.ops.attention(*given, plan=ring())


def test_other_things_than_plans_of_attention_are_refused():
    q, k, v = tensors()
    other = mc.Schedule(mc.programs.matmul(m=4, n=4, depth=4), mc.Mesh(gpu=2))
    plan = other.parallelize("i", "gpu").compile()
    with pytest.raises(OpError, match="this plan is of matmul with inputs A, B"):
        mc.ops.attention(q, k, v, plan=plan)
    with pytest.raises(OpError, match=r"a schedule is compiled by schedule\.compile"):
        mc.ops.attention(q, k, v, plan=other)
    with pytest.raises(OpError, match="without a sink"):
        mc.ops.attention(q, k, v, plan=ring(sink=True))


def test_tensors_of_a_device_are_refused_without_importing_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    kind = type("Tensor", (SimpleNamespace,), {"__module__": "torch"})
    q, k, v = (
        kind(
            shape=each.shape, ndim=4, dtype="torch.float32", device=SimpleNamespace(type="cuda")
        )
        for each in tensors()
    )
    with pytest.raises(OpError, match=r"embedded ranks take tensors of the CPU: q\.cpu\(\)"):
        mc.ops.attention(q, k, v, plan=ring())
