"""Plans are predicted as the machine runs them: by the libraries that its topology names.

Attention of a library merges into nothing and rounds what it hands over, so plans differ.
"""

from dataclasses import replace
from pathlib import Path

import mercury as mc
import pytest
from mercury import bench
from mercury.bench.forecast import forecast
from mercury.bench.ours import plans_of
from mercury.bench.workload import parse_workload
from mercury.implementations import ON_GPUS
from mercury.topology import load
from mercury.tuner import SpaceOptions, Style, TuneResult

WORKLOAD = "attention-1x32x16384-full"
TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}
PULLED = SpaceOptions(styles=(Style(reads="pull", results="fetch"),), slices=())
KERNEL = "attention_fwd"


def by_library():
    """The machine that was measured."""
    return load(Path(bench.__file__).parent / "results" / "h200x2.toml")


def generated():
    """The same machine, whose file names no library."""
    found = by_library()
    kernels = {
        name: replace(curve, library="") for name, curve in found.machine.kernels.items()
    }
    return replace(found, machine=replace(found.machine, kernels=kernels))


def program(**more):
    sizes = {"h": 32, "sq": 16384, "sk": 16384, "d": 128, "dtype": "bf16"}
    return mc.programs.attention(**(sizes | more))


def ring(made):
    return mc.Schedule(made, mc.Mesh(gpu=2)).apply(
        "parallelize(sq, gpu); shift(sk, by=sq, reads=pull)"
    )


def tune(topology, **more):
    settings = {"boundary": TOKENS, "options": PULLED, "cache": False} | more
    return mc.tune(program(), topology=topology, **settings)


def seconds(schedule, topology):
    return mc.simulate(schedule, topology).time_s


def test_kernels_left_open_are_those_of_the_machines_library():
    schedule = ring(program())
    patched = schedule.copy().patch("attention_*", "cudnn")
    plain = schedule.copy().patch("attention_*", "generated")
    assert seconds(schedule, by_library()) == seconds(patched, generated())
    assert seconds(schedule, generated()) == seconds(plain, by_library())
    # What a library made is merged by a kernel apart, which is faster here.
    assert seconds(schedule, by_library()) < seconds(schedule, generated())
    spans = mc.simulate(schedule, by_library()).spans
    assert any("merge" in span.name for span in spans)
    assert "patch" not in schedule.recipe()


def test_a_library_is_not_asked_for_what_it_does_not_take():
    wide = ring(program(dtype="f32", sq=2048, sk=2048))
    assert seconds(wide, by_library()) == seconds(wide, generated())


def test_a_compiled_plan_has_the_kernels_that_it_was_compiled_with():
    schedule = ring(program(sq=256, sk=256))
    assert seconds(schedule.compile(), by_library()) == seconds(schedule, generated())


def test_products_are_the_same_plan_by_a_library():
    for recipe in ("parallelize(j, gpu); shift(i, by=j, reads=pull)", "parallelize(k, gpu)"):
        schedule = mc.Schedule(mc.programs.matmul(), mc.Mesh(gpu=2)).apply(recipe)
        assert seconds(schedule, by_library()) == seconds(schedule, generated())


@pytest.mark.parametrize("target", ["sim", "cuda"])
def test_a_search_predicts_what_the_benchmarks_and_the_simulator_do(target):
    measure = None if target == "sim" else lambda schedules: [1.0] * len(schedules)
    machine = by_library()
    found = tune(machine, target=target, measure=measure)
    assert len(found.plans) > 2
    for choice in found.plans:
        schedule = found.schedule_of(choice)
        assert choice.costs.latency == seconds(schedule, machine), choice.recipe
        assert choice.peak_bytes == max(mc.simulate(schedule, machine).peak_bytes)
    # The benchmarks' own schedules, by the search's way and theirs.
    told = {each.name: each for each in forecast([WORKLOAD], mc.Mesh(gpu=2), machine)}
    for plan in plans_of(parse_workload(WORKLOAD), mc.Mesh(gpu=2)):
        expected = round(1e3 * seconds(plan.schedule, machine), 5)
        assert told[plan.name].predicted_ms == expected, plan.name


def test_the_choice_is_that_of_the_plan_that_runs():
    """To merge at the end saves nothing where a library's results are merged apart."""
    assert "defer" not in tune(by_library()).chosen.recipe
    assert tune(generated()).chosen.recipe.endswith("; defer(O)")


def test_a_search_remembers_whose_kernels_it_predicted(tmp_path):
    one, other = by_library(), generated()
    assert one.fingerprint() != other.fingerprint()
    cache = mc.tuner.Cache(tmp_path / "tuning.sqlite")
    first, second = tune(one, cache=cache), tune(other, cache=cache)
    assert not second.from_cache
    assert first.chosen.recipe != second.chosen.recipe
    assert isinstance(first, TuneResult)


def test_files_name_libraries(tmp_path):
    for machine in (by_library().machine, load("h200-2x1").machine):
        assert {name: machine.kernel(name).library for name in ON_GPUS} == ON_GPUS
    file = tmp_path / "mine.toml"
    mc.topology.write(by_library(), file)
    assert load(file).machine.kernel(KERNEL).library == "cudnn"
    mc.topology.write(generated(), file)
    assert "library" not in file.read_text()
    assert load(file).machine.kernel(KERNEL).library == ""
    file.write_text(mc.topology.dump(by_library()).replace('"cudnn"', '"cudn"'))
    message = r"library' must be one of cublas, cudnn, got 'cudn'"
    with pytest.raises(mc.topology.TopologyError, match=message):
        load(file)
