"""Compiled plans on GPUs against float64: every named method, replays, a late rank.

    torchrun --nproc-per-node 2 test/Gpu/plans.py
    python test/Gpu/plans.py --mesh gpu=1

On a host with fewer GPUs than ranks, ranks share them; NCCL does not work so, and plans that
send are left out. So is, in its words, what the compiler does not lower yet. A case that fails
is named and the others go on. The bound of an error is twice that of the plan of one device,
in the same types and at the same positions.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import mercury as mc
import torch
from cases import LEFT_OUT, Case, cases, compiled
from mercury.cuda.trial import distances
from mercury.reference.sampled import draw_on
from variants import replays

DEADLINE_MS = 30_000
REPEATS = 10
# Half a unit in the last place of a result that the one-device plan got by luck.
LEAST = {"bf16": 5e-4, "f16": 6e-5, "f32": 1e-6}


def say(text: str) -> None:
    if int(os.environ.get("RANK", "0")) == 0:
        print(text, flush=True)


# --- One case -------------------------------------------------------------------------------


class Bench:
    """The session, and what one device computes of each program."""

    def __init__(self, mesh: mc.Mesh) -> None:
        self.mesh = mesh
        self.open()
        self.device = torch.device("cuda", self.session.device)
        self._kept: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._programs: list[mc.Program] = []  # their ids stay theirs

    def open(self) -> None:
        """Open a session of all ranks, and one of this rank alone."""
        device = torch.cuda.current_device()
        self.session = mc.cuda.Session(self.mesh, deadline_ms=DEADLINE_MS, device=device)
        self.alone = mc.cuda.Session(mc.Mesh(gpu=1), deadline_ms=DEADLINE_MS, device=device)
        ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.shares = ranks_here > torch.cuda.device_count()

    def left_out(self, plan: Any) -> str | None:
        """Say why a plan cannot run here, or None."""
        return (
            f"{LEFT_OUT}it sends, and ranks share a GPU" if self.shares and plan.sends else None
        )

    def reopen(self) -> None:
        """After a failure, which ends a session's work on every rank."""
        self.session.close()
        self.alone.close()
        self.open()

    def one_device(self, program: mc.Program) -> tuple[dict[str, Any], dict[str, Any]]:
        """Whole inputs, and the outputs of a plan for one GPU."""
        if id(program) not in self._kept:
            plan = mc.Schedule(program, mc.Mesh(gpu=1)).compile(target="cuda")
            inputs = draw_on(program, self.device, seed=len(self._programs))
            self._kept = {id(program): (inputs, plan.run(self.alone, **inputs))}
            self._programs.append(program)
        return self._kept[id(program)]

    def check(self, case: Case) -> str:
        """Run a case; what it found, which begins with a word of its verdict."""
        began = time.perf_counter()
        plan = compiled(case, self.mesh)
        took = time.perf_counter() - began
        left = plan if isinstance(plan, str) else self.left_out(plan)
        if left:
            return left
        inputs, single = self.one_device(case.program)
        outputs = {
            buffer.name: torch.empty(
                plan.layout(buffer.name).shape(self.session.rank),
                dtype=single[buffer.name].dtype,
                device=self.device,
            )
            for buffer in case.program.outputs
        }
        call = plan.bind(self.session, **plan.shard(self.session, **inputs), **outputs)
        self.poison(outputs)
        call()
        self.session.synchronize()
        rank = self.session.rank
        found = distances(plan, rank, inputs, outputs)
        bound = distances(plan, rank, inputs, plan.shard(self.session, **single))
        graph = call.capture()
        first = None
        same = True
        for _ in range(REPEATS):
            self.poison(outputs)
            graph()
            self.session.synchronize()
            first = first or {name: tensor.clone() for name, tensor in outputs.items()}
            same &= all(torch.equal(first[name], outputs[name]) for name in outputs)
        replayed = distances(plan, rank, inputs, outputs)
        graph.close()
        wrong = [
            f"{name} error {max(found[name], replayed[name]):.1e}, one device {bound[name]:.1e}"
            for name in outputs
            if not max(found[name], replayed[name])
            <= max(2 * bound[name], LEAST[case.program.inputs[0].dtype])
        ]
        if case.bitwise and not same:
            wrong.append(f"{REPEATS} replays differ")
        if wrong:
            return f"WRONG {'; '.join(wrong)}"
        worst = max(found.values(), default=0.0)
        return f"right {worst:.1e} of {max(bound.values()):.1e}, compiled in {took:.1f} s"

    @staticmethod
    def poison(outputs: dict[str, Any]) -> None:
        for tensor in outputs.values():
            tensor.fill_(torch.nan)


# --- Many replays ---------------------------------------------------------------------------


def replay_many(bench: Bench, name: str, schedule: mc.Schedule, times: int) -> str:
    """Replays with inputs that change each time, and a rank that is late."""
    session, device = bench.session, bench.device
    plan = schedule.compile(target="cuda")
    left = bench.left_out(plan)
    if left:
        return left
    single = mc.Schedule(plan.program, mc.Mesh(gpu=1)).compile(target="cuda")
    whole = draw_on(plan.program, device)
    shards = plan.shard(session, **whole)
    places = {
        buffer.name: torch.empty(buffer.shape, dtype=kind, device=device)
        for buffer, kind in ((b, _kind(b.dtype)) for b in plan.program.outputs)
    }
    alone = single.bind(bench.alone, **whole, **places)
    outputs = plan.shard(session, **places)
    graph = plan.bind(session, **shards, **outputs).capture()
    expected = alone.capture()
    generator = torch.Generator(device=device).manual_seed(5)
    late = torch.randint(plan.mesh.size + 2, (times,), generator=torch.Generator()).tolist()
    worst = torch.zeros((), device=device)
    cuts = {n: _cut(plan, n, session.rank, device) for n in (*whole, *places)}
    for number in range(times):
        for key, tensor in whole.items():
            tensor.normal_(generator=generator)
            shards[key].copy_(cuts[key](tensor))
        if late[number] == session.rank:
            torch.cuda._sleep(400_000)
        graph()
        expected()
        for key, tensor in outputs.items():
            right = cuts[key](places[key]).double()
            error = (tensor.double() - right).norm() / right.norm()
            worst = torch.maximum(worst, torch.nan_to_num(error, nan=1e9).float())
    session.synchronize()
    bench.alone.synchronize()
    error = float(worst)
    return f"{'right' if error < 1e-2 else 'WRONG'} worst {error:.1e} of {times} replays"


def _kind(dtype: str) -> torch.dtype:
    return {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]


def _cut(plan: Any, name: str, rank: int, device: torch.device) -> Callable[[Any], Any]:
    held = plan.layout(name).indices(rank)
    shape = plan.layout(name).buffer.shape
    dims = [
        (dim, torch.from_numpy(at).to(device))
        for dim, at in enumerate(held)
        if len(at) != shape[dim]
    ]

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        for dim, at in dims:
            tensor = tensor.index_select(dim, at)
        return tensor

    return cut


# --- One command ----------------------------------------------------------------------------


def compile_all(mesh: mc.Mesh, given: Iterator[Case], only: str) -> int:
    """Compile cases, which takes no GPU; name those that do not."""
    count, failed, left = 0, 0, 0
    for case in given:
        if re.search(only, case.name):
            count += 1
            try:
                plan = compiled(case, mesh)
            except mc.MercuryError as error:
                failed += 1
                say(f"! {case.name}: {error}")
                continue
            if isinstance(plan, str):
                left += 1
                say(f"{case.name}: {plan}")
    say(f"{count - failed - left} of {count} compile for {mesh}, {left} left out")
    return failed != 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", default=f"gpu={os.environ.get('WORLD_SIZE', '1')}")
    parser.add_argument("--quick", action="store_true", help="one length of each attention")
    parser.add_argument("--long", action="store_true", help="and lengths of 65537")
    parser.add_argument("--compile", action="store_true", help="run none; needs no GPU")
    parser.add_argument("--only", default="", help="cases whose names match this pattern")
    parser.add_argument("--replays", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--json", type=pathlib.Path, help="where the verdicts go")
    parser.add_argument("--resume", action="store_true", help="leave out what is right there")
    options = parser.parse_args()
    if options.resume and options.json is None:
        parser.error("--resume needs --json FILE")
    return options


def main() -> int:
    options = arguments()
    mesh, given = mc.Mesh.parse(options.mesh), cases(options.quick, options.long)
    if options.compile:
        return compile_all(mesh, given, options.only)
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local % torch.cuda.device_count())
    began = time.perf_counter()
    bench = Bench(mesh)
    verdicts: dict[str, str] = {}
    if options.resume and options.json.exists():
        before = json.loads(options.json.read_text())
        verdicts = {name: text for name, text in before.items() if text.startswith("right")}

    def attempt(name: str, check: Callable[[], str]) -> bool:
        """Run a check on every rank; False when no more can be run."""
        if name in verdicts or not re.search(options.only, name):
            return True
        try:
            own = check()
        except Exception as error:
            own = f"FAILED {type(error).__name__}: {str(error)[:400]}"
        told = bench.session.gather("verdict", f"{time.perf_counter() - began} {own}")
        spent = max(float(text.partition(" ")[0]) for text in told)
        found = [text.partition(" ")[2] for text in told]
        bad = [text for text in found if not text.startswith("right")]
        verdicts[name] = bad[0] if bad else found[0]
        say(f"{name}: {verdicts[name]}")
        if options.json and bench.session.rank == 0:
            options.json.write_text(json.dumps(verdicts, indent=1))
        if any(text.startswith("FAILED") for text in found):
            bench.reopen()
        return spent < options.seconds and "CUDA error" not in verdicts[name]

    def everything() -> Iterator[tuple[str, Callable[[], str]]]:
        for name, schedule in replays(mesh) if options.replays else ():
            yield (
                f"{options.replays} replays of {name} {schedule.program.name}",
                lambda name=name, schedule=schedule: replay_many(
                    bench, name, schedule, options.replays
                ),
            )
        for case in given:
            yield case.name, lambda case=case: bench.check(case)

    stopped = False
    for name, check in everything():
        if not attempt(name, check):
            stopped = True
            break
    bench.session.close()
    bench.alone.close()
    ran = {name: text for name, text in verdicts.items() if not text.startswith(LEFT_OUT)}
    right = sum(text.startswith("right") for text in ran.values())
    for name, text in ran.items():
        if not text.startswith("right"):
            say(f"! {name}: {text}")
    seconds = time.perf_counter() - began
    left = len(verdicts) - len(ran)
    told = f", {left} left out" if left else ""
    say(f"{right} of {len(ran)} right on {mesh}{told}, in {seconds:.0f} s")
    if stopped:
        say("stopped before the last case")
        return 3
    return right != len(ran)


if __name__ == "__main__":
    sys.exit(main())
