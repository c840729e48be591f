"""What the matrix calls right, and that it has every pair."""

import itertools

import mercury as mc
import numpy as np
import pytest
from matrix import ULP, VALUES, accepts, fits
from mercury import reference
from pairs import covering, pairs_of


@pytest.mark.parametrize("dtype", list(ULP))
def test_a_zero_output_is_wrong(dtype):
    whole = np.random.default_rng(0).standard_normal((40, 30))
    assert not accepts(reference.relative_error(np.zeros_like(whole), whole), ULP[dtype], dtype)
    assert not accepts(float("nan"), ULP[dtype], dtype)
    assert not accepts(float("inf"), ULP[dtype], dtype)


@pytest.mark.parametrize("dtype", list(ULP))
@pytest.mark.parametrize("tiles", [2, 8, 64])
def test_one_lost_tile_is_wrong(dtype, tiles):
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, 128, 2, 8)) for _ in range(3))
    whole, _ = reference.attention(q, k, v)
    size = 128 // tiles
    for tile in range(0, 128, size):
        keep = np.r_[0:tile, tile + size : 128]
        lost, _ = reference.attention(q, k[:, keep], v[:, keep])
        # One rank is as far from float64 as rounding its result makes it.
        assert not accepts(reference.relative_error(lost, whole), ULP[dtype], dtype)
        unwritten = whole.copy()
        unwritten[:, tile : tile + size] = 0
        assert not accepts(reference.relative_error(unwritten, whole), ULP[dtype], dtype)


def test_rounding_is_right():
    assert accepts(1.2 * ULP["bf16"], ULP["bf16"], "bf16")
    assert accepts(ULP["f64"], 0.0, "f64")
    assert not accepts(3 * ULP["f32"], ULP["f32"], "f32")


def test_the_cases_have_every_pair_that_has_a_meaning():
    values = VALUES | {"length": ["0", "1", "7", "65"]}
    cases, possible = covering(values, fits, seed=3)
    assert all(fits(case) for case in cases)
    assert set().union(*map(pairs_of, cases)) == possible
    # Brute force for two parameters, of which not all pairs have a meaning.
    for one, other in itertools.combinations(values, 2):
        for a, b in itertools.product(values[one], values[other]):
            pair = tuple(sorted(((one, a), (other, b))))
            if fits(dict(pair)):
                continue
            assert pair not in possible
    assert len(cases) < 600


def test_chunks_that_a_layout_cannot_be_cut_into_are_refused():
    bounds = "bounds[0, 1, 7, 16, 28, 44, 64]"
    program = mc.programs.attention(h=3, sq=64, sk=64, d=2, layout={"sq": bounds, "sk": bounds})
    schedule = mc.Schedule(program, mc.Mesh(node=2, gpu=3)).parallelize("sq", "node")
    with pytest.raises(mc.ScheduleError, match="must fit its layout: bounds name 6 shards"):
        schedule.shift("sk", by="sq", reads="pull", chunks=2)
