"""A schedule in a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from .placed import Loop, Placed

__all__ = ["is_plain", "sentence"]


def is_plain(placed: Placed) -> bool:
    """Whether nothing moves but by collectives before and after the loops."""
    staggered = any(loop.shift is not None for nest in placed.nests for loop in nest)
    return not (staggered or placed.overlaps or any(placed.broadcast.values()))


def sentence(placed: Placed) -> str:
    """Say what a schedule does, for people.

    Examples
    --------
    >>> import mercury as mc
    >>> from mercury.tuner.placed import read_placed
    >>> ring = mc.strategies.get("ring").schedule(mc.Mesh(gpu=4))
    >>> sentence(read_placed(ring))
    'sq is spread over gpu; K and V rotate along sk over gpu, under the work'
    """
    said = list(dict.fromkeys(part for nest in placed.nests for part in _nest(placed, nest)))
    for partial in dict.fromkeys(partial for _, partial in placed.deferred):
        names = [name for name, own in placed.deferred if own == partial]
        kept = f", kept as {partial} until then" if partial else ""
        said.append(f"partial {_and(names)} are merged once at the end{kept}")
    for nest in placed.nests:
        slices = placed.slices(nest)
        for loop in nest:
            if loop is slices:
                said.append(
                    f"slices of {_and(loop.axes)} are exchanged under the work on others"
                )
            elif loop.name in placed.overlaps:
                said.append(f"the steps of {loop.name} run beside each other")
    said += _rest(placed)
    return "; ".join(said)


def _nest(placed: Placed, nest: tuple[Loop, ...]) -> Iterator[str]:
    for loop in nest:
        if loop.levels:
            yield f"{_and(loop.axes)} is spread over {_and(loop.levels)}"
    for loop in nest:
        if loop.shift is None:
            continue
        moved = placed.moved(loop)
        reads = [name for name in moved if name in placed.inputs]
        results = [name for name in moved if name not in placed.inputs]
        over = f"along {_and(loop.axes)} over {_and(loop.shift.levels)}"
        way = ", backwards" if loop.shift.direction == -1 else ""
        chunks = f" in {loop.shift.chunks} chunks" if loop.shift.chunks > 1 else ""
        if reads:
            pulled = loop.shift.reads == "pull"
            many = len(reads) > 1
            verb = ("are pulled" if many else "is pulled") if pulled else _verb("rotate", many)
            yield f"{_and(reads)} {verb} {over}{chunks}{way}, under the work"
        if results:
            how = {
                "travel": "travel to their owners",
                "deliver": "go straight to their owners",
                "fetch": "are read by their owners",
            }[loop.shift.results]
            rounded = f" as {loop.shift.link}" if loop.shift.link else ""
            yield f"partial {_and(results)} {how}{rounded} {over}{chunks}{way}"


def _rest(placed: Placed) -> Iterator[str]:
    """What is gathered before the loops, merged after them, and brought to its place."""
    loops = [loop for nest in placed.nests for loop in nest]
    parallel = {level: loop for loop in loops for level in loop.levels}
    staggered = {
        (axis, level)
        for loop in loops
        if loop.shift is not None
        for axis in loop.axes
        for level in loop.shift.levels
    }
    gathered: dict[str, list[str]] = {}
    panels: dict[str, list[str]] = {}
    shared: dict[str, list[str]] = {}
    whole: dict[str, list[str]] = {}
    moved: list[str] = []
    for name, cuts in placed.inside.items():
        axes = {cut.axis for cut in cuts}
        axis_of = {level: cut.axis for cut in cuts for level in cut.levels}
        for level, size in placed.levels:
            owner = parallel.get(level)
            if size == 1 or owner is None or set(owner.axes) & axes & {axis_of.get(level)}:
                continue
            axis = axis_of.get(level)
            if axis is not None and (axis, level) in staggered:
                continue
            if name in placed.inputs:
                if axis is not None:
                    found = panels if axis in placed.broadcast[name] else gathered
                    found.setdefault(level, []).append(name)
            else:
                (whole if axis is None else shared).setdefault(level, []).append(name)
        if placed.boundary[name] != cuts:
            moved.append(name)
    for found, text in (
        (panels, "broadcast panel by panel, under the work, over"),
        (gathered, "gathered over"),
        (whole, "merged on every rank of"),
        (shared, "merged and shared out over"),
    ):
        for level, names in found.items():
            yield f"{_and(names)} {'are' if len(names) > 1 else 'is'} {text} {level}"
    if moved:
        yield f"{_and(moved)} {'are' if len(moved) > 1 else 'is'} laid out anew on the way"


def _verb(verb: str, many: bool) -> str:
    return verb if many else f"{verb}s"


def _and(names: tuple[str, ...] | list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
