"""The methods that are compared, as recipes, and the schedules among which ours is chosen.

All methods are schedules of one program and have the same kernels, boundary and lowering, so
what is compared is the schedule alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .. import strategies
from ..dsl import Mesh

__all__ = ["boundary", "methods", "space"]

Recipe = str


def boundary(operator: str, mesh: Mesh) -> dict[str, dict[str, list[str]]] | None:
    """Where buffers live: tokens are cut over all ranks; products have their own."""
    if operator != "attention":
        axis = {"ag_gemm": ("A", "i"), "gemm_rs": ("C", "i")}[operator]
        return {axis[0]: {axis[1]: list(mesh.names)}}
    queries = dict.fromkeys(("Q", "O", "LSE"), "sq")
    axes = queries | dict.fromkeys(("K", "V"), "sk")
    return {buffer: {axis: list(mesh.names)} for buffer, axis in axes.items()}


def methods(operator: str, mesh: Mesh) -> dict[str, list[Recipe]]:
    """Give the recipes of each method; of several, its best counts."""
    every = _list(mesh.names)
    if operator == "ag_gemm":
        over = f"parallelize(j, {every})"
        return {
            "synchronous": [f"{over}; shard(A, i, {every})"],
            "AsyncTP": [
                f"{over}; shift(i, by=j, reads=pull, chunks={chunks})" for chunks in (1, 2, 4)
            ]
            + [f"{over}; shift(i, by=j)"],
        }
    if operator == "gemm_rs":
        over = f"parallelize(k, {every}); shard(C, i, {every})"
        return {
            "synchronous": [over],
            "AsyncTP": [
                f"{over}; shift(i, by=k, offset=1, results=deliver)",
                f"{over}; shift(i, by=k, offset=1)",
            ],
        }
    rings = [
        _attention(levels, roles, "rotate")
        for levels, roles in _roles(mesh, ("h", "ring"))
        if {"h", "ring"} == set(roles)
    ]
    return {
        "Ring": [f"parallelize(sq, {every}); shift(sk, by=sq)"],
        "Ulysses": [f"parallelize(h, {every})"],
        "USP": rings,
        "gather KV": [
            f"parallelize(sq, {every}); shard(K, sk, {every}); shard(V, sk, {every})"
        ],
    }


def space(operator: str, mesh: Mesh) -> list[Recipe]:
    """Give the bounded space of our choice: the methods, and what lies between them.

    For attention each level, whole or split in two, spreads heads, turns a ring by messages
    or by pulls, or gathers; and the named strategies, the paper's hybrid among them. Products
    are shifted in pieces, both ways, by messages or by pulls.
    """
    found = [recipe for several in methods(operator, mesh).values() for recipe in several]
    if operator == "attention":
        named = map(strategies.get, strategies.names())
        found += [
            "; ".join(each.steps(mesh)) for each in named if each.program.name == operator
        ]
        for levels, roles in _roles(mesh, ("h", "ring", "gather")):
            found += [_attention(levels, roles, reads) for reads in ("rotate", "pull")]
    else:
        found += _products(operator, mesh)
    return list(dict.fromkeys(found))


def _roles(mesh: Mesh, roles: tuple[str, ...]) -> Iterator[tuple[_Levels, tuple[str, ...]]]:
    for levels in _splits(mesh):
        for choice in product(roles, repeat=len(levels.names)):
            yield levels, choice


class _Levels:
    """The levels of a mesh after some were split, and the steps that split them."""

    def __init__(self, names: list[str], steps: list[str]) -> None:
        self.names, self.steps = names, steps


def _splits(mesh: Mesh) -> Iterator[_Levels]:
    """The mesh itself, and each way to split its last level in two."""
    yield _Levels(list(mesh.names), [])
    *slow, (name, size) = mesh.levels
    for outer in range(2, size):
        if size % outer == 0 and size // outer > 1:
            parts = f"{name}0={outer}, {name}1={size // outer}"
            yield _Levels(
                [*(level for level, _ in slow), f"{name}0", f"{name}1"],
                [f"split_level({name}, dict({parts}))"],
            )


def _attention(levels: _Levels, roles: tuple[str, ...], reads: str) -> Recipe:
    def of(*wanted: str) -> list[str]:
        return [name for name, role in zip(levels.names, roles, strict=True) if role in wanted]

    heads, rings, gathered = of("h"), of("ring"), of("gather")
    steps = list(levels.steps)
    if heads:
        steps.append(f"parallelize(h, {_list(heads)})")
    if rings or gathered:
        steps.append(f"parallelize(sq, {_list(of('ring', 'gather'))})")
    if rings:
        over = f", over={_list(rings)}" if gathered else ""
        steps.append(f"shift(sk, by=sq{over}, reads={reads})")
    if gathered:
        steps += [f"shard({buffer}, sk, {_list(gathered)})" for buffer in "KV"]
    return "; ".join(steps)


def _products(operator: str, mesh: Mesh) -> list[Recipe]:
    found = []
    every = _list(mesh.names)
    fast = mesh.names[-1]
    for chunks, direction in product((1, 2, 4), (1, -1)):
        if operator == "ag_gemm":
            options = f"direction={direction}, chunks={chunks}"
            for over in ("", f", over={fast}"):
                for reads in ("rotate", "pull"):
                    how = f"by=j{over}, reads={reads}, {options}"
                    found.append(f"parallelize(j, {every}); shift(i, {how})")
        else:
            options = f"offset={direction}, direction={direction}, chunks={chunks}"
            for results in ("travel", "deliver"):
                found.append(
                    f"parallelize(k, {every}); shard(C, i, {every}); "
                    f"shift(i, by=k, results={results}, {options})"
                )
    return found


def _list(levels: tuple[str, ...] | list[str]) -> str:
    return levels[0] if len(levels) == 1 else f"[{', '.join(levels)}]"
