"""Feeds broken commir text to mercury-opt, which must refuse it and never crash.

The corpus is test/Dialect/CommIR/*.mlir, program by program, in pretty and in generic form. A
mutant is one of these texts after a few random edits of its tokens. Mutants run in batches. A
signal, a failed assertion or a timeout is a failure, and so is a mutant that is accepted and
does not parse back from what is printed; the one that causes it is found and shown.

    python test/Fuzz/fuzz_parser.py --seconds 60 --seed 1
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import random
import re
import subprocess
import sys
import time

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "Dialect" / "CommIR"
SEPARATOR = "\n// -----\n"
TOKEN = re.compile(r'"[^"]*"|->|-?\d+|[%@#!^]?[\w.$]+|\s+|.')
NUMBERS = (
    "0", "-1", "1", "2", "3", "7", "1048576", "1048577", "1099511627776", "1099511627777",
    "4611686018427387904", "9223372036854775807", "-9223372036854775808",
    "9223372036854775808", "18446744073709551616", "1.5", "0x7F",
)  # fmt: skip
# What upstream's parser aborts on: an op named like a dialect, and an array of no integers.
UPSTREAM = re.compile(r'(?<!kernel )"\w+"\s*\(|array<\s*(?!i\d)')
BRACKETS = "()[]{}<>"
SNIPPETS = (
    "()", "[]", "{}", "<>", '""', "of 0", "parallel(gpu)", "shift(by i on gpu)", "at []",
    "zigzag", "striped(2)", "bounds[0, 8]", "attributes {sym_name = 5}", "mask(causal)", "f32",
    "i32", "index", "memref<4xf32>", "!commir.token", "!commir.buffer<[i], f32>",
    "#commir.loop<i>",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Crash:
    """One mutant that ends mercury-opt the wrong way."""

    mutant: str
    reason: str


class Driver:
    """Runs mercury-opt on texts and tells a crash from an error.

    Parameters
    ----------
    path
        The mercury-opt to run.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.accepted = 0

    def run(self, texts: list[str], *options: str) -> subprocess.CompletedProcess[str]:
        """Run all texts in one process; raises TimeoutExpired when it hangs."""
        return subprocess.run(
            [self.path, "-split-input-file", *options],
            input=SEPARATOR.join(texts),
            capture_output=True,
            text=True,
            timeout=10 + len(texts) / 5,
            check=False,
        )

    def why_crashed(self, texts: list[str]) -> str:
        """Say how the process ended; empty when all is well."""
        try:
            done = self.run(texts)
            if done.returncode not in (0, 1):
                marks = [line for line in done.stderr.splitlines() if "Assertion" in line]
                return f"exit status {done.returncode} {' '.join(marks[:1])}"
            printed = [text for text in done.stdout.split("// -----") if text.strip()]
            if not printed:
                return ""
            self.accepted += len(printed)
            again = self.run(printed)
        except subprocess.TimeoutExpired:
            return "timeout"
        if again.returncode == 0:
            return ""
        errors = [line for line in again.stderr.splitlines() if "error:" in line]
        return "does not parse back: " + "".join(errors[:1]).partition("error: ")[2]

    def find_crash(self, texts: list[str]) -> Crash | None:
        """Halve a batch until one text is left that crashes."""
        reason = self.why_crashed(texts)
        if not reason:
            return None
        if len(texts) == 1:
            return Crash(mutant=texts[0], reason=reason)
        middle = len(texts) // 2
        return (
            self.find_crash(texts[:middle])
            or self.find_crash(texts[middle:])
            or Crash(mutant=SEPARATOR.join(texts), reason=reason + " (only together)")
        )


def split_programs(text: str) -> list[str]:
    """Cut a text into its top-level programs, each with the meshes and merges of the text."""
    shared: list[str] = []
    programs: list[str] = []
    block: list[str] = []
    for line in [*text.splitlines(), "end"]:
        if line.lstrip().startswith("//") or not line:
            continue
        starts = line[0] not in " }^"
        if starts and block:
            whole = "\n".join(block)
            small = whole.startswith(("commir.mesh", "commir.merge"))
            (shared if small else programs).append(whole)
            block = []
        block.append(line)
    return ["\n".join([*shared, program]) for program in programs] or ["\n".join(shared)]


def load_corpus(driver: Driver) -> tuple[list[str], list[str]]:
    """Read the valid texts, in pretty and in generic form, and the invalid ones."""
    valid: list[str] = []
    invalid: list[str] = []
    for path in sorted(CORPUS.glob("*.mlir")):
        for chunk in path.read_text().split("// -----"):
            for text in split_programs(chunk):
                done = driver.run([text], "--mlir-print-op-generic")
                if done.returncode == 0:
                    valid += [text, done.stdout]
                else:
                    invalid.append(text)
    return valid, invalid


def find_element(tokens: list[str], comma: int) -> tuple[int, int]:
    """Find the list element that a comma begins: up to the next one or the list's end."""
    depth = 0
    for end in range(comma + 1, len(tokens)):
        opens, closes = tokens[end] in ("(", "[", "{", "<"), tokens[end] in (")", "]", "}", ">")
        depth += opens - closes
        if depth < 0 or (depth == 0 and tokens[end] == ","):
            return comma, end
    return comma, comma + 1


def mutate(text: str, others: list[str], source: random.Random) -> str:
    """Apply a few random edits to the tokens of a text."""
    tokens = TOKEN.findall(text)
    words = sorted({token for token in tokens if re.match(r"[\w%@\"]", token)})
    solid = [i for i, token in enumerate(tokens) if not token.isspace()]
    for _ in range(source.choice((1, 1, 1, 2, 2, 3, 5))):
        at = source.choice(solid)
        match source.randrange(13):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] += " " + tokens[at]
            case 2:
                other = source.choice(solid)
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3 | 4:
                numbers = [i for i in solid if re.fullmatch(r"-?\d+", tokens[i])]
                tokens[source.choice(numbers or [at])] = source.choice(NUMBERS)
            case 5:
                tokens[at] = source.choice(words)
            case 6:
                tokens[at] = source.choice(BRACKETS)
            case 7:
                tokens[at] += " " + source.choice(SNIPPETS) + " "
            case 8 | 9:
                # The same word everywhere: texts that still agree with themselves.
                word, other = source.choice(words), source.choice(words)
                tokens = [other if token == word else token for token in tokens]
            case 10 | 11:
                commas = [i for i in solid if tokens[i] == ","]
                start, end = find_element(tokens, source.choice(commas or [at]))
                element = "".join(tokens[start:end])
                tokens[start] = source.choice(("", element * 2))
                tokens[start + 1 : end] = [""] * (end - start - 1)
            case 12:
                taken = TOKEN.findall(source.choice(others))
                start = source.randrange(len(taken))
                tokens[at] = "".join(taken[start : start + source.randrange(1, 12)])
    mutant = "".join(tokens).replace("// -----", "")
    return text if UPSTREAM.search(mutant) else mutant


def main() -> int:
    """Fuzz for the time given; the number of crashes found is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long to run (60)")
    parser.add_argument("--seed", type=int, default=0, help="of the random edits (0)")
    parser.add_argument("--batch", type=int, default=50, help="mutants a process (50)")
    parser.add_argument("--mercury-opt", default="mercury-opt", help="the tool to run")
    options = parser.parse_args()

    driver = Driver(options.mercury_opt)
    valid, invalid = load_corpus(driver)
    source = random.Random(options.seed)
    crashes: dict[str, Crash] = {}
    tried = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        batch = [
            mutate(source.choice(source.choice((valid, valid, invalid))), valid, source)
            for _ in range(options.batch)
        ]
        tried += len(batch)
        crash = driver.find_crash(batch)
        if crash and crash.reason not in crashes:
            crashes[crash.reason] = crash
            print(f"CRASH ({crash.reason}):\n{crash.mutant}\n", flush=True)
    print(
        f"seed {options.seed}: {tried} mutants of {len(valid) + len(invalid)} texts, "
        f"{driver.accepted} accepted, {len(crashes)} crashes"
    )
    return min(len(crashes), 1)


if __name__ == "__main__":
    sys.exit(main())
