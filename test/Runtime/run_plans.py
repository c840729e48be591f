"""Compiled plans under sanitizers, which see the plans' own code as well.

    python test/Runtime/run_plans.py --build build/plans [--seeds 50] [--sanitize thread]

Each plan is compiled ahead of time, instrumented by LLVM and linked by the system's C++
compiler with the runtime and plan.cpp. It must report nothing, be the same under every seed,
near float64, and hold no more memory than the plan says. Then plans that were spoilt on
purpose must be reported. The undefined behaviour sanitizer sees the runtime only: it needs
to know the source language.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mercury as mc
import numpy as np
from mercury import reference
from mercury.runtime.dtypes import decode, encode, storage
from mercury.runtime.trial import limits

ROOT = Path(__file__).resolve().parents[2]

# Passes of LLVM that instrument a plan. Thread sanitizer looks away from vectors.
PASSES = {
    "address": (["forceattrs", "asan"], ["-force-attribute=sanitize_address"]),
    "thread": (
        ["function(scalarizer<load-store>)", "forceattrs", "tsan-module", "function(tsan)"],
        ["-force-attribute=sanitize_thread", "-tsan-instrument-memintrinsics=0"],
    ),
}
LLC = ["-filetype=obj", "-relocation-model=pic"]
FLAGS = {"address": "address,undefined", "thread": "thread"}

ATTENTION = {"b": 1, "h": 4, "group": 2, "sq": 19, "sk": 22, "d": 8, "dv": 5, "dtype": "f32"}
MATMUL = {"m": 13, "n": 9, "depth": 7, "dtype": "f32"}
DECODE = {"b": 2, "h": 4, "group": 2, "sk": 22, "d": 8, "dtype": "f32"}

# Schedules beside the named strategies, whose peers read what a plan makes, each of a product.
RECIPES = {
    "gemm-rs-fetch": "parallelize(k, gpu); shift(i, by=k, offset=1, results=fetch, chunks=2)",
}

# Per strategy the meshes on which it is lowered.
CASES = [
    ("ring", ["gpu=3", "node=2,gpu=2"]),
    ("double-ring", ["gpu=4", "node=2,gpu=2"]),
    ("context-parallel", ["gpu=3", "node=2,gpu=2"]),
    ("ulysses", ["gpu=3", "node=2,gpu=2"]),
    ("usp", ["gpu=4", "node=2,gpu=2"]),
    ("tree", ["gpu=3", "node=2,gpu=2"]),
    ("hybrid", ["gpu=4", "node=2,gpu=2"]),
    ("ag-gemm-shifted", ["gpu=3", "node=2,gpu=2"]),
    ("gemm-rs", ["gpu=3", "node=2,gpu=2"]),
    ("gemm-rs-shifted", ["gpu=3", "node=2,gpu=2"]),
    ("gemm-rs-fetch", ["gpu=2", "gpu=3"]),
    ("async-tp", ["gpu=3", "node=2,gpu=2"]),
    ("cannon", ["node=2,gpu=2"]),
    ("summa", ["node=2,gpu=2"]),
]


def tool(name: str) -> str:
    """A tool of LLVM, which the pinned wheels bring."""
    packages = Path(sysconfig.get_path("purelib"))
    folders = [str(packages / package / "bin") for package in ("llvm", "mlir")]
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"]]))
    if found is None:
        sys.exit(f"{name} is not there; tools/setup installs it")
    return found


def step(*command: str | Path, text: bytes = b"") -> bytes:
    done = subprocess.run(
        [str(word) for word in command], input=text, capture_output=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.decode()[-2000:]}")
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Case:
    """A plan, the file of its job and the inputs of every rank."""

    name: str
    plan: mc.Plan
    text: str  # before it is lowered
    inputs: dict[str, np.ndarray]


def make_case(strategy: str, mesh: str, **sizes: int) -> Case:
    method = mc.strategies.get("gemm-rs" if strategy in RECIPES else strategy)
    program = {
        "attention": lambda: mc.programs.attention(mask="causal", **ATTENTION | sizes),
        "decode_attention": lambda: mc.programs.decode_attention(**DECODE | sizes),
        "matmul": lambda: mc.programs.matmul(**MATMUL | sizes),
    }[method.program.name]()
    levels = mc.Mesh.parse(mesh)
    schedule = method.schedule(levels, program)
    if strategy in RECIPES:
        schedule = mc.Schedule(program, levels, {"C": {"i": "gpu"}}).apply(RECIPES[strategy])
    rng = np.random.default_rng(0)
    inputs = {
        buffer.name: encode(rng.standard_normal(buffer.shape), buffer.dtype)
        for buffer in program.inputs
    }
    name = f"{strategy}-{mesh.replace(',', '-').replace('=', '')}"
    return Case(name=name, plan=schedule.compile(), text=schedule.ir(), inputs=inputs)


class Runner:
    """Builds and runs plans under one sanitizer."""

    def __init__(self, build: Path, sanitize: str) -> None:
        self.sanitize = sanitize
        self.folder = build / sanitize
        self.folder.mkdir(parents=True, exist_ok=True)
        self.compiler = os.environ.get("CXX", "c++")
        # The sanitizer's shadow memory lies elsewhere on every machine.
        self.target = f"-mtriple={step(self.compiler, '-dumpmachine').decode().strip()}"
        self.flags = [f"-fsanitize={FLAGS[sanitize]}", "-fno-sanitize-recover=all"]
        include = [f"-I{ROOT}", f"-I{ROOT / 'lib/Runtime/include'}"]
        sources = [
            *sorted((ROOT / "lib/Runtime").glob("*.cpp")),
            *sorted((ROOT / "lib/Runtime/Sim").glob("*.cpp")),
            ROOT / "test/Runtime/plan.cpp",
        ]
        cache = ["ccache"] if shutil.which("ccache") else []
        self.objects = []
        for source in sources:
            target = self.folder / f"{source.stem}.o"
            step(
                *cache,
                *(self.compiler, "-std=c++17", "-g", "-O1", "-fPIC", *self.flags, *include),
                *("-c", source, "-o", target),
            )
            self.objects.append(target)

    def link(self, case: Case, spoil: Callable[[str], str] = lambda text: text) -> Path:
        """Compile a plan and make a program of it."""
        spmd = step(tool("mercury-opt"), "--commir-to-spmd", text=case.text.encode()).decode()
        low = step(tool("mercury-opt"), "--commir-spmd-to-llvm", text=spoil(spmd).encode())
        ir = step(tool("mlir-translate"), "--mlir-to-llvmir", text=low)
        passes, options = PASSES[self.sanitize]
        pipeline = f"-passes=default<O1>,{','.join(passes)}"
        ir = step(tool("opt"), pipeline, self.target, *options, text=ir)
        target = self.folder / case.name
        plan = target.with_suffix(".o")
        step(tool("llc"), self.target, *LLC, "-o", plan, text=ir)
        renamed = {"malloc": "mercury_plan_malloc", "free": "mercury_plan_free"}
        renamed[case.plan.program.name] = "mercury_plan"
        names = [f"--redefine-sym={a}={b}" for a, b in renamed.items()]
        step(tool("llvm-objcopy"), *names, plan)
        step(self.compiler, *self.flags, *self.objects, plan, "-lm", "-lpthread", "-o", target)
        return target

    def run(
        self,
        case: Case,
        program: Path,
        seeds: range,
        delay_us: int = 200,
        local_bytes: int | None = None,
        symmetric_bytes: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        plan, ranks = case.plan, range(case.plan.mesh.size)
        shards = {
            name: plan.layout(name).scatter(values) for name, values in case.inputs.items()
        }
        made = [
            # What is never written shows.
            shards[buffer.name][rank].tobytes()
            if buffer.name in shards
            else b"\xff" * nbytes(plan, buffer, rank)
            for rank in ranks
            for buffer in plan.program.buffers
        ]
        local = plan.local_bytes if local_bytes is None else local_bytes
        words = [len(plan.mesh.levels), *(word for level in plan.mesh.levels for word in level)]
        lent = plan.symmetric_bytes if symmetric_bytes is None else symmetric_bytes
        words += [local, lent, len(plan.program.buffers), *(len(part) for part in made)]
        job, buffers = program.with_suffix(".job"), program.with_suffix(".in")
        job.write_text(" ".join(map(str, words)))
        buffers.write_bytes(b"".join(made))
        results = program.with_suffix(".out")
        command = [program, job, buffers, results, seeds[0], seeds[-1], delay_us]
        return subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=False, timeout=600
        )

    def check(self, case: Case, seeds: range) -> list[str]:
        """What is wrong with a plan."""
        program = self.link(case)
        done = self.run(case, program, seeds)
        if done.returncode != 0:
            return [f"{done.stdout}{done.stderr}"[:4000]]
        plan, held = case.plan, int(done.stdout)
        problems = []
        if held > 0:
            problems.append(f"held {held} bytes beside the arenas of {plan.arena_bytes}")
        left = program.with_suffix(".out").read_bytes()
        at = 0
        shards: dict[str, list[np.ndarray]] = {b.name: [] for b in plan.program.outputs}
        for rank in range(plan.mesh.size):
            for buffer in plan.program.buffers:
                end = at + nbytes(plan, buffer, rank)
                shape = plan.layout(buffer.name).shape(rank)
                if buffer.output:
                    array = np.frombuffer(left[at:end], storage(buffer.dtype)).reshape(shape)
                    shards[buffer.name].append(array)
                at = end
        expected = reference.evaluate(
            plan.program,
            {b.name: decode(case.inputs[b.name], b.dtype) for b in plan.program.inputs},
        )
        for buffer in plan.program.outputs:
            found = decode(plan.layout(buffer.name).gather(shards[buffer.name]), buffer.dtype)
            error = reference.relative_error(found, expected[buffer.name])
            if not error <= limits(plan.program)[buffer.name]:
                problems.append(f"'{buffer.name}' differs from float64 by {error}")
        return problems


def nbytes(plan: mc.Plan, buffer: object, rank: int) -> int:
    shape = plan.layout(buffer.name).shape(rank)
    return int(np.prod(shape, dtype=np.int64)) * storage(buffer.dtype).itemsize


def drop_waits(text: str) -> str:
    """Use what a transfer brings without waiting for it."""
    return re.sub(r"\n *commir\.wait [^\n]*", "", text)


def is_reported(
    runner: Runner, case: Case, program: Path, said: str, seeds: range, **run: int
) -> bool:
    """Whether the sanitizer says so of the plan's own code, or a kernel of its own."""
    where = rf"(mercury_plan|mercury_kernel_\w+|{case.plan.program.name})\b"
    done = runner.run(case, program, seeds, **run)
    found = re.search(rf"{said}.*?#0 .*?{where}", done.stderr, re.DOTALL)
    return done.returncode != 0 and found is not None


def check_spoilt(runner: Runner) -> list[str]:
    """What a sanitizer should have found and has not."""
    if runner.sanitize == "thread":
        # Steps of some milliseconds: a transfer may well arrive in the next one.
        case = make_case("ag-gemm-shifted", "gpu=3", m=192, n=192, depth=64)
        program = runner.link(case, drop_waits)
        said = "WARNING: ThreadSanitizer: data race"
        found = any(
            is_reported(runner, case, program, said, range(seed, seed + 1), delay_us=10_000)
            for seed in range(1, 31)
        )
        return [] if found else ["a plan without waits passed"]
    # What a kernel writes is larger than the arena.
    small = {"gemm-rs": "local_bytes", "gemm-rs-fetch": "symmetric_bytes"}
    said, missed = "ERROR: AddressSanitizer: heap-buffer-overflow", []
    for strategy, arena in small.items():
        case = make_case(strategy, "gpu=3")
        if not is_reported(runner, case, runner.link(case), said, range(1), **{arena: 64}):
            missed.append(f"a plan of {strategy} with {arena} = 64 passed")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="folder for what is made")
    parser.add_argument("--seeds", type=int, default=6, help="runs of each plan")
    parser.add_argument("--sanitize", choices=list(PASSES), help="only this one")
    parser.add_argument("--only", default="", help="only plans whose name holds this")
    given = parser.parse_args()
    os.environ.setdefault("TSAN_OPTIONS", "halt_on_error=1")
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1")

    cases = [make_case(strategy, mesh) for strategy, meshes in CASES for mesh in meshes]
    failed = 0
    for sanitize in [given.sanitize] if given.sanitize else list(PASSES):
        runner = Runner(given.build, sanitize)
        for case in cases:
            if given.only not in case.name:
                continue
            start = time.monotonic()
            problems = runner.check(case, range(given.seeds))
            failed += bool(problems)
            state = "WRONG" if problems else "right"
            print(
                f"{sanitize:8} {case.name:30} {state} {time.monotonic() - start:6.1f} s",
                *problems,
                sep="\n  " if problems else " ",
                flush=True,
            )
        problems = check_spoilt(runner)
        failed += bool(problems)
        print(f"{sanitize:8} {'a spoilt plan':30}", *(problems or ["reported"]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
