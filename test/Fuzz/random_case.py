"""A random program on a random mesh with a random schedule, made from a number alone."""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from typing import TypeVar

import mercury as mc
import numpy as np
from isolated import Outcome
from mercury._mlir import ir
from mercury._mlir._mlir_libs import _mercury
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial

__all__ = ["Case"]

T = TypeVar("T")

ATTENTION = ("attention", "attention_backward", "decode_attention")
MESHES = (["gpu"], ["gpu"], ["node", "gpu"], ["node", "gpu"], ["rack", "node", "gpu"])
LARGEST_MESH = 12
SHOWN = ("dtype", "heads", "sink", "mask", "layout", "boundary")
STEPS = (
    *("parallelize", "shift") * 3,
    "tile",
    "tile",
    "shard",
    "replicate",
    "reorder",
    "defer",
)


class Case:
    """A case by number; what is not legal is never asked for, or dropped."""

    def __init__(self, number: int) -> None:
        self._rng = np.random.default_rng(number)
        self.number = number
        self.hits: list[tuple[str, str]] = []
        self.levels = self._pick(MESHES)
        sizes = dict.fromkeys(self.levels, 1)
        for level in self.levels:
            room = LARGEST_MESH // int(np.prod(list(sizes.values())))
            sizes[level] = self._number(1, min(room, 8 if len(sizes) == 1 else 4) + 1)
        self.mesh = mc.Mesh(**sizes)
        self._hit("mesh", f"{len(sizes)} levels")
        self.program = self._program()
        self.schedule = mc.Schedule(self.program, self.mesh, self._boundary())
        self._loops = {axis.name: axis.name for axis in self.program.axes}
        self._parallel: dict[str, list[str]] = {}
        self._free = list(self.levels)
        self._shifted: set[str] = set()
        self._placed: set[str] = set()
        for _ in range(self._number(1, 8)):
            self._step()

    def _number(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high))

    def _pick(self, choices: Sequence[T]) -> T:
        return choices[self._number(0, len(choices))]

    def _hit(self, kind: str, what: object) -> None:
        self.hits.append((kind, str(what)))

    # -- the program ----------------------------------------------------------

    def _program(self) -> mc.Program:
        name = self._pick(("matmul", "matmul", "attention", *ATTENTION))
        dtype = self._pick(["f32", "f32", "bf16", "f16", "f64"])
        self._hit("program", name)
        self._hit("dtype", dtype)
        made: mc.Program
        if name == "matmul":
            extents = {"i": self._number(0, 24), "j": self._number(0, 24)}
            # Nothing to sum is a test of its own: see test_found.py.
            extents["k"] = self._number(1, 24)
            made = mc.programs.matmul(
                m=extents["i"],
                n=extents["j"],
                depth=extents["k"],
                dtype=dtype,
                layout=self._layout(extents),
            )
            return made
        # The gradient of a softmax over one key is 0: nothing to compare with.
        least = 3 if name == "attention_backward" else 0
        extents = {"sq": self._number(least, 24), "sk": self._number(max(least, 1), 24)}
        group = self._pick([1, 1, 2, 3])
        self._hit("heads", f"group of {group}")
        options = {
            "b": self._number(1, 3),
            "h": group * self._number(1, 5),
            "group": group,
            "sk": extents["sk"],
            "d": self._number(1, 7),
            "dtype": dtype,
        }
        options["sink"] = self._pick([False, False, True])
        self._hit("sink", options["sink"])
        if name == "decode_attention":
            options["layout"] = self._layout({"sk": extents["sk"]})
            made = mc.programs.decode_attention(**options)
            return made
        mask = self._mask(extents)
        if mask.documents:  # they hold queries and keys alike
            extents["sk"] = options["sk"] = extents["sq"]
        options |= {
            "sq": extents["sq"],
            "dv": self._number(1, 7),
            "mask": mask,
            "layout": self._layout(extents),
        }
        program = getattr(mc.programs, name)
        made = program(**options)
        return made

    def _mask(self, extents: dict[str, int]) -> mc.Mask:
        kind = self._pick(["full", "causal", "offset", "window", "documents"])
        self._hit("mask", kind)
        plain = {
            "full": mc.Mask(),
            "causal": mc.causal(),
            "offset": mc.causal(self._number(-3, 4)),
            "window": mc.window(self._number(0, 6), self._number(0, 4)),
        }
        if kind != "documents":
            return plain[kind]
        last = extents["sq"]
        if last == 0:
            return mc.Mask()
        inner = sorted({self._number(1, last) for _ in range(3)}) if last > 1 else []
        inside = self._pick(["full", "causal", "window"])
        return plain[inside].packed([0, *inner, last])

    def _layout(self, extents: dict[str, int]) -> dict[str, str] | None:
        kind = self._pick(["block", "block", "zigzag", "striped", "bounds"])
        chosen = {}
        for axis, extent in extents.items():
            if kind != "block" and self._number(0, 3):
                chosen[axis] = self._cut(kind, extent)
        self._hit("layout", kind if chosen else "block")
        return chosen or None

    def _cut(self, kind: str, extent: int) -> str:
        if kind == "striped":
            return f"striped({self._number(1, 4)})"
        if kind == "zigzag":
            return kind
        shards = self._pick([self.mesh.size, *(size for _, size in self.mesh.levels)])
        inner = sorted(self._number(0, extent + 1) for _ in range(shards - 1))
        return f"bounds{[0, *inner, extent]}"

    def _boundary(self) -> dict[str, dict[str, str | list[str | int]]]:
        boundary: dict[str, dict[str, str | list[str | int]]] = {}
        for buffer in self.program.buffers:
            axes = [dim.axis.name for dim in buffer.dims if dim.axis is not None]
            if axes and self._number(0, 4) == 0:
                factors: list[str | int] = [self._pick(self.levels)]
                if self._number(0, 3) == 0:  # a strided placement
                    factors.insert(0, self._number(2, 4))
                boundary[buffer.name] = {self._pick(axes): factors}
        try:
            self.program.build(self.mesh, boundary)
        except mc.ProgramError:  # a layout that cannot be cut so
            return {}
        strided = any(len(cut) > 1 for cuts in boundary.values() for cut in cuts.values())
        given = "strided" if strided else "given"
        self._hit("boundary", given if boundary else "of the schedule")
        return boundary

    # -- the schedule ---------------------------------------------------------

    def _step(self) -> None:
        kind = self._pick(STEPS)
        before = self.schedule.recipe()
        try:
            getattr(self, f"_{kind}")()
        except mc.ScheduleError:
            return  # an illegal step leaves the schedule as it was
        if self.schedule.recipe() != before:
            self._hit("step", kind)

    def _parallelize(self) -> None:
        loop = self._pick(list(self._loops))
        if not self._free or loop in self._parallel or loop in self._shifted:
            return
        count = self._number(1, len(self._free) + 1) if self._number(0, 3) == 0 else 1
        first = self._number(0, len(self._free) - count + 1)
        levels = self._free[first : first + count]
        self.schedule.parallelize(loop, levels)
        self._parallel[loop] = levels
        self._free = [level for level in self._free if level not in levels]

    def _shift(self) -> None:
        still = [name for name in self._loops if name not in (*self._parallel, *self._shifted)]
        if not self._parallel or not still:
            return
        loop, by = self._pick(still), self._pick(list(self._parallel))
        pulls = self._number(0, 3) == 0
        several = pulls and self._number(0, 4) == 0 and len(self._parallel) > 1
        results = self._pick(["travel", "travel", "deliver", "fetch"])
        direction = self._pick([1, 1, -1])
        # Results are delivered in chunks, or fetched, when the own part is the last.
        last = results == "fetch" or (results == "deliver" and self._number(0, 2) == 0)
        options = {
            "direction": direction,
            "offset": direction if last else self._pick([0, 0, 1, -1, 2]),
            "reads": "pull" if pulls or last else "rotate",
            "results": results,
            "chunks": self._pick([1, 2, 3]) if pulls or last else self._pick([1, 1, 2]),
        }
        self.schedule.shift(loop, by=list(self._parallel) if several else by, **options)
        self._shifted.add(loop)
        for name, value in options.items():
            self._hit(name, value)
        self._hit("shift by", "several" if several else "one")

    def _tile(self) -> None:
        still = [name for name in self._loops if name not in (*self._parallel, *self._shifted)]
        if not still:
            return
        loop = self._pick(still)
        self.schedule.tile(loop, self._number(1, 5))
        axis = self._loops.pop(loop)
        self._loops |= {f"{loop}_outer": axis, f"{loop}_inner": axis}

    def _shard(self) -> None:
        buffer, level = self._pick(self.program.buffers), self._pick(self.levels)
        axes = [dim.axis.name for dim in buffer.dims if dim.axis is not None]
        if axes and buffer.name not in self._placed:
            reads = self._pick(["gather", "broadcast"]) if not buffer.output else "gather"
            self.schedule.shard(buffer.name, self._pick(axes), level, reads=reads)
            self._placed.add(buffer.name)
            self._hit("shard reads", reads)

    def _replicate(self) -> None:
        buffer = self._pick(self.program.buffers)
        if buffer.name not in self._placed:
            self.schedule.replicate(buffer.name, self._pick(self.levels))
            self._placed.add(buffer.name)

    def _defer(self) -> None:
        # Of a pair that is deferred already the second is refused, and stays so.
        self.schedule.defer(self._pick(self.program.outputs).name)

    def _reorder(self) -> None:
        loops = list(self._loops)
        if len(loops) > 1:
            one = self._pick(loops)
            self.schedule.reorder(one, self._pick([loop for loop in loops if loop != one]))

    # -- the run --------------------------------------------------------------

    def run(self) -> Outcome:
        """Compile and run the case, with delayed and reordered messages."""
        made = " ".join(f"{kind}={what}" for kind, what in self.hits if kind in SHOWN)
        text = f"{self.program} {made} on {self.mesh}: {self.schedule.recipe()}"

        def end(kind: str, why: object) -> Outcome:
            return Outcome(number=self.number, kind=kind, text=f"{text}: {why}", hits=self.hits)

        try:
            plan = self.schedule.compile()
        except mc.CompileError as error:
            if "breaks the plan" in error.message:
                return end("ALARM", error.message)
            rule = re.search(r"needs rule (R\d(?: \w+)*)", error.message)
            reason = rule[1] if rule else re.sub(r"'[^']*'", "X", error.message)[:70]
            return end(f"refused: {reason}", error.message)
        self.hits += [("rule", rule) for rule in rules(self.schedule)]
        options = SimOptions(seed=self.number + 1, max_delay_us=self._pick([20, 200, 2000]))
        try:
            result = trial(plan, self.number, options)
        except mc.RunError as error:
            return end("ERROR", error)
        return end("right" if result.right else "WRONG", result.errors)


def rules(schedule: mc.Schedule) -> list[str]:
    """Tell from the communication of a schedule which rules brought it about."""
    module = ir.Module.parse(schedule.ir(), ir.Context())
    pipeline = "builtin.module(commir-infer-placement,commir-materialize-communication)"
    succeeded, *_ = _mercury.run_pipeline(module, pipeline)
    assert succeeded  # it did, a moment ago
    text = str(module).partition("commir.source = ")[2]
    counts = collections.Counter(re.findall(r"commir\.([a-z_.]+)", text))
    inputs = "|".join(buffer.name for buffer in schedule.program.buffers)
    outside = len(re.findall(rf"redistribute (?:%\w+ to )?%(?:{inputs})\b", text))
    found = {
        "R2, R4 (gather)": counts["all_gather.start"],
        "R2 (broadcast)": counts["broadcast.start"],
        "R3, R5, R6 (exchange)": counts["exchange.start"],
        "R3, R6 (pull)": counts["pull.start"],
        "R4 (all_reduce)": counts["all_reduce.start"],
        "R5 (reduce_scatter)": counts["reduce_scatter.start"],
        "R5, R6 (merge)": counts["accumulate"],
        "R7 (boundary)": outside,
        "R8 (inside)": counts["redistribute"] - outside,
        "R9 (nested rings)": int(schedule.ir().count("shift(") > 1),
    }
    return [rule for rule, count in found.items() if count > 0] or ["R1 (nothing)"]
