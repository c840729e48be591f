"""What became of many cases: counted, added up, saved, and held against what was to be hit."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import mercury as mc
from applied_rules import RULES
from isolated import Outcome
from random_program import LAYOUTS, MASKS

__all__ = ["ENOUGH", "KINDS", "Tally"]

# Coverage is judged from so many cases on; then each kind is in 1 of 100, and of 100 cases
# 90 are executed.
ENOUGH = 2000
KINDS = {
    "strategy": tuple(mc.strategies.names()),
    "rule": (
        *RULES,
        *("R2 gather", "R2 broadcast", "R3 exchange", "R3 pull", "R3 of the next slice"),
        *("R4 all_reduce", "R4 gather", "R5 reduce_scatter", "R5 exchange"),
        *("R6 exchange", "R6 pull"),
    ),
    "mask": MASKS,
    "layout": LAYOUTS,
    "boundary": ("given", "strided"),
    "step": (
        *("tile", "tile by sizes", "join", "reorder", "parallelize", "shift", "overlap"),
        *("shard", "scatter", "broadcast", "replicate", "defer"),
        *("parallelize over several levels", "split_level"),
    ),
    "shift by": ("one", "several"),
    "direction": ("1", "-1"),
    "reads": ("rotate", "pull"),
    "results": ("travel", "deliver", "fetch"),
    "chunks": ("1", "2", "3"),
    "link": ("narrow",),
    "transport": ("rma",),
    "partial": ("wide", "narrow"),
    "dtype": ("f64", "f32", "f16", "bf16"),
    "program": ("matmul", "attention", "attention_backward", "decode_attention"),
    "mesh": ("1 levels", "2 levels", "3 levels"),
}


@dataclass
class Tally:
    """The cases of a run, or of several.

    Attributes
    ----------
    counts
        How many ended in each way.
    hits
        How many right ones had each thing, as ("mask", "causal").
    failures
        For each case that failed its number and what was found.
    """

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    hits: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a case."""
        self.counts[outcome.kind] += 1
        if outcome.kind == "right":
            self.hits.update(set(outcome.hits))
        if outcome.failed:
            self.failures.append((outcome.number, f"{outcome.kind} {outcome.text}"))

    # -- on disk --------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write it as JSON, all of it or nothing."""
        hits = [[kind, what, count] for (kind, what), count in self.hits.items()]
        part = path.with_name(f"{path.name}.part")
        part.write_text(
            json.dumps({"counts": self.counts, "hits": hits, "failures": self.failures})
        )
        part.replace(path)

    @classmethod
    def merged(cls, paths: Iterable[Path]) -> Tally:
        """Add up what runs of different cases saved."""
        whole = cls()
        for path in paths:
            read = json.loads(path.read_text())
            whole.counts.update(read["counts"])
            for kind, what, count in read["hits"]:
                whole.hits[kind, what] += count
            whole.failures += [(number, text) for number, text in read["failures"]]
        return whole

    # -- what it says ---------------------------------------------------------

    @property
    def executed(self) -> int:
        """How many cases ran to their end."""
        return self.counts["right"] + self.counts["WRONG"]

    def lines(self) -> Iterator[str]:
        """Say what became of the cases, and what those that were right had."""
        for kind, count in self.counts.most_common():
            yield f"{count:6} {kind}"
        total = self.counts.total()
        refused = sum(n for kind, n in self.counts.items() if kind.startswith("refused"))
        yield (
            f"{total} cases, {self.executed} executed, {refused} refused "
            f"({100 * refused / max(total, 1):.1f} %), {len(self.failures)} failed"
        )
        for kind in sorted({kind for kind, _ in self.hits}):
            found = [
                (what, count) for (of, what), count in self.hits.most_common() if of == kind
            ]
            yield f"  {kind:10} " + ", ".join(f"{what} {count}" for what, count in found)

    def shortfalls(self) -> list[str]:
        """Say which kinds were hit by fewer than 1 of 100 cases, and whether too few ran."""
        total = self.counts.total()
        found = [
            f"{kind} {what}: {self.hits[kind, what]} of {total}"
            for kind, every in KINDS.items()
            for what in every
            if 100 * self.hits[kind, what] < total
        ]
        if 100 * self.executed < 90 * total:
            found.append(f"executed: {self.executed} of {total}, of which 90 in 100 shall be")
        return found
