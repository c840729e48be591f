"""Random meshes, programs, masks and layouts: small, and uneven on most meshes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import mercury as mc
import numpy as np

__all__ = ["LAYOUTS", "MASKS", "Dice", "random_boundary", "random_mesh", "random_program"]

T = TypeVar("T")
Hit = Callable[[str, object], None]

MESHES = (["gpu"], ["gpu"], ["node", "gpu"], ["node", "gpu"], ["rack", "node", "gpu"])
SIZES = (1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8)
LARGEST_MESH = 12
MASKS = ("full", "causal", "offset", "window", "documents")
LAYOUTS = ("block", "zigzag", "striped", "bounds")


class Dice:
    """What a number decides."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def number(self, low: int, high: int) -> int:
        """Draw from low to high - 1."""
        return int(self._rng.integers(low, high))

    def pick(self, choices: Sequence[T]) -> T:
        """Draw one of several."""
        return choices[self.number(0, len(choices))]

    def one_in(self, count: int) -> bool:
        """Whether what happens once in so many times does."""
        return self.chance(1, count)

    def chance(self, times: int, count: int) -> bool:
        """Whether what happens so many times of so many does."""
        return self.number(0, count) < times

    def parts(self, total: int) -> list[int]:
        """Cut a number into some that mostly grow, none of them 0."""
        ends = sorted({self.number(1, total) for _ in range(self.number(1, 4))})
        sizes = [end - begin for begin, end in zip([0, *ends], [*ends, total], strict=True)]
        return sizes if self.one_in(4) else sorted(sizes)


def random_mesh(dice: Dice) -> mc.Mesh:
    """Give one to three levels of a dozen ranks at most."""
    if dice.one_in(6):  # choices for two steps ask for two ranks
        return mc.Mesh(gpu=2)
    sizes: dict[str, int] = {}
    for level in dice.pick(MESHES):
        room = LARGEST_MESH // int(np.prod(list(sizes.values())))
        largest = min(room, 8 if not sizes else 4)
        sizes[level] = dice.pick([size for size in SIZES if size <= largest])
    return mc.Mesh(**sizes)


def _cut(dice: Dice, mesh: mc.Mesh, kind: str, extent: int) -> str:
    """Give a layout of one kind for an axis."""
    if kind == "striped":
        return f"striped({dice.number(1, 4)})"
    if kind != "bounds":
        return kind
    shards = dice.pick([mesh.size, *(size for _, size in mesh.levels)])
    inner = sorted(dice.number(0, extent + 1) for _ in range(shards - 1))
    return f"bounds{[0, *inner, extent]}"


def random_boundary(
    dice: Dice, program: mc.Program, mesh: mc.Mesh, hit: Hit
) -> dict[str, dict[str, str | list[str | int]]]:
    """Cut some buffers outside the program, or leave that to the schedule."""
    boundary: dict[str, dict[str, str | list[str | int]]] = {}
    for buffer in program.buffers:
        axes = [dim.axis.name for dim in buffer.dims if dim.axis is not None]
        if axes and dice.one_in(4):
            factors: list[str | int] = [dice.pick(mesh.names)]
            if dice.one_in(3):  # a strided placement
                factors.insert(0, dice.number(2, 4))
            boundary[buffer.name] = {dice.pick(axes): factors}
    try:
        program.build(mesh, boundary)
    except mc.ProgramError:  # a layout that cannot be cut so
        return {}
    strided = any(len(cut) > 1 for cuts in boundary.values() for cut in cuts.values())
    given = "strided" if strided else "given"
    hit("boundary", given if boundary else "of the schedule")
    return boundary


def random_program(dice: Dice, name: str, mesh: mc.Mesh, hit: Hit) -> mc.Program:
    """Draw the sizes, types and options of a shipped program; tell what was drawn."""
    dtype = dice.pick(["f32", "f32", "bf16", "f16", "f64"])
    hit("program", name)
    hit("dtype", dtype)
    made: mc.Program
    if name == "matmul":
        # Nothing to sum is a test of its own: see test_found.py.
        extents = {"i": dice.number(0, 24), "j": dice.number(0, 24), "k": dice.number(1, 24)}
        made = mc.programs.matmul(
            m=extents["i"],
            n=extents["j"],
            depth=extents["k"],
            dtype=dtype,
            layout=_layout(dice, mesh, extents, hit),
        )
        return made
    # The gradient of a softmax over one key is 0: nothing to compare with.
    least = 3 if name == "attention_backward" else 0
    extents = {"sq": dice.number(least, 24), "sk": dice.number(max(least, 1), 24)}
    group = dice.pick([1, 1, 2, 3])
    hit("heads", f"group of {group}")
    options = {
        "b": dice.number(1, 5),
        "h": group * dice.number(1, 5),
        "group": group,
        "sk": extents["sk"],
        "d": dice.number(1, 7),
        "dtype": dtype,
        "sink": dice.one_in(3),
    }
    hit("sink", options["sink"])
    if name == "decode_attention":
        options["layout"] = _layout(dice, mesh, {"sk": extents["sk"]}, hit)
        made = mc.programs.decode_attention(**options)
        return made
    mask = _mask(dice, extents, hit)
    if mask.documents:  # they hold queries and keys alike
        extents["sk"] = options["sk"] = extents["sq"]
    options |= {"sq": extents["sq"], "dv": dice.number(1, 7), "mask": mask}
    options["layout"] = _layout(dice, mesh, extents, hit)
    made = getattr(mc.programs, name)(**options)
    return made


def _mask(dice: Dice, extents: dict[str, int], hit: Hit) -> mc.Mask:
    plain = {
        "full": mc.Mask(),
        "causal": mc.causal(),
        "offset": mc.causal(dice.number(-3, 4)),
        "window": mc.window(dice.number(0, 6), dice.number(0, 4)),
    }
    last = extents["sq"]
    kind = dice.pick(MASKS if last else MASKS[:-1])
    hit("mask", kind)
    if kind != "documents":
        return plain[kind]
    inner = sorted({dice.number(1, last) for _ in range(3)}) if last > 1 else []
    inside = dice.pick(["full", "causal", "window"])
    return plain[inside].packed([0, *inner, last])


def _layout(
    dice: Dice, mesh: mc.Mesh, extents: dict[str, int], hit: Hit
) -> dict[str, str] | None:
    kind = dice.pick(["block", *LAYOUTS])
    chosen = {}
    for axis, extent in extents.items():
        if kind != "block" and not dice.one_in(4):
            chosen[axis] = _cut(dice, mesh, kind, extent)
    hit("layout", kind if chosen else "block")
    return chosen or None
