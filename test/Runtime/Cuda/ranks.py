"""One rank of a job on the fake driver; test/python/test_cuda_ranks.py starts them.

RANK=0 WORLD_SIZE=2 MERCURY_STORE=... python test/Runtime/Cuda/ranks.py CASE [MESH]
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import mercury as mc
import numpy as np
from fake import KERNELS, LIBRARY, DeviceArray
from mercury import reference, tuner
from mercury.bench import host
from mercury.cuda import native
from scenarios import FAULTS, Bound, Machine, expect_end, refused, run_right

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
MESH = mc.Mesh.parse(sys.argv[2] if len(sys.argv) > 2 else f"gpu={RANKS}")
DEADLINE_MS = 20_000


def attention(**settings: Any) -> mc.Program:
    given = {"h": 2 * RANKS, "sq": 13, "sk": 17, "d": 4, "group": 2, "dtype": "f32"}
    return mc.programs.attention(**{**given, **settings})


def product() -> mc.Program:
    return mc.programs.matmul(m=11, n=7, depth=5, dtype="f32")


def ring(reads: str, **settings: Any) -> mc.Schedule:
    made = mc.Schedule(attention(mask="causal", **settings), MESH).parallelize("sq", MESH.names)
    return made.shift("sk", by="sq", reads=reads)


def summed(steps: str) -> mc.Schedule:
    """A product whose depth is shared out."""
    return mc.Schedule(product(), MESH).apply(f"parallelize(k, gpu); {steps}")


SCHEDULES: dict[str, Callable[[], mc.Schedule]] = {
    "ring-rotate": lambda: ring("rotate"),
    "ring-pull": lambda: ring("pull"),
    "ring-zigzag": lambda: ring("pull", sk=13, layout={"sq": "zigzag", "sk": "zigzag"}),
    "ulysses": lambda: mc.strategies.get("ulysses").schedule(
        MESH, attention(sq=12, sk=18, group=1)
    ),
    "context-parallel": lambda: mc.strategies.get("context-parallel").schedule(
        MESH, attention()
    ),
    "shifted-reduction": lambda: mc.strategies.get("shifted-reduction").schedule(
        MESH, attention(mask="causal")
    ),
    "ring-merged-once": lambda: ring("pull").defer("O"),
    "tree": lambda: mc.strategies.get("tree").schedule(
        MESH, mc.programs.decode_attention(h=4, sk=17, d=4, group=2, dtype="f32")
    ),
    "sum-merged-once": lambda: summed("replicate(C, gpu); defer(C)"),
    "all-reduce": lambda: summed("replicate(C, gpu)"),
    "summa": lambda: mc.strategies.get("summa").schedule(MESH, product()),
    "panels-packed": lambda: (
        mc.Schedule(product(), MESH)
        .tile("k", 2 * RANKS)
        .parallelize("j", MESH.names)
        .shard("A", "k", MESH.names, reads="broadcast")
    ),
    "gemm-rs": lambda: mc.strategies.get("gemm-rs").schedule(MESH, product()),
    "gemm-rs-shifted": lambda: mc.strategies.get("gemm-rs-shifted").schedule(MESH, product()),
    "gemm-rs-fetch": lambda: mc.Schedule(product(), MESH, {"C": {"i": "gpu"}}).apply(
        "parallelize(k, gpu); shift(i, by=k, offset=1, results=fetch, chunks=2)"
    ),
    "async-tp": lambda: mc.strategies.get("async-tp").schedule(MESH, product()),
}


class FakeBound(Bound):
    """A plan with shards of random inputs on a fake device."""

    def __init__(
        self,
        session: mc.cuda.Session,
        schedule: mc.Schedule,
        within: AbstractContextManager[Any] | None = None,
    ) -> None:
        super().__init__(session, schedule.patch("*", "mine"), within)
        self.expected: dict[str, np.ndarray] = {}

    def make_shards(self) -> dict[str, DeviceArray]:
        self.arrays = {
            buffer.name: DeviceArray(
                np.zeros(self.plan.layout(buffer.name).shape(self.session.rank), np.float32)
            )
            for buffer in self.plan.program.buffers
        }
        return self.arrays

    def draw(self, seed: int) -> None:
        inputs = {
            name: values.astype(np.float32)
            for name, values in reference.draw(self.plan.program, seed).items()
        }
        self.expected = reference.evaluate(self.plan.program, inputs)
        for name, array in self.arrays.items():
            held = self.plan.layout(name).indices(self.session.rank)
            array.array[...] = inputs[name][np.ix_(*held)] if name in inputs else np.nan

    def check(self) -> None:
        for name, whole in self.expected.items():
            held = self.plan.layout(name).indices(self.session.rank)
            error = reference.relative_error(
                self.arrays[name].array.astype(np.float64), whole[np.ix_(*held)]
            )
            assert error < 1e-5, f"{name} is wrong: error {error}"

    def free(self) -> None:
        for array in self.arrays.values():
            array.free()


def check_shared(session: mc.cuda.Session, plan: mc.cuda.CudaPlan) -> None:
    """No handle was taken of the local arena, and one of the symmetric one if it is lent."""
    (context,) = session._contexts
    runtime = native.library()
    for name, size, lent in (
        ("local", plan.local_bytes, False),
        ("symmetric", plan.symmetric_bytes, True),
    ):
        place = getattr(runtime, f"mercury_rt_{name}_arena")
        place.restype, place.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
        memory = place(context._handle)
        assert (memory is not None) == (size > 0), name
        if memory is not None:
            shared = LIBRARY.fake_cuda_is_shared(ctypes.c_void_p(memory))
            assert bool(shared) == lent, f"the {name} arena"


def run_and_replay(name: str) -> None:
    """Run, then capture and replay with new data."""
    LIBRARY.fake_cuda_set_delay(RANK, 300 if RANK == RANKS - 1 else 30)
    with mc.cuda.Session(MESH, kernels=KERNELS, deadline_ms=DEADLINE_MS) as session:
        bound = FakeBound(session, SCHEDULES[name]())
        bound.draw(0)
        bound.call()
        session.synchronize()
        bound.check()
        check_shared(session, bound.plan)
        graph = bound.call.capture()
        for seed in range(1, 6):
            # Peers may read the shards until the last run is over on all of them.
            session.gather("drawn", "")
            bound.draw(seed)
            session.gather("ready", "")
            graph()
            session.synchronize()
            bound.check()
    bound.free()
    left = LIBRARY.fake_cuda_count_objects()
    assert left == 0, f"{left} objects are left"


def assumptions() -> None:
    """One rank has less memory than the chosen plan needs: all take the next one, and run."""
    cuts = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}
    options = tuner.SpaceOptions(styles=(tuner.Style(),), max_levels=1)
    program = attention(h=1, sq=16, sk=512, d=8, group=1)  # heads cannot be shared out
    found = mc.tune(
        program,
        MESH,
        topology=f"h100-{RANKS}x1",
        boundary=cuts,
        options=options,
        cache=False,
    )
    lean = min(found.plans, key=lambda each: each.peak_bytes)
    assert lean.peak_bytes < found.chosen.peak_bytes
    with mc.cuda.Session(MESH, kernels=KERNELS, deadline_ms=DEADLINE_MS) as session:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found.compile("cuda", session=session)
        assert session.free_bytes() == 64 << 30
        if RANK == RANKS - 1:
            LIBRARY.fake_cuda_set_free_bytes(found.chosen.peak_bytes - 1)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            plan = found.compile("cuda", session=session)
        (line,) = [str(each.message) for each in said]
        assert "of memory are free, it needs" in line
        assert f"runs instead of '{found.chosen.recipe}', predicted" in line
        assert len(set(session.gather("taken", plan.digest))) == 1
        taken = line.split("'")[1]
        bound = FakeBound(session, mc.Schedule(program, MESH, cuts).apply(taken))
        assert bound.plan.arena_bytes < found.schedule.compile().arena_bytes
        bound.draw(0)
        bound.call()
        session.synchronize()
        bound.check()
        if RANK == RANKS - 1:
            LIBRARY.fake_cuda_set_free_bytes(lean.peak_bytes - 1)
        told = refused(lambda: found.compile("cuda", session=session), tuner.TuneError)
        assert "no plan fits" in told.message
    bound.free()


def two_plans() -> None:
    """Two plans in one session, the second with a larger arena and messages."""
    with mc.cuda.Session(MESH, kernels=KERNELS, deadline_ms=DEADLINE_MS) as session:
        bounds = [FakeBound(session, SCHEDULES[name]()) for name in ("async-tp", "ulysses")]
        for seed in range(3):
            for bound in bounds:
                session.gather("drawn", "")
                bound.draw(seed)
                session.gather("ready", "")
                bound.call()
                session.synchronize()
                bound.check()


class Fakes(Machine):
    """This rank on a fake device, for the faults."""

    rank, ranks, device = RANK, RANKS, RANK
    kernels = KERNELS
    bind = FakeBound

    def schedule(self, name: str) -> mc.Schedule:
        if name == "alone":
            return mc.Schedule(product(), mc.Mesh(gpu=1))
        if name == "large":
            return ring("pull", sk=200)
        names = {"reads": "ring-pull", "sends": "ring-rotate"}
        return SCHEDULES[names.get(name, "async-tp")]()

    @contextmanager
    def starved(self) -> Iterator[None]:
        LIBRARY.fake_cuda_fail(b"cuMemAlloc_v2", 1, 2)
        yield


def broken_messages() -> None:
    """NCCL tells of an error while a message is under way: all end at once, and work again."""
    machine = Fakes()
    session = machine.session(MESH, DEADLINE_MS)
    bound = run_right(machine, session, "sends")
    session.gather("ready", "")
    LIBRARY.fake_nccl_break(6)

    def work() -> None:
        bound.call()
        while True:
            session.synchronize()

    error = expect_end(session, work)
    assert "NCCL failed in a message on level 'gpu'" in error, error
    assert "operation 1, exchange on level 'gpu', is not over" in error, error
    assert LIBRARY.fake_nccl_count_communicators() == 0
    LIBRARY.fake_nccl_break(0)
    with machine.session(MESH, DEADLINE_MS) as again:
        run_right(machine, again, "sends")


def failing_kernel() -> None:
    """An exception in a kernel of one rank is the error of all."""

    def refuse(_: Any) -> None:
        raise ValueError("no such tile")

    kernels = {**KERNELS, "mine.matmul": refuse} if RANK == 0 else KERNELS
    with mc.cuda.Session(MESH, kernels=kernels, deadline_ms=5000) as session:
        bound = FakeBound(session, SCHEDULES["async-tp"]())
        bound.draw(0)

        def run() -> None:
            bound.call()
            session.synchronize()

        error = refused(run)
        assert "rank 0" in str(error), error
        assert "kernel 'mine.matmul'" in str(error), error
        assert "ValueError: no such tile" in str(error), error
        assert RANK != 0 or isinstance(error.__cause__, ValueError)


def bench_host() -> None:
    """The host's time for a step is measured: of whom and how often, no matter how long."""
    with mc.cuda.Session(MESH, kernels=KERNELS, deadline_ms=DEADLINE_MS) as session:
        points = []
        for name in ("ring-pull", "ring-rotate", "async-tp"):
            bound = FakeBound(session, SCHEDULES[name]())
            points.append(host.measure_host(session, name, bound.plan, bound.arrays, rounds=3))
            bound.draw(1)
            session.gather("drawn", "")
            bound.call()
            session.synchronize()
            bound.check()
    for point in points:
        assert 0 < point.step_us == point.call_us / point.steps
        assert point.low <= point.call_us <= point.high
        assert point.plan in host.host_table(points)
    # Two launches, the keys and values between them, and a copy of the result.
    assert [point.steps for point in points] == [5, 5, 6], points


# What a call of a plan asks of the driver.
DRIVER = (
    "cuCtxSetCurrent",
    "cuEventCreate",
    "cuEventRecord",
    "cuFuncSetAttribute",
    "cuIpcGetMemHandle",
    "cuIpcOpenMemHandle_v2",
    "cuLaunchKernel",
    "cuMemcpy2DAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemGetAddressRange_v2",
    "cuModuleGetFunction",
    "cuPointerGetAttribute",
    "cuStreamBatchMemOp_v2",
    "cuStreamCreate",
    "cuStreamWaitEvent",
)


def driver_calls() -> None:
    """A call of the driver is a microsecond or so of the host's: how many there are."""

    def count(call: mc.cuda.Call) -> Counter[str]:
        found = Counter(
            {name: -LIBRARY.fake_cuda_count_calls(name.encode()) for name in DRIVER}
        )
        call()
        found.update({name: LIBRARY.fake_cuda_count_calls(name.encode()) for name in DRIVER})
        return Counter({name: calls for name, calls in found.items() if calls})

    found = {}
    with mc.cuda.Session(MESH, kernels=KERNELS, deadline_ms=DEADLINE_MS) as session:
        for slices in (1, 8):
            schedule = mc.Schedule(attention(b=8), MESH).tile("b", slices)
            schedule.parallelize("sq", MESH.names).shift("sk", by="sq", reads="pull")
            bound = FakeBound(session, schedule)
            bound.draw(slices)
            bound.call()
            session.synchronize()
            session.gather("warm", "")
            found[slices] = count(bound.call)
            session.synchronize()
            bound.check()
    assert found[1] == {
        "cuCtxSetCurrent": 1,
        "cuPointerGetAttribute": 2,  # of keys and values: is it the allocation that is mapped
        "cuStreamBatchMemOp_v2": 5,  # ready, sent and heard; read, the same; once for both
        "cuMemcpyDtoDAsync_v2": 2,
        "cuLaunchKernel": 1,  # the copy of the result; the others call back
        # The caller, both ways; the lanes of signals and of pulls, both ways; and ...
        "cuEventRecord": 6 + 2,  # the end of each pull,
        "cuStreamWaitEvent": 6 + 1,  # of which the second comes after the first.
    }, found[1]
    # Each further slice: two pulls, forked once and waited for once, two kernels, a copy.
    found[8].subtract(found[1])
    assert +found[8] == {
        "cuMemcpyDtoDAsync_v2": 7 * 2,
        "cuLaunchKernel": 7 * 1,
        "cuEventRecord": 7 * 3,
        "cuStreamWaitEvent": 7 * 2,
    }, found[8]


def kept_results() -> None:
    """Results of a run that failed live until the session is closed: peers may read them."""
    found: list[weakref.ref[DeviceArray]] = []

    def empty(_: Any, shape: tuple[int, ...], __: int) -> DeviceArray:
        made = DeviceArray(np.zeros(shape, np.float32))
        found.append(weakref.ref(made))
        return made

    def refuse(_: Any) -> None:
        raise ValueError("no such tile")

    kernels = {**KERNELS, "mine.matmul": refuse}
    with patch.object(mc.cuda.plan, "empty", empty):
        session = mc.cuda.Session(MESH, kernels=kernels, deadline_ms=5000)
        plan = SCHEDULES["gemm-rs-fetch"]().patch("*", "mine").compile(target="cuda")
        inputs = {
            buffer.name: DeviceArray(np.zeros(plan.layout(buffer.name).shape(RANK), np.float32))
            for buffer in plan.program.inputs
        }
        assert "no such tile" in str(refused(lambda: plan.run(session, **inputs)))
        gc.collect()
        (kept,) = found
        assert kept() is not None
        session.close()
        gc.collect()
        assert kept() is None


def shared_gpu() -> None:
    """Ranks that share a GPU cannot send to each other, but read each other's memory."""
    with mc.cuda.Session(MESH, kernels=KERNELS, deadline_ms=DEADLINE_MS, device=0) as session:
        error = refused(lambda: FakeBound(session, SCHEDULES["ring-rotate"]()))
        shared = f"ranks {', '.join(map(str, range(RANKS)))} share GPU 0000:01:00.0 and send"
        assert shared in str(error), error
        assert "choose a schedule that only reads from peers (reads='pull'" in str(error), error
        bound = FakeBound(session, SCHEDULES["ring-pull"]())
        bound.draw(0)
        bound.call()
        session.synchronize()
        bound.check()


OTHERS = {
    "shared-gpu": shared_gpu,
    "kept-results": kept_results,
    "bench-host": bench_host,
    "driver-calls": driver_calls,
    "two-plans": two_plans,
    "assumptions": assumptions,
    "broken-messages": broken_messages,
    **{name: partial(fault, Fakes()) for name, fault in FAULTS.items()},
    "failing-kernel": failing_kernel,
}


def main() -> None:
    name = sys.argv[1]
    OTHERS[name]() if name in OTHERS else run_and_replay(name)
    print("done")


if __name__ == "__main__":
    main()
