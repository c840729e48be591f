"""Random programs, schedules and meshes against float64.

    tools/fuzz --seconds 60 --seed 1
    tools/fuzz --count 500 --seed 1 --save one.json    # and 2, 3 ... in other processes
    tools/fuzz --merge one.json two.json --require-coverage

Each case is made from its number alone: --only N repeats case N. Programs are products,
attention, its gradients and decoding, in every mask, layout and dtype, on meshes of up to
three levels; schedules are legal by construction, and messages come late and out of order.
What a schedule needs that is not lowered yet is counted by its reason. A wrong result, an
error while running, an alarm of the plan checker, a crash and a hang are failures; each is
printed with the command that repeats it. What fewer than 1 of 100 cases had is printed too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from isolated import Outcome, attempt, outcomes
from random_case import Case
from tally import ENOUGH, Tally

EACH_SEED = 1_000_000


def run(number: int) -> Outcome:
    """Make a case and run it."""
    return Case(number).run()


def explore(seed: int, count: int, seconds: float, save: Path | None) -> Tally:
    """Run the cases of a seed until they or the time end; print those that fail.

    What is known is saved after each case: a process that is killed has it.
    """
    tally = Tally()
    first = seed * EACH_SEED
    for outcome in outcomes(run, range(first, first + count), seconds):
        tally.add(outcome)
        if save:
            tally.save(save)
        if outcome.failed:
            print_failure(*tally.failures[-1])
    return tally


def print_failure(number: int, text: str) -> None:
    """Print what was found, and how to find it again."""
    print(text)
    print(f"  tools/fuzz --only {number}", flush=True)


def main() -> int:
    """Run cases, or add up runs; 1 when a case fails, or coverage that is required."""
    parser = argparse.ArgumentParser(
        prog="tools/fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=60, help="default %(default)s")
    parser.add_argument("--count", type=int, default=EACH_SEED, help="at most so many cases")
    parser.add_argument(
        "--seed", type=int, default=0, help="the first case is a million times it"
    )
    parser.add_argument("--only", type=int, metavar="N", help="run this case alone")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write the counts as JSON, after each case"
    )
    parser.add_argument(
        "--merge", type=Path, nargs="+", metavar="FILE", help="add up what runs have saved"
    )
    parser.add_argument(
        "--require-coverage",
        action="store_true",
        help=f"fail unless {ENOUGH} cases or more were made, 90 of 100 were executed, and "
        "each kind was in 1 of 100",
    )
    options = parser.parse_args()
    if options.count > EACH_SEED:
        parser.error(f"a seed has {EACH_SEED} cases, got --count {options.count}")
    if options.only is not None:
        outcome = attempt(run, options.only)
        print(outcome.kind, outcome.text)
        return int(outcome.failed)
    if options.merge:
        tally = Tally.merged(options.merge)
        for number, text in tally.failures:
            print_failure(number, text)
    else:
        tally = explore(options.seed, options.count, options.seconds, options.save)
    for line in tally.lines():
        print(line)
    short = tally.shortfalls()
    if short:
        print("fell short of 1 in 100:", *short, sep="\n  ")
    total = tally.counts.total()
    uncovered = options.require_coverage and (bool(short) or total < ENOUGH)
    if uncovered and total < ENOUGH:
        print(f"coverage takes {ENOUGH} cases, these are {total}")
    return int(bool(tally.failures) or uncovered)


if __name__ == "__main__":
    sys.exit(main())
