"""Where buffers live outside is the user's: what brings them there and back is never free."""

import math

import mercury as mc
import pytest
from mercury.runtime.lowering import lower
from mercury.tuner import Space, SpaceOptions, Style

WHOLE = SpaceOptions(styles=(Style(),), max_levels=1, defer=False)
ATTENTION = mc.programs.attention(h=5, sq=37, sk=41, d=8, dtype="f32")
TOKENS = {
    name: {axis: "gpu"} for name, axis in (("Q", "sq"), ("K", "sk"), ("V", "sk"), ("O", "sq"))
}
PRODUCT = mc.programs.matmul(m=13, n=17, depth=11, dtype="f32")
ROWS = {"A": {"i": "gpu"}, "B": {"k": "gpu"}, "C": {"j": "gpu"}}


def lacking(needed, held, rank):
    """Count the elements of a rank's shard in one layout that it has not in another."""
    dims = range(len(needed.buffer.dims))
    mine = [set(needed.indices(rank)[dim].tolist()) for dim in dims]
    have = [set(held.indices(rank)[dim].tolist()) for dim in dims]
    common = math.prod(len(one & other) for one, other in zip(mine, have, strict=True))
    return math.prod(map(len, mine)) - common


@pytest.mark.parametrize(
    ("program", "boundary"), [(ATTENTION, TOKENS), (PRODUCT, ROWS)], ids=["attention", "matmul"]
)
def test_every_candidate_pays_for_what_its_boundary_moves(program, boundary):
    """Beside the same schedule with shards where it wants them: the bytes to the last one."""
    mesh, inputs = mc.Mesh(gpu=3), {buffer.name for buffer in program.inputs}
    moving = 0
    for candidate in Space(program, mesh, boundary, options=WHOLE):
        own = mc.Schedule(program, mesh).apply(candidate.recipe)
        paid, free = (mc.simulate(each, "h100-3x1") for each in (candidate.schedule, own))
        given, wanted = (
            lower(each.module, program, mesh).layouts for each in (candidate.schedule, own)
        )
        elements = 0
        for name in boundary:
            outside, inside = given[name], wanted[name]
            needed, held = (inside, outside) if name in inputs else (outside, inside)
            elements += sum(lacking(needed, held, rank) for rank in range(mesh.size))
        added = sum(paid.bytes_by_level.values()) - sum(free.bytes_by_level.values())
        assert added == 4 * elements, candidate.recipe
        assert paid.time_s > free.time_s or not elements, candidate.recipe
        moving += elements > 0
    assert moving > 5
