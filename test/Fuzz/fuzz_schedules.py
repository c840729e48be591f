"""Random programs, schedules and meshes against float64.

    tools/fuzz --seconds 60 --seed 1

Each case is made from its number alone: --only N repeats case N. Programs are products,
attention, its gradients and decoding, in every mask, layout and dtype, on meshes of up to
three levels; schedules are legal by construction, and messages come late and out of order.
What a schedule needs that is not lowered yet is counted by its reason. A wrong result, an
error while running, an alarm of the plan checker, a crash and a hang are failures; each is
printed with the command that repeats it.
"""

from __future__ import annotations

import argparse
import collections
import sys

from isolated import Outcome, attempt, outcomes
from random_case import Case

Hits = collections.Counter[tuple[str, str]]


def run(number: int) -> Outcome:
    """Make a case and run it."""
    return Case(number).run()


def report(counts: collections.Counter[str], hits: Hits) -> None:
    """Print what became of the cases, and what those that ran were made of."""
    for kind, count in counts.most_common():
        print(f"{count:6} {kind}")
    total = sum(counts.values())
    refused = sum(count for kind, count in counts.items() if kind.startswith("refused"))
    failed = sum(count for kind, count in counts.items() if kind.isupper())
    print(
        f"{total} cases, {counts['right'] + counts['WRONG']} executed, {refused} refused "
        f"({100 * refused / max(total, 1):.1f} %), {failed} failed"
    )
    for kind in sorted({kind for kind, _ in hits}):
        found = [(what, count) for (of, what), count in hits.most_common() if of == kind]
        print(f"  {kind:10} " + ", ".join(f"{what} {count}" for what, count in found))


def main() -> int:
    """Run cases until the time is up; 1 when one of them fails."""
    parser = argparse.ArgumentParser(
        prog="tools/fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=60, help="default %(default)s")
    parser.add_argument(
        "--seed", type=int, default=0, help="the first case is a million times it"
    )
    parser.add_argument("--only", type=int, metavar="N", help="run this case alone")
    options = parser.parse_args()
    if options.only is not None:
        outcome = attempt(run, options.only)
        print(outcome.kind, outcome.text)
        return int(outcome.failed)
    first = options.seed * 1_000_000
    counts: collections.Counter[str] = collections.Counter()
    hits: Hits = collections.Counter()
    for outcome in outcomes(run, range(first, first + 1_000_000), options.seconds):
        counts[outcome.kind] += 1
        if outcome.kind == "right":
            hits.update(set(outcome.hits))
        if outcome.failed:
            print(f"{outcome.kind} {outcome.text}")
            print(f"  tools/fuzz --only {outcome.number}", flush=True)
    report(counts, hits)
    return int(any(kind.isupper() for kind in counts))


if __name__ == "__main__":
    sys.exit(main())
