"""Random programs, schedules and meshes against float64.

    python test/Fuzz/fuzz_schedules.py --seconds 60 --seed 1

Each case is made from its number alone: --only N repeats case N. A step that is not legal
is dropped, a schedule that is not lowered yet is counted by its reason, and a wrong result
or an error while running is a failure.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import mercury as mc
import numpy as np
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a case.

    Attributes
    ----------
    kind
        "right", "refused: ..." with the reason, or "WRONG".
    text
        The case in a line.
    """

    kind: str
    text: str


class Case:
    """A random program on a random mesh with a random schedule."""

    def __init__(self, number: int) -> None:
        self._rng = np.random.default_rng(number)
        self.number = number
        self.levels = self._pick([["gpu"], ["node", "gpu"]])
        self.mesh = mc.Mesh(**{level: self._number(1, 5) for level in self.levels})
        self.program = self._program()
        self.schedule = mc.Schedule(self.program, self.mesh, self._boundary())
        self._loops = [axis.name for axis in self.program.axes]
        self._parallel: list[str] = []
        for _ in range(self._number(1, 7)):
            self._step()

    def _number(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high))

    def _pick(self, choices: Sequence[T]) -> T:
        return choices[self._number(0, len(choices))]

    def _program(self) -> mc.Program:
        layout = self._pick([None, None, None, "bounds", "zigzag"])
        if self._number(0, 2):
            sizes = {name: self._number(0, 20) for name in ("m", "n", "depth")}
            axis = self._pick(["i", "j", "k"])
            extent = sizes[{"i": "m", "j": "n", "k": "depth"}[axis]]
            return mc.programs.matmul(
                **sizes,
                dtype=self._pick(["f32", "f32", "bf16", "f16", "f64"]),
                layout=self._layout(layout, axis, extent),
            )
        group = self._pick([1, 1, 2, 3])
        backward = self._number(0, 2) == 1
        # The gradient of a softmax over one key is 0: nothing to compare with.
        least = 3 if backward else 0
        sq, sk = self._number(least, 20), self._number(least, 20)
        axis = self._pick(["sq", "sk"])
        sink = {} if backward else {"sink": self._pick([False, True])}
        program = mc.programs.attention_backward if backward else mc.programs.attention
        return program(
            b=self._number(1, 3),
            h=group * self._number(1, 4),
            group=group,
            sq=sq,
            sk=sk,
            d=self._number(1, 6),
            dv=self._number(1, 6),
            mask=self._pick([None, "causal", mc.causal(2), mc.window(3), mc.window(2, 1)]),
            dtype=self._pick(["f32", "bf16"]),
            layout=self._layout(layout, axis, {"sq": sq, "sk": sk}[axis]),
            **sink,
        )

    def _layout(self, kind: str | None, axis: str, extent: int) -> dict[str, str] | None:
        if kind is None:
            return None
        if kind == "zigzag":
            return {axis: kind}
        shards = self._number(1, 4)
        inner = sorted(self._number(0, extent + 1) for _ in range(shards - 1))
        return {axis: f"bounds{[0, *inner, extent]}"}

    def _boundary(self) -> dict[str, dict[str, str]]:
        boundary = {}
        for buffer in self.program.buffers:
            axes = [dim.axis.name for dim in buffer.dims if dim.axis is not None]
            if self._number(0, 4) == 0:
                boundary[buffer.name] = {self._pick(axes): self._pick(self.levels)}
        try:
            self.program.build(self.mesh, boundary)
        except mc.ProgramError:  # a layout that cannot be cut so
            return {}
        return boundary

    def _step(self) -> None:
        kinds = ("parallelize", "parallelize", "shift", "shift", "tile", "shard", "replicate")
        kind = self._pick((*kinds, "reorder"))
        buffer = self._pick(self.program.buffers)
        loop, level = self._pick(self._loops), self._pick(self.levels)
        try:
            if kind == "parallelize":
                self.schedule.parallelize(loop, self._pick([level, level, self.levels]))
                self._parallel.append(loop)
            elif kind == "shift" and self._parallel:
                self.schedule.shift(
                    loop,
                    by=self._pick(self._parallel),
                    direction=self._pick([1, -1]),
                    offset=self._number(-1, 3),
                )
            elif kind == "tile":
                self.schedule.tile(loop, self._number(1, 4))
                self._loops.remove(loop)
                self._loops += [f"{loop}_outer", f"{loop}_inner"]
            elif kind == "shard":
                axes = [dim.axis.name for dim in buffer.dims if dim.axis is not None]
                self.schedule.shard(buffer.name, self._pick(axes), level)
            elif kind == "replicate":
                self.schedule.replicate(buffer.name, level)
            elif kind == "reorder":
                self.schedule.reorder(loop, self._pick(self._loops))
        except mc.ScheduleError:
            return  # an illegal step leaves the schedule as it was

    def run(self) -> Outcome:
        """Compile and run the case, with delayed and reordered messages."""
        text = f"{self.number}: {self.program} on {self.mesh}: {self.schedule.recipe()}"
        try:
            plan = self.schedule.compile()
        except mc.CompileError as error:
            rule = re.search(r"needs rule (R\d(?: \w+)*)", error.message)
            reason = rule[1] if rule else re.sub(r"'[^']*'", "X", error.message)[:70]
            return Outcome(kind=f"refused: {reason}", text=text)
        try:
            result = trial(plan, self.number, SimOptions(seed=self.number + 1))
        except mc.RunError as error:
            return Outcome(kind="WRONG", text=f"{text}: {error}")
        kind = "right" if result.right else "WRONG"
        return Outcome(kind=kind, text=f"{text}: {result.errors}")


def main() -> int:
    """Run cases until the time is up; 1 when one of them is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="default %(default)s")
    parser.add_argument(
        "--seed", type=int, default=0, help="the first case is a million times it"
    )
    parser.add_argument("--only", type=int, help="run this case alone")
    options = parser.parse_args()
    if options.only is not None:
        outcome = Case(options.only).run()
        print(outcome.kind, outcome.text)
        return int(outcome.kind == "WRONG")
    counts: collections.Counter[str] = collections.Counter()
    end = time.monotonic() + options.seconds
    number = options.seed * 1_000_000
    while time.monotonic() < end:
        outcome = Case(number).run()
        counts[outcome.kind] += 1
        if outcome.kind == "WRONG":
            print("WRONG", outcome.text)
        number += 1
    for kind, count in counts.most_common():
        print(f"{count:6} {kind}")
    return int(counts["WRONG"] > 0)


if __name__ == "__main__":
    sys.exit(main())
