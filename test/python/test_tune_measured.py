"""A search whose best plans are measured: what was measured decides."""

import json
from dataclasses import replace

import mercury as mc
import pytest
from mercury.bench import tuning
from mercury.bench.errors import BenchError
from mercury.errors import MercuryError
from mercury.tuner import Cache, SpaceOptions, TuneError, TuneResult

SIZES = {"m": 64, "n": 48, "depth": 32}


def tune(measure, **more):
    settings = {"topology": "h200-2x1", "cache": False, "target": "cuda"} | more
    return mc.tune(mc.programs.matmul(**SIZES), measure=measure, **settings)


def by_recipe(times, asked=None):
    """Measure by a table; what is not in it takes a second."""

    def measure(schedules):
        recipes = [schedule.recipe() for schedule in schedules]
        if asked is not None:
            asked.extend(recipes)
        return [times.get(recipe, 1.0) for recipe in recipes]

    return measure


def test_the_fastest_measured_is_chosen_and_not_the_first_predicted():
    asked = []
    tune(by_recipe({}, asked), top=4)
    assert len(asked) >= 4
    assert len(set(asked)) == len(asked)
    first, *_, last = asked
    found = tune(by_recipe({last: 1e-6, first: 2e-3}), top=4)
    assert found.chosen.recipe == last
    assert found.chosen.measured_s == 1e-6
    assert found.measured
    printed = str(found)
    assert "measured" in printed.splitlines()[1]
    assert "predicted" in printed.splitlines()[1]
    assert "predicted against measured:" in printed


def test_plans_of_equal_predictions_have_no_rank_correlation():
    found = tune(by_recipe({}), top=4)
    assert found.runner_up is not None
    alike = replace(found.runner_up, costs=found.chosen.costs)
    equal = replace(found, runner_up=alike, plain=None, pareto=())
    assert len(equal.plans) == 2
    assert "rank correlation not defined: all are predicted" in str(equal)


def test_a_plan_that_cannot_be_measured_is_left_out_with_its_reason():
    asked = []
    tune(by_recipe({}, asked))
    found = tune(by_recipe({asked[0]: "rank 1: no memory"}))
    assert found.chosen.recipe != asked[0]
    reason = found.counts.failed[asked[0]]
    assert reason == "it could not be measured: rank 1: no memory"
    with pytest.raises(TuneError, match="no schedule is left"):
        tune(lambda schedules: ["no GPU"] * len(schedules))


def test_measurements_survive_json_and_the_cache(tmp_path):
    asked = []
    cache = Cache(tmp_path / "tuning.sqlite")
    first = tune(by_recipe({}, asked), cache=cache)
    again = tune(by_recipe({}, asked), cache=cache)
    assert again.from_cache
    assert again.chosen.measured_s == first.chosen.measured_s == 1.0
    assert len(set(asked)) == len(asked)  # measured once
    value = json.loads(json.dumps(first.to_json()))
    read = TuneResult.from_json(value, first.program, first.mesh, first.boundary)
    assert read.plans == first.plans


def test_a_search_on_embedded_ranks_measures_nothing():
    found = mc.tune(mc.programs.matmul(**SIZES), topology="h200-2x1", cache=False)
    assert not found.measured
    assert all(each.measured_s is None for each in found.plans)
    assert "*predicted*, not measured" in str(found)


def test_what_does_not_fit_is_refused(monkeypatch):
    with pytest.raises(TuneError, match="a time or a reason for each of"):
        tune(lambda schedules: [])
    with pytest.raises(TuneError, match="no target 'tpu'; targets are 'sim' and 'cuda'"):
        tune(None, target="tpu")
    monkeypatch.setenv("LOCAL_RANK", "999")
    with pytest.raises(MercuryError, match="measuring needs"):
        tune(None)


def test_all_ranks_measure_what_the_first_found():
    """Another rank's finalists are others: both must measure those of the first."""
    told = []

    def vote(text):
        told.append(text)
        return [text, "of the second rank"]

    asked = []
    found = tune(by_recipe({}, asked), vote=vote)
    assert json.loads(told[-2])[0]["recipe"] == asked[0]
    assert json.loads(told[-1])["recipe"] == found.chosen.recipe


def test_ranks_part_when_the_search_on_gpus_is_over(monkeypatch):
    there = []

    class OnCpu:
        size = 2

        def __init__(self):
            self.dist = self

        def __enter__(self):
            there.append("together")
            return self

        def __exit__(self, kind, error, trace):
            there.append("apart" if error is None else "failed")

        def all_gather_object(self, texts, text):
            assert there[-1] == "together"
            texts[:] = [text] * self.size

    monkeypatch.setattr(tuning, "Cuda", OnCpu)
    monkeypatch.setattr(tuning, "seconds_of", lambda on, schedules: [1.0] * len(schedules))
    assert tune(None).measured
    assert tune(None).measured
    assert there == ["together", "apart"] * 2
    with pytest.raises(BenchError, match="Mesh\\(gpu=3\\) has 3 ranks and 2 were started"):
        tune(None, topology="h200-4x1", mesh=mc.Mesh(gpu=3))


def test_a_result_says_when_no_boundary_was_given():
    told = "to bring them there costs nothing: no boundary was given"
    settings = {"topology": "h200-2x1", "cache": False}
    assert told in str(mc.tune(mc.programs.matmul(**SIZES), **settings))
    kept = mc.tune(mc.programs.matmul(**SIZES), boundary={"A": {"i": "gpu"}}, **settings)
    assert told not in str(kept)


def test_options_that_leave_nothing_to_search_are_refused():
    with pytest.raises(TuneError, match="at least one level, got max_levels=0"):
        SpaceOptions(max_levels=0)
    with pytest.raises(TuneError, match=r"slices are numbers of 2 parts or more, got \[1\]"):
        SpaceOptions(slices=(1,))
    with pytest.raises(TuneError, match="blocks are numbers of 2 parts or more"):
        SpaceOptions(blocks=(4, 0))
