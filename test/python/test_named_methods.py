"""Every named method is a schedule of its program's space: the search finds it by itself."""

from dataclasses import replace

import mercury as mc
import pytest
from mercury.strategies.levels import Levels
from mercury.tuner import Space, SpaceOptions, Style

# A level of 8 is 2 x 4 to the methods that need two; these are the styles that they move by.
PULL = Style(reads="pull", results="fetch")
SPLIT = SpaceOptions(styles=(Style(), PULL, replace(PULL, chunks=2)), defer=False)
MESHES = {mc.Mesh(gpu=4): None, mc.Mesh(node=2, gpu=3): None, mc.Mesh(gpu=8): SPLIT}


class Walk:
    """A space, walked as far as it takes to find what is asked for."""

    def __init__(self, space):
        self.space, self.seen, self._rest = space, {}, iter(space)

    def find(self, fingerprint):
        """Give the recipe that has a fingerprint, or None."""
        while fingerprint not in self.seen:
            candidate = next(self._rest, None)
            if candidate is None:
                return None
            self.seen[candidate.fingerprint] = candidate.recipe
        return self.seen[fingerprint]


@pytest.fixture(scope="module")
def walks():
    return {}


def walk_of(walks, strategy, mesh):
    """Give a method's program, and the space of it with the method's boundary."""
    program = strategy.program(**({"h": 12} if strategy.program.name != "matmul" else {}))
    cuts = strategy.boundary(Levels.of(mesh))
    boundary = {
        buffer.name: {
            d.axis.name: cuts[d.axis.name]
            for d in buffer.dims
            if d.axis and d.axis.name in cuts
        }
        for buffer in program.buffers
        if cuts and (not strategy.buffers or buffer.name in strategy.buffers)
    }
    key = (program.name, str(boundary), mesh)
    if key not in walks:
        walks[key] = Walk(Space(program, mesh, boundary, options=MESHES[mesh]))
    return program, walks[key]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("name", mc.strategies.names())
def test_the_search_finds_every_named_method(name, mesh, walks):
    strategy = mc.strategies.get(name)
    program, walk = walk_of(walks, strategy, mesh)
    schedule = strategy.schedule(mesh, program)
    fingerprint = walk.space.fingerprint(schedule)
    found = walk.find(fingerprint)
    print(f"{name} on {mesh} is {fingerprint}: {found}")
    assert found is not None, (name, fingerprint, schedule.recipe())
