"""Run the examples of Markdown files.

A fenced block whose first line is `// RUN: command` is written to a file, `%s` in the
command stands for it, and what the command prints is compared with the block's CHECK
lines by FileCheck. A python block whose first line is `# RUN` is executed.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Block:
    """One example: where it begins, its language and its text."""

    where: str
    language: str
    text: str


def read_blocks(path: pathlib.Path) -> list[Block]:
    """Return the fenced blocks of a file."""
    text = path.read_text()
    return [
        Block(
            where=f"{path}:{text.count(chr(10), 0, match.start()) + 1}",
            language=match[1],
            text=match[2],
        )
        for match in FENCE.finditer(text)
    ]


def command_of(block: Block, file: str) -> str | None:
    """Return the shell command that tests a block, or None for one without."""
    first = block.text.split("\n", 1)[0]
    if block.language == "python":
        return f"'{sys.executable}' '{file}'" if first.startswith("# RUN") else None
    if not first.startswith("// RUN: "):
        return None
    command = first.removeprefix("// RUN: ").replace("%s", f"'{file}'")
    if "CHECK" in block.text and "FileCheck" not in command:
        command += f" | FileCheck '{file}'"
    return command


def main() -> int:
    """Run the blocks of the files named; 1 if one fails."""
    failed = ran = 0
    for path in map(pathlib.Path, sys.argv[1:]):
        for block in read_blocks(path):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder, f"block.{block.language}")
                file.write_text(block.text)
                command = command_of(block, str(file))
                if command is None:
                    continue
                done = subprocess.run(
                    ["bash", "-o", "pipefail", "-c", command],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
            ran += 1
            failed += done.returncode != 0
            print(f"{block.where}: {'ok' if done.returncode == 0 else 'FAILED'}")
            if done.returncode:
                print(f"$ {command}\n{done.stdout}")
    print(f"{ran} examples, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
