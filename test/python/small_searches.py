"""Searches small enough for a test, and a cost model of its own."""

import mercury as mc
from mercury.tuner import PlanCosts, SpaceOptions, Style

ROTATE = SpaceOptions(styles=(Style(),))
WHOLE = SpaceOptions(styles=(Style(),), max_levels=1)  # no level is split
TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}


def attention(**settings):
    return mc.programs.attention(
        **{"h": 8, "sq": 64, "sk": 64, "d": 8, "dtype": "f32"} | settings
    )


def matmul(**settings):
    return mc.programs.matmul(**{"m": 64, "n": 64, "depth": 64, "dtype": "f32"} | settings)


def tune(program=None, mesh=None, **settings):
    defaults = {"topology": "h200-2x1", "cache": False, "options": ROTATE}
    return mc.tune(program or matmul(), mesh or mc.Mesh(gpu=2), **(defaults | settings))


class Fake:
    """A cost model of the test's own: latency by recipe."""

    name = "fake"
    measured = True

    def __init__(self, latency):
        self.latency, self.calls = latency, 0

    def __call__(self, lowered, topology):
        self.calls += 1
        seconds = self.latency(lowered)
        return PlanCosts(
            latency=seconds,
            compute=seconds,
            exposed=0.0,
            bytes_by_level={},
            seconds_by_link={},
            error=0.0,
        )
