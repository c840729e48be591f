"""The main job: the fastest plan of an operator that fits a machine, and why it is that.

python -m mercury.examples.demo [--report FILE] [--seconds N] [--memory BYTES]

Tunes the attention of Llama 3 8B for two nodes of four H100, on this laptop: every schedule is
compared by prediction. Then the best plan and two others run on embedded ranks, at reduced
length, against float64, and a page says the rest.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import mercury as mc
from mercury import report
from mercury.report import Check
from mercury.tuner import Choice, TuneResult, tune
from mercury.tuner.progress import Report, on_terminal
from mercury.tuner.verdict import why

__all__ = ["main"]

TOPOLOGY = "h100-4x2"
TOKENS = 131_072
# A prime: no rank gets what another one gets.
REDUCED = 257
# Tokens come cut over all ranks, and the result is wanted so.
LEVELS = ["node", "gpu"]
BOUNDARY = {"Q": {"sq": LEVELS}, "K": {"sk": LEVELS}, "V": {"sk": LEVELS}, "O": {"sq": LEVELS}}
SAY_EVERY_S = 10.0


def llama_attention(tokens: int) -> mc.Program:
    """Give the attention of Llama 3 8B: 32 query heads, 8 key heads, 128 deep, causal.

    Both axes are in zigzag, so that the causal mask leaves each rank the same work.
    """
    zigzag = {"sq": "zigzag", "sk": "zigzag"}
    return mc.programs.attention(
        h=32, group=4, d=128, sq=tokens, sk=tokens, mask="causal", dtype="bf16", layout=zigzag
    )


@contextmanager
def _lines() -> Iterator[Report]:
    """Say how far it is, in a line now and then."""
    last = time.monotonic()

    def told(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > SAY_EVERY_S:
            print(f"  {text}", flush=True)
            last = time.monotonic()

    yield told


def _progress() -> AbstractContextManager[Report]:
    return on_terminal() if sys.stderr.isatty() else _lines()


def _search(memory: str, seconds: float) -> TuneResult:
    print("1. Search: every distinct schedule, compared on the described machine")
    found = tune(
        llama_attention(TOKENS),
        topology=TOPOLOGY,
        boundary=BOUNDARY,
        memory=memory,
        time_limit=seconds,
        cache=False,
        progress=_progress,
    )
    print("\n".join(f"  {line}" for line in str(found).splitlines()))
    if found.ended == "time limit":
        print("  (stopped to keep this job under three minutes; --seconds gives it more)")
    return found


def _explain(found: TuneResult) -> None:
    print("\n2. What was chosen, and why")
    first, *rest = why(found)
    print(f"  {first}")
    for sentence in rest:
        print(f"  - {sentence}")


def _three(found: TuneResult) -> list[Choice]:
    """Give the best plan and two others: plain library calls, and a leaner one if there is."""
    named = [found.chosen, found.plain, *found.pareto, found.runner_up]
    plans = {each.fingerprint: each for each in named if each is not None}
    return list(plans.values())[:3]


def _prove(found: TuneResult) -> list[Check]:
    ranks = found.mesh.size
    print(f"\n3. Proof: {REDUCED} tokens on {ranks} ranks of this process, against float64")
    checks = []
    for choice in _three(found):
        made = report.check(found, choice, llama_attention(REDUCED))
        verdict, limit = "right" if made.right else "WRONG", max(made.limits.values())
        moved = ", ".join(
            f"{level} {sent:,} B (predicted {made.predicted_bytes[level]:,})"
            for level, sent in made.measured_bytes.items()
        )
        print(f"  {verdict}: error {made.error:.1e} (limit {limit:.0e}); moved {moved}")
        print(f"         {choice.recipe}", flush=True)
        checks.append(made)
    return checks


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the job; 0 when all that ran was right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--report", default="mercury-demo.html", help="the page that is written"
    )
    parser.add_argument("--seconds", type=float, default=60, help="limit of the search")
    parser.add_argument("--memory", default="1GiB", help="limit of a rank")
    options = parser.parse_args(arguments)

    start = time.monotonic()
    print(f"Attention of Llama 3 8B (32 query heads, 8 key heads), {TOKENS:,} tokens, causal,")
    print("bf16, on 2 nodes of 4 H100 with 100 Gbit/s between them,", end=" ")
    print(f"{options.memory} of memory a rank.\n")
    try:
        found = _search(options.memory, options.seconds)
        _explain(found)
        checks = _prove(found)
        report.write(
            options.report,
            found,
            simulate=lambda schedule: mc.simulate(schedule, TOPOLOGY),
            checks=checks,
        )
    except mc.MercuryError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    right = all(each.right for each in checks)
    print(f"\n4. Report: {options.report} (open it in a browser)")
    print(
        f"{sum(each.right for each in checks)} of {len(checks)} plans right, "
        f"{time.monotonic() - start:.0f} s in all"
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
