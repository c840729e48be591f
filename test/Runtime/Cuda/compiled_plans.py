"""Plans compiled for CUDA, run on fake devices.

    python test/Runtime/Cuda/compiled_plans.py --build build/runtime

BUILD has the tests of the runtime, with the driver and the NCCL that work on host memory. The
host program is the one that runs on GPUs; each kernel of its PTX is done by the CPU's kernel of
the same name, which takes the same arguments. Every result must be near float64, and the same
from a graph.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mercury as mc
import numpy as np
from mercury import libraries, reference
from mercury.cuda import native
from mercury.cuda.plan import CudaPlan
from mercury.runtime.compiled import Compiled, compile_for
from mercury.runtime.dtypes import decode, encode, storage
from mercury.runtime.trial import limits

ATTENTION = {"b": 3, "h": 4, "group": 2, "sq": 19, "sk": 22, "d": 8, "dv": 5}
MATMUL = {"m": 13, "n": 9, "depth": 7}
DECODE = {"b": 2, "h": 4, "group": 2, "sk": 22, "d": 8}
PRODUCT = "gemm-rs: parallelize(k, gpu); shard(C, i, gpu); shift(i, by=k, offset=1"
CASES = [
    *((name, "gpu=2") for name in ("ring", "gemm-rs", "ulysses", "context-parallel", "tree")),
    *((name, "gpu=3") for name in ("ring", "gemm-rs-shifted", "ag-gemm-shifted", "async-tp")),
    *((name, "node=2,gpu=2") for name in ("usp", "hybrid", "double-ring", "cannon", "summa")),
    *(
        (name, mesh)
        for name in ("context-parallel", "ulysses", "async-tp")
        for mesh in ("node=2,gpu=2", "node=2,gpu=3")
    ),
    # A strategy's boundary with steps of our own: what one merge at the end makes.
    ("ring: parallelize(sq, gpu); shift(sk, by=sq, reads=pull); defer(O)", "gpu=2"),
    (
        "ring: parallelize(sq, gpu); shift(sk, by=sq, reads=pull); defer(O, partial={})",
        "gpu=2",
    ),
    # Slices that are read ahead: each of one piece of memory, and of many rows.
    *(
        (
            f"ring: tile({axis}, 2); parallelize(sq, gpu); shift(sk, by=sq, reads=pull); "
            "defer(O, partial={})",
            mesh,
        )
        for axis in "bh"
        for mesh in ("gpu=2", "gpu=3")
    ),
    # Exchanges in slices: of rows that lie together, and of planes of rows.
    *(
        (f"ring: tile({axis}, 2); parallelize({inner}, gpu); overlap({axis}_outer)", mesh)
        for axis, inner in (("b", "b_inner"), ("h", "h_inner"), ("b", "h"))
        for mesh in ("gpu=2", "gpu=3")
    ),
    ("gemm-rs: parallelize(k, gpu); defer(C)", "gpu=2"),
    ("gemm-rs: parallelize(k, gpu); replicate(C, gpu)", "gpu=3"),
    *(
        (f"{PRODUCT}, results={results}, chunks={chunks}{link})", mesh)
        for results in ("fetch", "deliver")
        for mesh in ("gpu=2", "gpu=3")
        for chunks, link in ((1, ", link={}"), (2, ""), (2, ", link={}"), (3, ", link={}"))
    ),
    ("ring: parallelize(sq, gpu); shift(sk, by=sq, link={}, reads=pull)", "gpu=3"),
    ("ring: parallelize(sq, gpu); shift(sk, by=sq, link={})", "gpu=2"),
    # Puts, of the last level.
    *(("puts ring", f"gpu={n}") for n in (2, 3)),
    ("puts gemm-rs-shifted", "gpu=3"),
    ("puts double-ring", "node=2,gpu=2"),
    (f"puts {PRODUCT}, results=deliver, chunks=2)", "gpu=3"),
]


class Devices:
    """The fake driver, its kernels, and the runtime."""

    def __init__(self, build: Path) -> None:
        found = list(build.glob("**/libmercury_rt_fake_cuda.so"))
        if not found:
            sys.exit(f"{build} has no libmercury_rt_fake_cuda.so; build the runtime's tests")
        self.path = str(found[0]).encode()
        self.fake = ctypes.CDLL(str(found[0]))
        self.fake.fake_cuda_stream.restype = ctypes.c_void_p
        self.runtime = ctypes.CDLL(str(libraries.runtime_path()))
        self.runtime.mercury_rt_last_error.restype = ctypes.c_char_p
        self.fake.fake_nccl_set_version(23000)  # graphs hold puts
        self.kept: list[Any] = []

    def define_kernels(self, image: bytes, host: Compiled) -> None:
        """Give each entry of the PTX the CPU's kernel of its name."""
        self.kept.append(host)
        for name, parameters in re.findall(
            r"\.entry (\w+)\((.*?)\)", image.decode(), re.DOTALL
        ):
            address = host.jit.lookup(f"_mlir_mercury_kernel_{name}")
            count = parameters.count(".param")
            self.fake.fake_cuda_define(name.encode(), count, ctypes.c_void_p(address))

    def allocate(self, contents: np.ndarray[Any, Any]) -> ctypes.c_void_p:
        memory = ctypes.c_void_p()
        self.fake.fake_cuda_allocate(
            ctypes.byref(memory), ctypes.c_uint64(max(contents.nbytes, 1))
        )
        ctypes.memmove(memory, contents.ctypes.data, contents.nbytes)
        return memory

    def run(self, plan: Compiled, shards: list[list[np.ndarray[Any, Any]]]) -> list[str]:
        """Run on every rank twice, the second time from a graph; results replace shards."""
        levels = plan.mesh.levels
        told = CudaPlan(plan)
        named = told.groups.items()
        groups = (native.Group * len(named))(
            *(
                native.Group(
                    group=native.group_number(plan.mesh, group),
                    sends=sends,
                    puts=group == told.puts,
                )
                for group, sends in named
            )
        )
        rendezvous = f"/tmp/mercury-test-{uuid.uuid4().hex}".encode()
        problems: list[str] = []

        def rank_main(rank: int) -> None:
            job = native.Job(
                abi_version=libraries.ABI_VERSION,
                number_of_levels=len(levels),
                level_sizes=(ctypes.c_int64 * len(levels))(*(size for _, size in levels)),
                level_names=(ctypes.c_char_p * len(levels))(*(n.encode() for n, _ in levels)),
                rank=rank,
                device=rank,
                rendezvous=rendezvous,
                local_bytes=plan.local_bytes,
                symmetric_bytes=plan.symmetric_bytes,
                deadline_ms=20_000,
                number_of_groups=len(groups),
                groups=groups,
                cuda_library=self.path,
                nccl_library=self.path,
            )
            context = ctypes.c_void_p()

            def check(status: int) -> None:
                if status:
                    raise RuntimeError(self.runtime.mercury_rt_last_error().decode())

            memory = [self.allocate(shard) for shard in shards[rank]]
            buffers = (ctypes.c_void_p * len(memory))(*(m.value for m in memory))
            entry, library = ctypes.c_void_p(plan.entry), self.runtime
            caller = ctypes.c_void_p(self.fake.fake_cuda_stream(rank))
            graph = ctypes.c_void_p()
            try:
                check(library.mercury_rt_cuda_open(ctypes.byref(job), ctypes.byref(context)))
                check(library.mercury_rt_cuda_run(context, entry, buffers, caller))
                check(library.mercury_rt_cuda_synchronize(context))
                for shard, made in zip(shards[rank], memory, strict=True):
                    ctypes.memmove(shard.ctypes.data, made, shard.nbytes)
                check(
                    library.mercury_rt_cuda_capture(
                        context, entry, buffers, ctypes.byref(graph)
                    )
                )
                check(library.mercury_rt_cuda_replay(context, graph, caller))
                check(library.mercury_rt_cuda_synchronize(context))
                library.mercury_rt_cuda_graph_free(context, graph)
                for shard, made in zip(shards[rank], memory, strict=True):
                    again = np.empty_like(shard)
                    ctypes.memmove(again.ctypes.data, made, shard.nbytes)
                    if again.tobytes() != shard.tobytes():
                        problems.append(f"rank {rank}: a replay gave something else")
            except RuntimeError as error:
                problems.append(f"rank {rank}: {error}")
            library.mercury_rt_cuda_close(context)
            for made in memory:
                self.fake.fake_cuda_free(made)

        threads = [threading.Thread(target=rank_main, args=(r,)) for r in range(plan.mesh.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return problems


def check(devices: Devices, strategy: str, mesh: str, dtype: str) -> list[str]:
    name, _, steps = strategy.removeprefix("puts ").partition(": ")
    method = mc.strategies.get(name)
    programs: dict[str, Callable[[], Any]] = {
        "attention": lambda: mc.programs.attention(mask="causal", **ATTENTION, dtype=dtype),
        "decode_attention": lambda: mc.programs.decode_attention(**DECODE, dtype=dtype),
        "matmul": lambda: mc.programs.matmul(**MATMUL, dtype=dtype),
    }
    program = programs[method.program.name]()
    if steps:
        schedule = method.start(mc.Mesh.parse(mesh), program).apply(steps.format(dtype))
    else:
        schedule = method.schedule(mc.Mesh.parse(mesh), program)
    level = schedule.mesh.names[-1] if strategy.startswith("puts ") else ""
    puts = schedule.group(level)
    plan = compile_for("cuda", schedule._module, program, schedule.mesh, puts=puts)
    host = compile_for("sim", schedule._module, program, schedule.mesh, puts=puts)
    devices.define_kernels(plan.image, host)
    rng = np.random.default_rng(0)
    inputs = {
        buffer.name: encode(rng.standard_normal(buffer.shape), buffer.dtype)
        for buffer in program.inputs
    }
    shards = [
        [
            plan.layouts[buffer.name].scatter(inputs[buffer.name])[rank]
            if buffer.name in inputs
            # What is never written shows.
            else np.full(plan.layouts[buffer.name].shape(rank), 0xFF, np.uint8).astype(
                storage(buffer.dtype)
            )
            for buffer in program.buffers
        ]
        for rank in range(plan.mesh.size)
    ]
    problems = devices.run(plan, shards)
    expected = reference.evaluate(
        program, {b.name: decode(inputs[b.name], b.dtype) for b in program.inputs}
    )
    for number, buffer in enumerate(program.buffers):
        if buffer.name not in expected:
            continue
        parts = [shards[rank][number] for rank in range(plan.mesh.size)]
        found = decode(plan.layouts[buffer.name].gather(parts), buffer.dtype)
        error = reference.relative_error(found, expected[buffer.name])
        if not error <= limits(program)[buffer.name]:
            problems.append(f"'{buffer.name}' differs from float64 by {error}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="of the runtime's tests")
    parser.add_argument("--only", default="", help="only plans whose name holds this")
    given = parser.parse_args()
    devices = Devices(given.build)
    failed = 0
    for strategy, mesh in CASES:
        for dtype in ("f32", "bf16", "f16"):
            name = f"{strategy} {mesh} {dtype}"
            if given.only not in name:
                continue
            start = time.monotonic()
            problems = check(devices, strategy, mesh, dtype)
            failed += bool(problems)
            state = "WRONG" if problems else "right"
            print(f"{name:34} {state} {time.monotonic() - start:6.1f} s", *problems, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
