"""Faults on GPUs: each ends every rank in time with an error, and the process works again.

    python test/Gpu/faults.py                  # 2 ranks; with one GPU they share it
    python test/Gpu/faults.py --ranks 4 --only killed

It starts the ranks itself, without torchrun, which would end all of them when one is killed. A
fault that is not over after --seconds is stopped with all its processes. Where ranks share a
GPU, NCCL does not work, and faults of plans that send are left out.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import mercury as mc
import torch
from mercury.cuda.tensors import empty
from mercury.cuda.trial import cuda_limits, distances
from mercury.reference.sampled import draw_on

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Runtime" / "Cuda"))
from scenarios import FAULTS, Bound, Machine

LEFT_BYTES = 128 << 20  # on a GPU without memory


class GpuBound(Bound):
    """A plan with shards on a GPU."""

    def make_shards(self) -> dict[str, torch.Tensor]:
        self.whole = draw_on(self.plan.program, torch.device("cuda", self.session.device))
        self.inputs = self.plan.shard(self.session, **self.whole)
        self.outputs = {
            buffer.name: empty(
                buffer,
                self.plan.layout(buffer.name).shape(self.session.rank),
                self.session.device,
            )
            for buffer in self.plan.program.outputs
        }
        torch.cuda.synchronize()
        return {**self.inputs, **self.outputs}

    def draw(self, seed: int) -> None:
        self.whole = draw_on(self.plan.program, torch.device("cuda", self.session.device), seed)
        for name, shard in self.plan.shard(self.session, **self.whole).items():
            self.inputs[name].copy_(shard)
        for output in self.outputs.values():
            output.fill_(torch.nan)
        torch.cuda.synchronize()

    def check(self) -> None:
        limits = cuda_limits(self.plan)
        for name, error in distances(
            self.plan, self.session.rank, self.whole, self.outputs
        ).items():
            assert error <= limits[name], f"{name} is wrong: error {error}"


class Gpus(Machine):
    """This rank on its GPU."""

    bind = GpuBound

    def __init__(self) -> None:
        self.rank, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = self.rank % torch.cuda.device_count()
        self.shares = self.ranks > torch.cuda.device_count()
        torch.cuda.set_device(self.device)

    def schedule(self, name: str) -> mc.Schedule:
        mesh = mc.Mesh(gpu=1 if name == "alone" else self.ranks)
        if name in {"reads", "sends"}:
            program = mc.programs.attention(h=8, sq=1024, sk=1024, mask="causal")
            made = mc.Schedule(program, mesh).parallelize("sq", "gpu")
            return made.shift("sk", by="sq", reads="pull" if name == "reads" else "rotate")
        rows = 64 << 10 if name == "large" else 1 << 10
        program = mc.programs.matmul(m=rows * self.ranks, n=128, depth=4096)
        if name == "alone":
            return mc.Schedule(program, mesh)
        return mc.strategies.get("async-tp").schedule(mesh, program)

    @contextmanager
    def starved(self) -> Iterator[None]:
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info(self.device)
        held = torch.empty(free - LEFT_BYTES, dtype=torch.uint8, device=self.device)
        try:
            yield
        finally:
            del held
            torch.cuda.empty_cache()


def run(fault: str, ranks: int, seconds: float) -> str:
    """Run a fault on every rank; what is wrong, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        given = {**os.environ, "WORLD_SIZE": str(ranks), "MERCURY_STORE": f"{folder}/store"}
        logs = [pathlib.Path(folder) / f"rank{rank}" for rank in range(ranks)]
        started = [
            subprocess.Popen(
                [sys.executable, __file__, "--rank-of", fault],
                env={**given, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=log.open("wb"),
                stderr=subprocess.STDOUT,
            )
            for rank, log in enumerate(logs)
        ]
        ends = time.monotonic() + seconds
        problems = []
        try:
            for rank, process in enumerate(started):
                try:
                    status = str(process.wait(max(ends - time.monotonic(), 0.1)))
                except subprocess.TimeoutExpired:
                    status = f"no end within {seconds:.0f} s"
                dies = fault.startswith("killed") and rank == ranks - 1
                if status != ("-9" if dies else "0"):
                    said = logs[rank].read_text(errors="replace")[-1500:]
                    problems.append(f"rank {rank} ended with {status}:\n{said}")
        finally:
            for process in started:
                process.kill()
                process.wait()
        return "\n".join(problems)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", default="", help="only faults whose name holds this")
    parser.add_argument("--seconds", type=float, default=90, help="of each fault")
    parser.add_argument("--rank-of", choices=FAULTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank_of:
        FAULTS[options.rank_of](Gpus())
        return 0
    shares = options.ranks > torch.cuda.device_count()
    wrong = 0
    for fault in FAULTS:
        if options.only not in fault:
            continue
        if shares and "sends" in fault:
            print(f"{fault}: left out: it sends, and ranks share a GPU", flush=True)
            continue
        began = time.monotonic()
        problem = run(fault, options.ranks, options.seconds)
        wrong += bool(problem)
        said = f"WRONG\n{problem}" if problem else "right"
        print(f"{fault}: {said} after {time.monotonic() - began:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
