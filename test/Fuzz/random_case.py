"""A random program on a random mesh with a random schedule, made from a number alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import mercury as mc
from applied_rules import applied, rings
from isolated import Outcome
from mercury.dsl.nodes import Buffer
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial
from mercury.schedule.recipe import Call, parse_recipe
from mercury.strategies import Strategy
from mercury.tuner.placed import Loop, read_placed
from random_program import Dice, random_boundary, random_mesh, random_program

__all__ = ["Case"]

ATTENTION = ("attention", "attention_backward")
PROGRAMS = ("matmul", "matmul", "attention", *ATTENTION, "decode_attention")
SHOWN = ("strategy", "dtype", "heads", "sink", "mask", "layout", "boundary")
CHOICES = ("direction", "offset", "reads", "results", "chunks")
RINGS = ("ring", "usp", "ag-gemm-shifted", "async-tp")
STEPS = (
    *("parallelize", "shift") * 3,
    *("tile", "scatter") * 2,
    *("shard", "broadcast", "replicate", "reorder", "join", "defer"),
)


def _has(buffer: Buffer, axes: Sequence[str]) -> bool:
    """Whether a buffer has one of some axes."""
    return any(dim.axis is not None and dim.axis.name in axes for dim in buffer.dims)


class Case:
    """A case by number; what is not legal is never asked for, or dropped.

    Every other begins with a named strategy, in which what it leaves open is drawn; all go on
    with steps that are drawn.
    """

    def __init__(self, number: int) -> None:
        self._dice = Dice(number)
        self.number = number
        self.hits: list[tuple[str, str]] = []
        self.mesh = random_mesh(self._dice)
        self._hit("mesh", f"{len(self.mesh.levels)} levels")
        # Two steps overlap where nothing repeats them and no result moves.
        self._pair = self.mesh.size == 2 and self._dice.chance(2, 3)
        names = RINGS if self._pair else mc.strategies.names()
        named = self._pair or self._dice.one_in(2)
        strategy = mc.strategies.get(self._dice.pick(names)) if named else None
        name = strategy.program.name if strategy else self._dice.pick(PROGRAMS)
        if strategy and name in ATTENTION and not self._pair:
            name = self._dice.pick(["attention", *ATTENTION])
        self.program = random_program(self._dice, name, self.mesh, self._hit)
        self._placed: set[str] = set()
        self._nests = 2 if self._dice.one_in(4) else 1
        if strategy is None or not self._begin(strategy):
            boundary = random_boundary(self._dice, self.program, self.mesh, self._hit)
            self.schedule = mc.Schedule(self.program, self.mesh, boundary)
            more = self._dice.number(1, 8)
        else:
            more = self._dice.number(0, 1 if self._pair else 3)
        for _ in range(more):
            self._step(self._dice.pick(STEPS))
        self._step("overlap")

    def _hit(self, kind: str, what: object) -> None:
        self.hits.append((kind, str(what)))

    # -- strategies -----------------------------------------------------------

    def _begin(self, strategy: Strategy) -> bool:
        """Apply a strategy, or give False where the layout cannot be cut as it cuts."""
        steps = "; ".join(strategy.steps(self.mesh, self.program))
        try:
            self.schedule = strategy.start(self.mesh, self.program)
            named = re.findall(r"\w+", steps)
            others = [axis.name for axis in self.program.axes if axis.name not in named]
            if others and not self._pair and self._dice.chance(2, 5):
                self._slice(self._dice.pick(others))
            for call in parse_recipe(steps):
                self._vary(call)
                if call.name in ("shard", "replicate"):
                    self._placed.add(str(call.args[0]))
        except mc.MercuryError:
            return False
        self._hit("strategy", strategy.name)
        self._hit("boundary", "of the strategy")
        return True

    def _slice(self, axis: str) -> None:
        """Put a loop over parts of an axis around, or among, those of a strategy."""
        self._cut(axis)
        if self._dice.one_in(2):
            self.schedule.reorder(f"{axis}_outer", self._loops()[0].name)

    def _vary(self, call: Call) -> None:
        """Apply a step of a strategy, its choices drawn where that is legal."""
        if call.name == "shift" and (self._repeats() or self._dice.one_in(2)):
            drawn = self._choices()
            if "offset" in call.kwargs:
                drawn["offset"] = drawn["direction"]
            other = replace(call, kwargs=call.kwargs | drawn)
            try:
                self.schedule.apply(str(other))
            except mc.ScheduleError:
                pass
            else:
                self._hit_shift(other)
                return
        self.schedule.apply(str(call))
        if call.name == "shift":
            self._hit_shift(call)
        else:
            self._hit("step", call.name)
        if len(call.args) > 1 and isinstance(call.args[1], list):
            self._hit("step", f"{call.name} over several levels")

    def _choices(self) -> dict[str, int | str]:
        """Draw how a shifted loop moves what it moves."""
        dice = self._dice
        # Loops around a ring that pulls whole parts let it read the next slice ahead.
        ahead = self._repeats() and dice.chance(2, 3)
        pulls = ahead or dice.one_in(3)
        results = dice.pick(["travel", "travel", "deliver", "fetch", "fetch"])
        direction = dice.pick([1, 1, -1])
        # Results are delivered in chunks, or fetched, when the own part is the last; or else
        # come whole, by messages.
        last = results == "fetch" or (results == "deliver" and dice.one_in(2))
        last = last and dice.chance(7, 8)
        drawn: dict[str, int | str] = {
            "direction": direction,
            "offset": direction if last else dice.pick([0, 0, 1, -1, 2]),
            "reads": "pull" if pulls or last else "rotate",
            "results": results,
            "chunks": dice.pick([1, 1, 2, 3]) if pulls or last else dice.pick([1, 1, 2]),
        }
        waits = bool(read_placed(self.schedule).deferred)
        if waits and drawn["results"] == "travel":
            drawn["results"] = "deliver"  # what travels is merged on its way
        if self._pair or ahead:
            drawn["chunks"] = 1
        # One that is rounded once, to what the outputs have, is as right as they are.
        narrow = self.program.outputs[0].dtype
        wide = drawn["results"] == "travel"
        if not wide and not self._pair and narrow in ("bf16", "f16") and dice.one_in(2):
            drawn["link"] = narrow
        return drawn

    def _hit_shift(self, call: Call) -> None:
        self._hit("step", "shift")
        for name in CHOICES:
            if name in call.kwargs:
                self._hit(name, call.kwargs[name])
        if "link" in call.kwargs:
            self._hit("link", "narrow")
        by = call.kwargs["by"]
        self._hit("shift by", "several" if isinstance(by, list) and len(by) > 1 else "one")

    # -- steps ----------------------------------------------------------------

    def _step(self, kind: str) -> None:
        before = self.schedule.recipe()
        try:
            getattr(self, f"_{kind}")()
        except mc.ScheduleError:
            return  # an illegal step leaves the schedule as it was
        if self.schedule.recipe() != before:
            self._hit("step", kind)

    def _loops(self) -> list[Loop]:
        nests = read_placed(self.schedule).nests[: self._nests]
        return [loop for nest in nests for loop in nest]

    def _repeats(self) -> bool:
        """Whether a loop repeats what is inside."""
        return any(
            loop.parts > 1 and not loop.levels and not loop.shift for loop in self._loops()
        )

    def _open(self) -> list[str]:
        """Give the loops that are neither parallel nor shifted yet."""
        return [loop.name for loop in self._loops() if not loop.levels and not loop.shift]

    def _free(self) -> list[str]:
        """Give the levels that no loop is spread over."""
        taken = {level for loop in self._loops() for level in loop.levels}
        return [level for level in self.schedule.mesh.names if level not in taken]

    def _parallelize(self) -> None:
        free = self._free()
        loops = self._open()
        if not free or not loops:
            return
        count = self._dice.number(1, len(free) + 1) if self._dice.one_in(3) else 1
        first = self._dice.number(0, len(free) - count + 1)
        self.schedule.parallelize(self._dice.pick(loops), free[first : first + count])
        if count > 1:
            self._hit("step", "parallelize over several levels")

    def _shift(self) -> None:
        parallel = [loop.name for loop in self._loops() if loop.levels]
        still = self._open()
        if not parallel or not still:
            return
        several = len(parallel) > 1 and self._dice.one_in(3)
        by: list[str] | str = list(parallel) if several else self._dice.pick(parallel)
        self._apply_shift(self._dice.pick(still), by, self._choices())

    def _apply_shift(self, loop: str, by: list[str] | str, drawn: dict[str, int | str]) -> None:
        call = Call(name="shift", args=[loop], kwargs={"by": by, **drawn})
        self.schedule.apply(str(call))
        self._hit_shift(call)

    def _tile(self) -> None:
        if still := self._open():
            self._cut(self._dice.pick(still))

    def _cut(self, loop: str) -> None:
        """Tile a loop, into a number of parts or parts of given sizes."""
        extents = {axis.name: axis.extent for axis in self.program.axes}
        if extents.get(loop, 0) > 1 and self._dice.one_in(2):
            self.schedule.tile(loop, self._dice.parts(extents[loop]))
            self._hit("step", "tile by sizes")
        else:
            # So that a ring may have several parts a rank.
            several = 2 * self.schedule.mesh[self._dice.pick(self.schedule.mesh.names)]
            self.schedule.tile(loop, self._dice.pick([1, 2, 2, 3, 4, several]))

    def _axis(self, buffers: Sequence[Buffer], of: Sequence[str] | None = None) -> str | None:
        """Draw an axis that buffers have, of some."""
        found = [
            dim.axis.name
            for buffer in buffers
            for dim in buffer.dims
            if dim.axis is not None and (of is None or dim.axis.name in of)
        ]
        return self._dice.pick(found) if found else None

    def _scatter(self) -> None:
        """Leave each rank of a parallel loop a part of what they sum; or send it around."""
        outputs = [each for each in self.program.outputs if each.name not in self._placed]
        sums = [
            loop
            for loop in self._loops()
            if not loop.shift and any(not _has(output, loop.axes) for output in outputs)
        ]
        free = self._free()
        if not free:
            sums = [loop for loop in sums if loop.levels]
        if not sums:
            return
        loop = self._dice.pick(sums)
        levels = list(loop.levels) or [self._dice.pick(free)]
        axis = self._axis([each for each in outputs if not _has(each, loop.axes)])
        if not loop.levels:
            self.schedule.parallelize(loop.name, levels)
        for output in outputs:
            if axis and _has(output, [axis]) and not _has(output, loop.axes):
                self.schedule.shard(output.name, axis, levels)
                self._placed.add(output.name)
        if axis in self._open() and self._dice.one_in(2):
            drawn = self._choices()
            ranks = prod(self.schedule.mesh[level] for level in levels)
            ring, each = self._ring(str(axis), ranks)
            drawn["offset"] = int(drawn["direction"]) * each
            self._apply_shift(ring, loop.name, drawn)

    def _ring(self, axis: str, ranks: int) -> tuple[str, int]:
        """Draw a loop over an axis for results to move along, and its parts a rank."""
        kind = self._dice.pick(["whole", "whole", "inside", "outside", "several"])
        if kind == "whole":
            return axis, 1
        each = 2 if kind == "several" else 1
        self.schedule.tile(axis, 2 if kind == "inside" else ranks * each)
        return f"{axis}_{'inner' if kind == 'inside' else 'outer'}", each

    def _shard(self) -> None:
        buffer = self._dice.pick(self.program.buffers)
        axis = self._axis([buffer])
        if axis and buffer.name not in self._placed:
            self.schedule.shard(buffer.name, axis, self._dice.pick(self.schedule.mesh.names))
            self._placed.add(buffer.name)

    def _broadcast(self) -> None:
        """Let panels of inputs along an axis that is summed come one a step."""
        level = self._dice.pick(self.schedule.mesh.names)
        loops = self._loops()
        spread = [axis for loop in loops if level in loop.levels for axis in loop.axes]
        inputs = [
            buffer
            for buffer in self.program.inputs
            if buffer.name not in self._placed and not _has(buffer, spread)
        ]
        summed = [
            axis
            for loop in loops
            for axis in loop.axes
            if not loop.levels and not all(_has(each, [axis]) for each in self.program.outputs)
        ]
        axis = self._axis(inputs, summed)
        for buffer in inputs:
            if axis and _has(buffer, [axis]):
                self.schedule.shard(buffer.name, axis, level, reads="broadcast")
                self._placed.add(buffer.name)

    def _replicate(self) -> None:
        buffer = self._dice.pick(self.program.buffers)
        if buffer.name not in self._placed:
            self.schedule.replicate(buffer.name, self._dice.pick(self.schedule.mesh.names))
            self._placed.add(buffer.name)

    def _defer(self) -> None:
        # Of a pair that is deferred already the second is refused, and stays so.
        output = self._dice.pick(self.program.outputs)
        placed = read_placed(self.schedule)
        if any(
            loop.shift and loop.shift.results == "travel" and output.name in placed.moved(loop)
            for loop in self._loops()
        ):
            return
        narrow = output.dtype in ("bf16", "f16") and self._dice.chance(2, 3)
        self.schedule.defer(output.name, partial=output.dtype if narrow else None)
        self._hit("partial", "narrow" if narrow else "wide")

    def _reorder(self) -> None:
        loops = [loop.name for loop in self._loops()]
        if len(loops) > 1:
            one = self._dice.pick(loops)
            other = self._dice.pick([loop for loop in loops if loop != one])
            self.schedule.reorder(one, other)

    def _join(self) -> None:
        loops = [loop.name for loop in self._loops()]
        if len(loops) > 1:
            at = self._dice.number(1, len(loops))
            self.schedule.join(loops[at - 1], loops[at])

    def _overlap(self) -> None:
        """Let the two steps of a ring overlap, where what both write can be deferred.

        Or those of the outermost loop in sequence, where something lives elsewhere outside.
        """
        found = [
            loop
            for loop in rings(self.schedule)
            if loop.parts == 2 and loop.shift and loop.shift.chunks == 1 and not loop.shift.link
        ]
        steps = [loop for loop in self._loops() if loop.parts > 1 and not loop.levels]
        placed = read_placed(self.schedule)
        if not rings(self.schedule) and steps and placed.boundary != placed.inside:
            if self._dice.one_in(3):  # most of these are not lowered
                self.schedule.overlap(steps[0].name)
            return
        # Stripes, given bounds and documents may take several launches a step.
        whole = ("mask", "documents") not in self.hits and all(
            axis.layout in ("block", "zigzag") for axis in self.program.axes
        )
        if (
            not whole
            or len(found) != 1
            or len(steps) != 1
            or not placed.moved(found[0]).keys() <= placed.inputs
        ):
            return
        self.schedule.overlap(found[0].name)
        for output in self.program.outputs:
            try:
                self.schedule.defer(output.name)
            except mc.ScheduleError:
                continue  # deferred already, with its pair, or never merged

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
        self.hits += [("rule", rule) for rule in applied(self.schedule)]
        options = SimOptions(
            seed=self.number + 1, max_delay_us=self._dice.pick([20, 200, 2000])
        )
        if level := self._dice.pick(["", "", "", *self.schedule.mesh.names]):
            try:
                plan = self.schedule.compile(puts=level)
                self.hits.append(("transport", "rma"))
            except mc.CompileError as error:
                if "can be a put" not in error.message:
                    return end("ALARM", f"puts over '{level}': {error.message}")
        try:
            result = trial(plan, self.number, options)
        except mc.RunError as error:
            return end("ERROR", error)
        return end("right" if result.right else "WRONG", result.errors)
