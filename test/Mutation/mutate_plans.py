"""Break the plans of every strategy in every listed way, and see that it is noticed.

    python test/Mutation/mutate_plans.py --all
    python test/Mutation/mutate_plans.py --sample 100 --seed 1 --strategy ring

Each mutant is checked by `commir-check-plan`. One that the checker accepts is run, unchecked,
on the embedded ranks with delayed and reordered messages: it is harmless when every run
gives what the plan gives, bit for bit, and missed otherwise. Some plans are as good in another
order of sums: nested rings that pull may visit their parts in any order, and of stripes that
queries see whole, any number may be one launch. These compute in float64, and their mutants are
harmless when the runs agree bit for bit, and with the plan but for rounding.
--show prints the mutants that were missed, and --why prints the harmless ones too.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import mercury as mc
import numpy as np
from lane_orders import LANES, reorder
from mercury._mlir import ir
from mercury._mlir._mlir_libs import _mercury
from mercury.libraries import runtime_path
from mercury.runtime import SimOptions
from mercury.runtime.compiled import arena_sizes
from mercury.runtime.plan import Plan
from mutators import OPERATORS
from plan_text import Text

Steps = list[str]


def more(transform: str, choice: str) -> Callable[[Steps], Steps]:
    """Give what adds an operand to each step of one transform."""
    return lambda steps: [
        step.removesuffix(")") + f", {choice})" if step.startswith(f"{transform}(") else step
        for step in steps
    ]


# Ways of a strategy that its name does not give.
VARIANTS: dict[str, tuple[str, Callable[[Steps], Steps]]] = {
    "deliver in chunks": ("gemm-rs-shifted", more("shift", "results=deliver, chunks=2")),
    "fetch in chunks": ("gemm-rs-shifted", more("shift", "results=fetch, chunks=2")),
    "lanes": ("gemm-rs-shifted", more("shift", "results=fetch, chunks=3, link=bf16")),
    "narrow link": ("gemm-rs-shifted", more("shift", "link=bf16")),
    "balanced": ("ring", more("shift", "reads=pull")),
    "read ahead": ("ring", more("shift", "reads=pull")),
    "steps in lanes": (
        "ring",
        lambda steps: [*more("shift", "reads=pull")(steps), "overlap(sk)"],
    ),
    "sent steps in lanes": ("ring", lambda steps: [*steps, "overlap(sk)"]),
    "one by one": ("ring", list),
    "stripes": ("ring", list),
    "reduced at the end": (  # for results of several parts a rank do not travel so
        "gemm-rs-shifted",
        lambda steps: [
            "tile(i, 12)",
            *steps[:-1],
            "shift(i_outer, by=k, direction=-1, results=fetch, chunks=2)",
        ],
    ),
    "broadcast": ("context-parallel", more("shard", "reads=broadcast")),
    "panels that are packed": ("summa", lambda steps: ["tile(k, 6)", *steps]),
}
MESHES = ({"gpu": 3}, {"node": 2, "gpu": 2})
STRIPES = {"one by one": "striped(1)", "stripes": "striped(2)"}
# Plans that are as good in another order of sums, on meshes of so many levels or more.
ANY_ORDER = {"balanced": 2, "read ahead": 2, "stripes": 1}
OTHER_MESHES = {"lanes": ({"gpu": 2},)}  # which are used between two
# What another order of sums changes in float64; a tile more or less changes far more.
ROUNDING = 1e-13
SEEDS = (0, 1, 2, 3)
LIMIT_S = 60


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A plan to break; whether one that merges in another order is as good."""

    name: str
    plan: Plan
    context: Any
    any_order: bool

    def agrees(self, found: Any, expected: Any) -> bool:
        """Whether what runs of a mutant gave is what runs of the plan gave."""
        if found == expected or not self.any_order or isinstance(found, str):
            return bool(found == expected)
        return all(run == found[0] for run in found) and all(
            np.allclose(np.frombuffer(one), np.frombuffer(other), rtol=0, atol=ROUNDING)
            for one, other in zip(found[0], expected[0], strict=True)
        )


def subjects(strategies: list[str]) -> Iterator[Subject]:
    """Lower each strategy on each mesh, small and uneven, merged as it goes and at the end."""
    for name in strategies:
        base, vary = VARIANTS.get(name, (name, None))
        strategy = mc.strategies.get(base)
        for levels in OTHER_MESHES.get(name, MESHES):
            any_order = name in ANY_ORDER and len(levels) >= ANY_ORDER[name]
            if strategy.program.name == "matmul":
                program = strategy.program(m=7, n=5, depth=6, dtype="bf16")
            else:
                dtype = "f64" if any_order else "bf16"
                sizes = {"h": 4, "d": 2, "dtype": dtype, "mask": "causal", "sk": 7}
                if "sq" in strategy.program.parameters:
                    sizes["sq"] = 5
                if name == "balanced":  # pieces that a launch takes together
                    sizes |= {"sq": 13, "sk": 13, "layout": {"sq": "zigzag", "sk": "zigzag"}}
                if name in STRIPES:
                    layout = dict.fromkeys(("sq", "sk"), STRIPES[name])
                    sizes |= {"sq": 13, "sk": 13, "layout": layout}
                if name == "one by one":  # beside rows that see no key
                    sizes |= {"sink": True, "mask": mc.causal(-4)}
                if name == "read ahead":
                    sizes |= {"b": 3}
                known = strategy.program.parameters
                program = strategy.program(**{k: v for k, v in sizes.items() if k in known})
            mesh = "x".join(str(size) for size in levels.values())
            for end in ("", ", merged at the end"):
                try:
                    schedule = varied(strategy, vary, mc.Mesh(**levels), program)
                    if name == "read ahead":  # in slices, of which one is shorter
                        schedule.tile("b", 2)
                    if end:
                        partial = "bf16" if name == "balanced" else None
                        schedule.defer(program.outputs[0].name, partial=partial)
                    plan = schedule.compile()
                except mc.MercuryError:
                    continue  # not lowered yet
                context = ir.Context()
                context.enable_multithreading(False)  # threads do not live on in a fork
                yield Subject(
                    name=f"{name} on {mesh}{end}",
                    plan=plan,
                    context=context,
                    any_order=any_order,
                )


def varied(
    strategy: Any, vary: Callable[[Steps], Steps] | None, mesh: mc.Mesh, program: Any
) -> mc.Schedule:
    """Schedule a strategy with other steps."""
    if vary is None:
        return strategy.schedule(mesh, program)
    steps = vary(strategy.steps(mesh, program))
    return replace(strategy, recipe=lambda *_: steps).schedule(mesh, program)


def run(subject: Subject, text: str, results: Any) -> None:
    """Run the text of a plan with several orders of messages; send what came out."""
    plan = subject.plan
    module = ir.Module.parse(text, subject.context)
    succeeded, messages, _ = _mercury.run_pipeline(
        module, "builtin.module(commir-spmd-to-llvm)"
    )
    if not succeeded:
        results.send(messages[0][0][1])
        return
    local_bytes, symmetric_bytes = arena_sizes(text)
    found = Plan(
        program=plan.program,
        mesh=plan.mesh,
        layouts={buffer.name: plan.layout(buffer.name) for buffer in plan.program.buffers},
        spmd=text,
        local_bytes=local_bytes,
        symmetric_bytes=symmetric_bytes,
        jit=_mercury.Jit(module, 0, [str(runtime_path())]),
        context=subject.context,
    )
    rng = np.random.default_rng(7)
    whole = {b.name: rng.standard_normal(b.shape) for b in plan.program.inputs}
    outputs = []
    for seed in SEEDS:
        shards = found.run(found.scatter(**whole), SimOptions(seed=seed))
        outputs.append(
            [shard[b.name].tobytes() for shard in shards for b in plan.program.outputs]
        )
    results.send(outputs)


def orders(text: str, context: Any) -> list[str]:
    """Give the text of a plan, and where it uses lanes, in two more orders that they allow."""
    texts = [text]
    if any(op in text for op in LANES):
        for sign in (1, -1):
            other = Text(text, context)
            reorder(other, sign)
            texts.append(str(other.module.operation.get_asm()))
    return texts


def outputs(subject: Subject, text: str) -> Any:
    """Run in a process of its own: a broken plan may do anything."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=run, args=(subject, text, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(LIMIT_S) else "it hangs"
    except EOFError:
        return "it ended with an error"
    finally:
        process.kill()
        process.join()


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A broken plan by number, so that it can be made again."""

    subject: Subject
    operator: str
    number: int

    def make(self) -> tuple[str, Text]:
        """Parse the plan and break it."""
        text = Text(self.subject.plan.spmd, self.subject.context)
        found = OPERATORS[self.operator](text)
        mutation = next(itertools.islice(found, self.number, None))
        what = mutation.describe()
        mutation.apply()
        return what, text


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Count what each operator can do to a plan."""
    for operator, find in OPERATORS.items():
        count = len(list(find(Text(subject.plan.spmd, subject.context))))
        for number in range(count):
            yield Mutant(subject=subject, operator=operator, number=number)


def judge(mutant: Mutant, expected: dict[str, Any]) -> tuple[str, str]:
    """Say whether a mutant is caught, harmless or missed, and which it is."""
    what, text = mutant.make()
    name = f"{mutant.subject.name}: {mutant.operator} {mutant.number}: {what}"
    try:
        text.module.operation.verify()
    except ir.MLIRError:
        return "no plan", name
    proofs, messages = _mercury.check_plans(text.module)
    if messages:
        return "caught", f"{name}: {messages[0][0][1]}"
    assert proofs, name
    mutated = str(text.module.operation.get_asm())
    if mutant.subject.name not in expected:
        original, *others = orders(mutant.subject.plan.spmd, mutant.subject.context)
        expected[mutant.subject.name] = outputs(mutant.subject, original)
        assert isinstance(expected[mutant.subject.name], list), expected[mutant.subject.name]
        for other in others:
            assert outputs(mutant.subject, other) == expected[mutant.subject.name], other
    for order in orders(mutated, mutant.subject.context):
        found = outputs(mutant.subject, order)
        if not mutant.subject.agrees(found, expected[mutant.subject.name]):
            return "missed", f"{name}: {found if isinstance(found, str) else ''}"
    return "harmless", name


def main() -> int:
    """Print, for each operator, what became of its mutants."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--sample", type=int, default=100, help="this many, if not all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--strategy", action="append", help="only these")
    parser.add_argument("--operator", action="append", help="only these")
    parser.add_argument("--show", action="store_true", help="print the mutants missed")
    parser.add_argument("--why", action="store_true", help="print all that were accepted")
    options = parser.parse_args()

    chosen = [
        mutant
        for subject in subjects(options.strategy or [*mc.strategies.names(), *VARIANTS])
        for mutant in mutants(subject)
        if not options.operator or mutant.operator in options.operator
    ]
    if not options.all:
        rng = np.random.default_rng(options.seed)
        picked = rng.permutation(len(chosen))[: options.sample]
        chosen = [chosen[i] for i in sorted(picked)]
    table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    expected: dict[str, Any] = {}
    try:
        for mutant in chosen:
            verdict, what = judge(mutant, expected)
            table[mutant.operator][verdict] += 1
            if (verdict == "missed" and options.show) or (
                verdict == "harmless" and options.why
            ):
                print(f"{verdict}: {what}", flush=True)
    except KeyboardInterrupt:
        print("interrupted; so far:")
    print_table(table)
    return 1 if any(counts["missed"] for counts in table.values()) else 0


def print_table(table: dict[str, collections.Counter[str]]) -> None:
    """Print a line for each operator."""
    print(f"{'operator':30} {'applicable':>10} {'caught':>8} {'harmless':>8} {'missed':>8}")
    for operator in OPERATORS:
        counts = table[operator]
        applicable = counts.total() - counts["no plan"]
        print(
            f"{operator:30} {applicable:10} {counts['caught']:8} {counts['harmless']:8} "
            f"{counts['missed']:8}"
        )


if __name__ == "__main__":
    sys.exit(main())
