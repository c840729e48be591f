"""Why a plan was chosen, in sentences that its figures bear out."""

from dataclasses import replace

import mercury as mc
import pytest
from mercury.tuner import SpaceOptions, Style
from mercury.tuner.verdict import why

TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}


@pytest.fixture(scope="module")
def found():
    return mc.tune(
        mc.programs.attention(h=2, sq=512, sk=512, d=128, dtype="bf16"),
        mc.Mesh(gpu=4),
        topology="h100-4x1",
        boundary=TOKENS,
        options=SpaceOptions(styles=(Style(),), max_levels=1),
        cache=False,
    )


def sped(choice, factor):
    costs = replace(choice.costs, latency=choice.costs.latency * factor)
    return replace(choice, costs=costs, fingerprint=f"{choice.fingerprint}*{factor}")


def test_it_compares_with_plain_library_calls_and_the_runner_up(found):
    plain, second = sped(found.chosen, 2.0), sped(found.chosen, 1.25)
    said = " ".join(why(replace(found, plain=plain, runner_up=second)))
    assert "Plain library calls would take 2.00 times as long" in said
    assert "The runner-up would take 1.25 times as long" in said
    assert f"may be off by {found.chosen.costs.error:.0%}" in said
    same = why(replace(found, plain=found.chosen, runner_up=None))
    assert any("itself plain library calls, which nothing beats" in each for each in same)
    equal = " ".join(why(replace(found, plain=sped(found.chosen, 1.001))))
    assert "Plain library calls would be as fast" in equal


def test_it_names_the_leanest_plan_when_that_is_another(found):
    lean = replace(sped(found.chosen, 3.0), peak_bytes=found.chosen.peak_bytes // 2)
    said = " ".join(why(replace(found, pareto=(found.chosen, lean))))
    assert "The leanest plan needs" in said
    assert "takes 3.00 times as long" in said
    alone = why(replace(found, pareto=(found.chosen,), plain=None, runner_up=None))
    assert not any("leanest" in each for each in alone)


def test_measured_figures_are_called_so(found):
    assert "measured" in " ".join(why(replace(found, measured=True)))
    assert "measured" not in " ".join(why(found))
