"""The cases of test/Gpu/plans.py: named methods, gradients, pulls, and variants of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import mercury as mc
from variants import backwards, over, programs, variants

LEFT_OUT = "left out: "


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A schedule of a program."""

    name: str
    program: mc.Program
    schedule: Callable[[mc.Mesh], mc.Schedule]
    bitwise: bool = True


def cases(quick: bool, long: bool) -> Iterator[Case]:
    for name in mc.strategies.names():
        method = mc.strategies.get(name)
        for text, program in programs(method, quick, long):

            def schedule(mesh: mc.Mesh, method: Any = method, program: Any = program) -> Any:
                return method.schedule(mesh, program)

            yield Case(name=f"{name} {text}", program=program, schedule=schedule)
    for name in ("ring", "ulysses", "context-parallel"):
        for mask, group in (("full", 1), ("causal", 4)):
            program = mc.programs.attention_backward(
                h=8, sq=1024, sk=1024, mask=mask, group=group
            )

            def backward(mesh: mc.Mesh, name: str = name, program: Any = program) -> Any:
                return mc.strategies.get(name).schedule(mesh, program)

            yield Case(
                name=f"{name} backward {mask} group {group}",
                program=program,
                schedule=backward,
                bitwise=False,
            )
    yield from pulled()
    for bitwise, given in ((True, variants(quick)), (False, backwards())):
        for text, program, base, steps in given:

            def made(
                mesh: mc.Mesh, base: str = base, program: Any = program, steps: str = steps
            ) -> Any:
                return mc.strategies.get(base).start(mesh, program).apply(over(mesh, steps))

            yield Case(name=text, program=program, schedule=made, bitwise=bitwise)


def pulled() -> Iterator[Case]:
    """Rings that read in place, and causal ones with balanced shards."""
    for mask in ("full", "causal"):
        for layout in ("block", "zigzag"):
            program = mc.programs.attention(
                h=8, sq=2048, sk=2048, mask=mask, layout={"sq": layout, "sk": layout}
            )

            def schedule(mesh: mc.Mesh, program: Any = program) -> Any:
                made = mc.Schedule(program, mesh).parallelize("sq", mesh.names)
                return made.shift("sk", by="sq", reads="pull")

            yield Case(name=f"ring by pull {mask} {layout}", program=program, schedule=schedule)
            # Under a full mask pieces are launched one by one: none can wait in a narrow type.
            if (mask, layout) == ("full", "zigzag"):
                continue

            def merged(mesh: mc.Mesh, schedule: Any = schedule) -> Any:
                return schedule(mesh).defer("O", partial="bf16")

            yield Case(
                name=f"ring by pull {mask} {layout} merged once",
                program=program,
                schedule=merged,
                bitwise=False,
            )
            gradients = mc.programs.attention_backward(
                h=8, sq=2048, sk=2048, group=2, mask=mask, layout={"sq": layout, "sk": layout}
            )
            for more in ("offset=1, results=deliver", "results=deliver"):

                def backward(mesh: mc.Mesh, program: Any = gradients, more: str = more) -> Any:
                    made = mc.Schedule(program, mesh).parallelize("sq", mesh.names)
                    made.apply(f"shift(sk, by=sq, reads=pull, {more})")
                    for name in ("dQ", "dK", "dV"):
                        made.defer(name, partial="bf16")
                    return made

                yield Case(
                    name=f"gradients by pull {mask} {layout} {more}",
                    program=gradients,
                    schedule=backward,
                    bitwise=False,
                )


def compiled(case: Case, mesh: mc.Mesh) -> Any:
    """Give a plan, or in words why it is left out: no version lowers it so far."""
    try:
        return case.schedule(mesh).compile(target="cuda")
    except mc.MercuryError as error:
        if "does not lower yet" not in error.message:
            raise
        return f"{LEFT_OUT}{error.message}"
