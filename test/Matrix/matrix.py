"""Every pair of strategy, mesh, length, mask, heads, layout, dtype and choice, once.

    python test/Matrix/matrix.py --seconds 60 --seed 1
    python test/Matrix/matrix.py --full

A case is right when its error against float64 is at most 1.25 times that of the same program
on one rank and one unit in the last place. What a schedule needs that is not lowered yet is
counted by its reason and covers no pair. --only N repeats case N of a seed.
"""

from __future__ import annotations

import argparse
import collections
import functools
import math
import pathlib
import re
import sys
from collections.abc import Mapping
from dataclasses import replace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Fuzz"))

import mercury as mc
from isolated import Outcome, attempt, outcomes
from mercury.runtime import SimOptions
from mercury.runtime.trial import trial
from pairs import Case, covering, pairs_of

# The reference is float64 itself, so that of f64 has room for another order of its sums.
ULP = {"f64": 2.0**-50, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
CHOICES = {
    "as named": "",
    "other way": "direction=-1",
    "later start": "offset=2",
    "pull": "reads=pull",
    "pull in chunks": "reads=pull, chunks=2",
    "deliver": "results=deliver",
}
HEADS = {
    "mha": {"h": 3},
    "gqa": {"h": 4, "group": 2},
    "mqa": {"h": 3, "group": 3},
    "other values": {"h": 2, "dv": 5},
}
LENGTHS = ["0", "1", "2", "7", "64", "65", "1000"]
VALUES = {
    "strategy": [
        f"{name}{way}"
        for name in mc.strategies.names()
        for way in ("", " backward")
        if not way or mc.strategies.get(name).program.name == "attention"
    ],
    "mesh": ["1", "2", "3", "4", "5", "7", "8", "2x2", "2x3", "3x2", "2x4", "2x2x2"],
    "mask": ["full", "causal", "offset", "window", "documents"],
    "heads": list(HEADS),
    "layout": ["block", "zigzag", "striped", "bounds"],
    "dtype": list(ULP),
    "choice": list(CHOICES),
    "merge": ["eager", "at the end"],
}


def fits(case: Mapping[str, str]) -> bool:
    """Whether a part of a case has a meaning; what has none is no pair."""
    length = int(case.get("length", 64))
    if case.get("mask") == "documents" and length < 2:
        return False
    if "strategy" not in case:
        return True
    name, _, backward = case["strategy"].partition(" ")
    method = mc.strategies.get(name)
    if method.program.name != "attention":
        plain = {"mask": "full", "heads": "mha"}
        if method.program.name == "decode_attention" and case.get("heads") != "other values":
            del plain["heads"]
        if any(case.get(key, value) != value for key, value in plain.items()):
            return False
    # The gradient of a softmax over few keys is next to 0: nothing to compare with.
    if backward and length < 7:
        return False
    return case.get("choice", "as named") == "as named" or shifts(name)


@functools.cache
def shifts(strategy: str) -> bool:
    """Whether a strategy shifts a loop, and so has choices."""
    steps = mc.strategies.get(strategy).steps(mc.Mesh(gpu=2))
    return any(step.startswith("shift(") for step in steps)


def mesh_of(text: str) -> mc.Mesh:
    """Read a mesh such as 2x3, outermost level first."""
    sizes = [int(size) for size in text.split("x")]
    return mc.Mesh(**dict(zip(["rack", "node", "gpu"][-len(sizes) :], sizes, strict=True)))


def program_of(case: Case, shards: int) -> mc.Program:
    """Make the program of a case; its axes are cut in blocks for one shard."""
    name, _, backward = case["strategy"].partition(" ")
    factory = mc.strategies.get(name).program
    n = int(case["length"])
    cut = {
        "block": "block",
        "zigzag": "zigzag",
        "striped": "striped(3)",
        # The first shard is empty, the last the largest.
        "bounds": f"bounds{[n * p * p // (shards * shards) for p in range(shards)] + [n]}",
    }["block" if shards == 1 else case.get("layout", "block")]
    axes = {"matmul": ["i"], "decode_attention": ["sk"]}.get(factory.name, ["sq", "sk"])
    options: dict[str, object] = {"dtype": case["dtype"]}
    if cut != "block":
        options["layout"] = dict.fromkeys(axes, cut)
    if factory.name == "matmul":
        return factory(m=n, n=11, depth=9, **options)
    options |= {**HEADS[case["heads"]], "sk": n, "d": 8}
    if factory.name == "decode_attention":
        return factory(**options)
    mask = {
        "full": mc.Mask(),
        "causal": mc.causal(),
        "offset": mc.causal(2),
        "window": mc.window(max(n // 3, 1)),
        "documents": mc.causal().packed([0, n // 2, n]) if n > 1 else mc.Mask(),
    }[case["mask"]]
    made = mc.programs.attention_backward if backward else factory
    return made(sq=n, mask=mask, **options)


def scheduled(case: Case) -> mc.Schedule:
    """Schedule a case: its strategy, with its choice in every shift."""
    mesh = mesh_of(case["mesh"])
    program = program_of(case, mesh.size)
    method = mc.strategies.get(case["strategy"].partition(" ")[0])
    choice = CHOICES[case["choice"]]
    if not choice:
        return merged(method.schedule(mesh, program), case["merge"])
    given = "|".join(item.partition("=")[0].strip() for item in choice.split(","))
    steps = [
        re.sub(rf", (?:{given})=-?\w+", "", step).removesuffix(")") + f", {choice})"
        if step.startswith("shift(")
        else step
        for step in method.steps(mesh, program)
    ]
    return merged(
        replace(method, recipe=lambda *_: steps).schedule(mesh, program), case["merge"]
    )


def merged(schedule: mc.Schedule, when: str) -> mc.Schedule:
    """Let a schedule merge all of its results at the end, or as they come."""
    for buffer in schedule.program.outputs if when == "at the end" else ():
        if buffer.name != "LSE":  # deferred with its partner
            schedule.defer(buffer.name)
    return schedule


@functools.cache
def alone(key: tuple[tuple[str, str], ...]) -> dict[str, float]:
    """Give the errors of a program on one rank."""
    plan = mc.Schedule(program_of(dict(key), 1), mc.Mesh(gpu=1)).compile()
    return trial(plan).errors


def accepts(error: float, one: float, dtype: str) -> bool:
    """Whether an error is that of one rank, but for a quarter and the last place."""
    return math.isfinite(error) and error <= 1.25 * one + ULP[dtype]


def run(case: Case, number: int) -> Outcome:
    """Compile and run a case, and compare it with one rank."""
    text = " | ".join(case.values())

    def end(kind: str, why: object) -> Outcome:
        return Outcome(number=number, kind=kind, text=f"{text}: {why}")

    try:
        schedule = scheduled(case)
        plan = schedule.compile()
    except mc.CompileError as error:
        if "breaks the plan" in error.message:
            return end("ALARM", error.message)
        rule = re.search(r"needs rule (R\d(?: \w+)*)", error.message)
        return end(f"refused: {rule[1] if rule else error.message[:60]}", error.message)
    except (mc.ScheduleError, mc.ProgramError) as error:
        return end(f"refused: {re.sub(r'[^a-z ]+', '', error.message)[:60]}", error.message)
    try:
        made = trial(plan, 0, SimOptions(seed=number + 1)).errors
        matters = sorted(
            case.items() - {(key, case[key]) for key in ("mesh", "choice", "layout", "merge")}
        )
        one = alone(tuple(matters))
    except mc.MercuryError as error:
        return end("ERROR", error)
    dtypes = {buffer.name: buffer.dtype for buffer in plan.program.outputs}
    wrong = {
        name: f"{error:.2e} against {one[name]:.2e} on one rank"
        for name, error in made.items()
        if not accepts(error, one[name], dtypes[name])
    }
    return end("WRONG" if wrong else "right", f"{schedule.recipe()}: {wrong or made}")


def main() -> int:
    """Run the cases, or as many as there is time for; 1 when one of them fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="default: all cases")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of cases")
    parser.add_argument("--full", action="store_true", help="length 4097, too")
    parser.add_argument("--only", type=int, metavar="N", help="run this case alone")
    options = parser.parse_args()
    values = VALUES | {"length": LENGTHS + (["4097"] if options.full else [])}
    cases, possible = covering(values, fits, options.seed)
    cases.sort(key=lambda case: int(case["length"]) > 100)  # most pairs soon

    def one(number: int) -> Outcome:
        return run(cases[number], number)

    if options.only is not None:
        outcome = attempt(one, options.only)
        print(outcome.kind, outcome.text)
        return int(outcome.failed)
    again = f"python test/Matrix/matrix.py --seed {options.seed}{' --full' * options.full}"
    counts: collections.Counter[str] = collections.Counter()
    covered = set()
    for outcome in outcomes(one, range(len(cases)), options.seconds):
        counts[outcome.kind] += 1
        if outcome.kind == "right":
            covered |= pairs_of(cases[outcome.number])
        if outcome.failed:
            print(
                f"{outcome.kind} {outcome.text}\n  {again} --only {outcome.number}", flush=True
            )
    for kind, count in counts.most_common():
        print(f"{count:6} {kind}")
    print(
        f"{counts.total()} of {len(cases)} cases; "
        f"{len(covered)} of {len(possible)} pairs covered"
    )
    return int(any(kind.isupper() for kind in counts))


if __name__ == "__main__":
    sys.exit(main())
