"""All that is asked of the GPUs of one host, in parts that can be stopped and gone on with.

    python test/Gpu/many_ranks.py --gpus 8 --out many                    # 9 minutes of it
    python test/Gpu/many_ranks.py --gpus 8 --out many correct operators  # some parts alone
    python test/Gpu/many_ranks.py --gpus 8 --out many --dry-run          # what would be run

Each part is a command with a time limit and a log, OUT/PART.log. One that ended well leaves
OUT/PART.done and is not run again; one that was stopped or failed is gone on with by the next
call. What was predicted before is in python/mercury/bench/results/predicted.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mercury.bench import MANY_GPUS, Attention, parse_workload

PLANS = pathlib.Path(__file__).with_name("plans.py")
WALL = "attention-1x128x32768-causal"
WALL_METHODS = "pull by,ring,ulysses,usp,context-parallel,NCCL,gather,USP,context_parallel"
LEAST_S = 30.0  # nothing is begun with less


@dataclass(frozen=True, kw_only=True)
class Part:
    """One command.

    Attributes
    ----------
    name
        Of its log; parts are chosen by what it begins with.
    ranks
        How many GPUs it takes.
    command
        What torchrun starts.
    limit_s
        The most that one call may take of it.
    """

    name: str
    ranks: int
    command: Sequence[str]
    limit_s: float = 300.0

    def line(self) -> list[str]:
        """The whole command."""
        run = [sys.executable, "-m", "torch.distributed.run"]
        return [*run, "--nproc-per-node", str(self.ranks), *self.command]


def parts(gpus: int, out: pathlib.Path) -> Iterator[Part]:
    """Give every part, in the order in which they are worth their time."""
    mercury = ("-m", "mercury")
    topology = str(out / "topology.toml")
    for name, command in (
        ("probe", ("topology", "probe", topology)),
        ("links", ("bench", "links", "--json", str(out / "links.json"))),
        ("kernels", ("bench", "kernels", "--json", str(out / "kernels.json"))),
    ):
        yield Part(name=name, ranks=gpus, command=(*mercury, *command))
    for mesh, ranks, more in meshes(gpus):
        name = f"correct-{mesh.replace('gpu=', '').replace('gpu0=', '').replace(',gpu1=', 'x')}"
        file = str(out / f"{name}.json")
        command = (str(PLANS), "--mesh", mesh, "--json", file, "--resume", *more)
        yield Part(name=name, ranks=ranks, command=command)
    predicted = ("--topology", topology)
    file = str(out / "operators.json")
    yield Part(
        name="operators",
        ranks=gpus,
        command=(
            *(*mercury, "bench", "operators", *MANY_GPUS, "--wide", *predicted),
            *("--json", file, "--resume", "--time-limit", "60"),
        ),
        limit_s=1800.0,
    )
    for workload in MANY_GPUS:
        file = str(out / f"tune-{workload}.json")
        yield Part(
            name=f"tune-{workload}",
            ranks=gpus,
            command=(
                *(*mercury, "tune", *searched(workload), *predicted, "--target", "cuda"),
                *("--top", "8", "--time-limit", "20s", "--json", file),
            ),
        )
    yield Part(
        name="wall",
        ranks=gpus,
        command=(
            *(*mercury, "bench", "wall", WALL, "--limit", "40GiB", "--run", *predicted),
            *("--mesh", f"gpu={gpus}", "--plans", WALL_METHODS),
            *("--json", str(out / "wall.json")),
        ),
        limit_s=550.0,
    )


def meshes(gpus: int) -> Iterator[tuple[str, int, Sequence[str]]]:
    """Give the meshes whose plans are checked: all ranks, each split, half, and odd numbers."""
    yield f"gpu={gpus}", gpus, ("--long",)
    for outer in (n for n in range(2, gpus) if gpus % n == 0):
        yield f"gpu0={outer},gpu1={gpus // outer}", gpus, ("--quick", "--replays", "100")
    fewer = {gpus // 2, *range(3, gpus, 2)} - {1}
    for ranks in sorted(fewer):
        yield f"gpu={ranks}", ranks, ("--quick", "--long", "--replays", "100")


def searched(text: str) -> list[str]:
    """Give a workload as `mercury tune` takes it, with the boundary of the operators."""
    workload = parse_workload(text)
    if not isinstance(workload, Attention):
        program = workload.operator.replace("-", "_")
        given = ["--set", f"m={workload.m},n={workload.n},depth={workload.k}"]
        cuts = {"ag_gemm": ("B.j", "C.j"), "gemm_rs": ("A.k", "B.k")}[program]
    else:
        program = "attention_backward" if workload.backward else "attention"
        rows = f"sq={workload.rows},sk={workload.rows}"
        sizes = f"b={workload.batch},h={workload.heads},group={workload.group},{rows}"
        given = ["--set", sizes, "--mask", "full"]
        if workload.causal:
            given = ["--set", sizes, "--mask", "causal", "--layout", "sq=zigzag,sk=zigzag"]
        cuts = ("Q.sq", "K.sk", "V.sk", "O.sq", "LSE.sq")
        if workload.backward:
            cuts = (*cuts, "dO.sq", "dQ.sq", "dK.sk", "dV.sk")
    return [program, *given, *(f"--at={cut}=gpu" for cut in cuts)]


def run(part: Part, out: pathlib.Path, seconds: float) -> str:
    """Run a part and what it starts for so long; give what became of it."""
    with (out / f"{part.name}.log").open("a") as log:
        print(f"$ {shlex.join(part.line())}", file=log, flush=True)
        started = subprocess.Popen(
            part.line(), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = started.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGTERM)
            try:
                started.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
            return "stopped"
    if status == 0:
        (out / f"{part.name}.done").touch()
    return "done" if status == 0 else f"failed with {status}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="beginnings of names; all when none is given")
    parser.add_argument("--gpus", type=int, required=True, help="of this host: 2, 4 or 8")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("many-ranks"))
    parser.add_argument("--seconds", type=float, default=540, help="of this call")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, run none")
    options = parser.parse_args()
    every = list(parts(options.gpus, options.out))
    for begin in options.parts:
        if not any(part.name.startswith(begin) for part in every):
            parser.error(
                f"no part begins with '{begin}'; there are {', '.join(p.name for p in every)}"
            )
    chosen = [p for p in every if not options.parts or p.name.startswith(tuple(options.parts))]
    if options.dry_run:
        for part in chosen:
            print(f"{part.name}, at most {part.limit_s:.0f} s:\n  {shlex.join(part.line())}")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    ends, left = time.monotonic() + options.seconds, 0
    for part in chosen:
        if (options.out / f"{part.name}.done").exists():
            continue
        seconds = min(part.limit_s, ends - time.monotonic())
        if seconds < LEAST_S:
            said = "not begun"
        else:
            began = time.monotonic()
            said = run(part, options.out, seconds)
            said += f" after {time.monotonic() - began:.0f} s"
        left += not said.startswith("done")
        print(f"{part.name}: {said}", flush=True)
    return 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
