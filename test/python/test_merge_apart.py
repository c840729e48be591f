"""Attention by name writes its pair, and a generated kernel merges it: against float64."""

import mercury as mc
import numpy as np
import pytest
from mercury.runtime import SimOptions
from mercury.runtime.dtypes import decode, encode
from mercury.runtime.trial import trial

ZIGZAG = {"sq": "zigzag", "sk": "zigzag"}
RING = "parallelize(sq, gpu); shift(sk, by=sq{}); patch(attention_fwd, mine)"


def library(launch):
    """Attention that writes both results, whatever they held, as a library does."""
    q, k, v = (decode(tile.array, tile.dtype).astype(np.float64) for tile in launch.inputs)
    o, lse = launch.outputs
    # The first step writes the sum itself, the others what is merged into it.
    assert o.dtype in (launch.inputs[0].dtype, "f32")
    if o.array.size == 0 or k.size == 0:
        return
    given = launch.parameters
    heads = (np.arange(q.shape[2]) + given["at_h"]) // given["group"] - given["at_h/g"]
    scores = given["scale"] * np.einsum("bqhd,bkhd->bhqk", q, k[:, :, heads])
    ahead = (np.arange(k.shape[1]) + given["at_sk"])[None] - (
        np.arange(q.shape[1]) + given["at_sq"]
    )[:, None]
    scores[..., (ahead < -given["left"]) | (ahead > given["right"])] = -np.inf
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(most), 0, most))
    total = weights.sum(-1)
    shares = weights / np.where(total == 0, 1, total)[..., None]
    o.array[...] = encode(np.einsum("bhqk,bkhe->bqhe", shares, v[:, :, heads]), o.dtype)
    with np.errstate(divide="ignore"):
        lse.array[...] = np.where(
            total == 0, -np.inf, np.log(total) + np.where(np.isinf(most), 0, most)[..., 0]
        )


CASES = {
    "a ring": ({}, "gpu=3", RING.format("")),
    "float32": ({"dtype": "f32"}, "gpu=3", RING.format("")),
    "pulled, own part last": ({"mask": "full"}, "gpu=2", RING.format(", reads=pull, offset=1")),
    "chunks": ({"mask": "full"}, "gpu=2", RING.format(", reads=pull, chunks=2")),
    "both ends": ({"layout": ZIGZAG, "sk": 13}, "gpu=2", RING.format(", reads=pull")),
    "grouped heads and a sink": ({"group": 2, "sink": True}, "gpu=3", RING.format("")),
    "more ranks than rows": ({"sq": 2, "sk": 2}, "gpu=3", RING.format("")),
    "growing slices": ({}, "gpu=2", "tile(b, [1, 2]); " + RING.format(", reads=pull")),
    "tiles": ({}, "gpu=2", "tile(sq, 2); tile(sk, 3); patch(attention_fwd, mine)"),
    "two levels": (
        {},
        "node=2,gpu=2",
        "parallelize(sq, [node, gpu]); shift(sk, by=sq); patch(attention_fwd, mine)",
    ),
    "travelling results": (
        {"mask": "full"},
        "gpu=3",
        "parallelize(sk, gpu); shard(O, sq, gpu); shard(LSE, sq, gpu); tile(h, 2); "
        "shift(sq, by=sk, offset=1); patch(attention_fwd, mine)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_library_that_only_writes_is_merged(case):
    options, mesh, recipe = CASES[case]
    sizes = {"b": 3, "h": 4, "sq": 13, "sk": 11, "d": 4, "dtype": "bf16", "mask": "causal"}
    program = mc.programs.attention(**(sizes | options))
    plan = mc.Schedule(program, mc.Mesh.parse(mesh)).apply(recipe).compile()
    own = SimOptions(kernels={"mine.attention_fwd": library}, seed=2, max_delay_us=50)
    result = trial(plan, 3, own)
    assert result.right, result.errors
