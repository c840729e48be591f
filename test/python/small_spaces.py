"""Programs whose spaces are small, and the options of a small space."""

import mercury as mc
from mercury.tuner import SpaceOptions, Style

ROTATE = SpaceOptions(styles=(Style(),), defer=False)


def attention(**settings):
    return mc.programs.attention(
        **{"h": 4, "sq": 16, "sk": 16, "d": 4, "dtype": "f32"} | settings
    )


def matmul(**settings):
    return mc.programs.matmul(**{"m": 12, "n": 12, "depth": 12, "dtype": "f32"} | settings)
