"""The programs of Schedules.h on GPUs: are they right, and how far from their floor.

    cmake -S lib/Runtime -B BUILD -DMERCURY_RT_TESTS=ON && cmake --build BUILD
    torchrun --nproc-per-node 2 test/Runtime/Cuda/by_hand.py --build BUILD --merge softmax_merge.ptx

The floor is the same work of one GPU in one library call, with all data already there. Floor and program take
turns in one process group, both as CUDA graphs. The time of a round is the maximum over the ranks, and the ratio is
the median over the rounds, with its 95% interval.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

ABI_VERSION = 2
BF16, F32 = 4, 2
DTYPES = {BF16: torch.bfloat16, F32: torch.float32}

ATTENTION = [(1, 32, 4096), (1, 32, 16384), (1, 32, 65536), (16, 32, 4096), (1, 32, 262144)]
PRODUCTS = [(8192, 8192, 28672), (16384, 8192, 8192), (4096, 4096, 14336)]


# --- The C interface --------------------------------------------------------------------------------------------------


class Job(ctypes.Structure):
    _fields_ = (
        ("abi_version", ctypes.c_int32),
        ("number_of_levels", ctypes.c_int64),
        ("level_sizes", ctypes.POINTER(ctypes.c_int64)),
        ("level_names", ctypes.POINTER(ctypes.c_char_p)),
        ("level_is_local", ctypes.POINTER(ctypes.c_int32)),
        ("rank", ctypes.c_int64),
        ("device", ctypes.c_int32),
        ("rendezvous", ctypes.c_char_p),
        ("arena_bytes", ctypes.c_int64),
        ("deadline_ms", ctypes.c_int64),
        ("communicators", ctypes.POINTER(ctypes.c_void_p)),
        ("make_communicators", ctypes.c_int32),
        ("cuda_library", ctypes.c_char_p),
        ("nccl_library", ctypes.c_char_p),
    )


class Tile(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("element", ctypes.c_int32),
        ("number_of_dims", ctypes.c_int32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )


class Call(ctypes.Structure):
    _fields_ = (
        ("number_of_tiles", ctypes.c_int64),
        ("tiles", ctypes.POINTER(Tile)),
        ("number_of_integers", ctypes.c_int64),
        ("integers", ctypes.POINTER(ctypes.c_int64)),
        ("number_of_reals", ctypes.c_int64),
        ("reals", ctypes.POINTER(ctypes.c_double)),
    )


class Sizes(ctypes.Structure):
    _fields_ = (
        ("element", ctypes.c_int32),
        ("element_bytes", ctypes.c_int32),
        *[
            (name, ctypes.c_int64)
            for name in ("batch", "rows", "heads", "dim", "m", "k", "n", "chunks")
        ],
        ("merge_image", ctypes.c_void_p),
        ("merge_image_bytes", ctypes.c_int64),
    )


KERNEL = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(Call)
)


class Memory:
    """Memory at an address, for torch.as_tensor."""

    def __init__(self, address: int, elements: int, kind: str) -> None:
        self.__cuda_array_interface__ = {
            "shape": (elements,),
            "typestr": kind,
            "data": (address, False),
            "version": 3,
        }


def tensor_of(tile: Tile) -> torch.Tensor:
    """The tensor that a tile describes, in place."""
    sizes = tile.sizes[: tile.number_of_dims]
    strides = tile.strides[: tile.number_of_dims]
    elements = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    kind = {BF16: "<i2", F32: "<f4"}[tile.element]
    flat = torch.as_tensor(Memory(tile.data, elements, kind), device="cuda").view(
        DTYPES[tile.element]
    )
    return flat.as_strided(sizes, strides)


class Runtime:
    """libmercury_rt.so, with PyTorch's kernels registered."""

    def __init__(self, build: pathlib.Path, merge: pathlib.Path) -> None:
        self.library = ctypes.CDLL(str(build / "libmercury_rt.so"), mode=ctypes.RTLD_GLOBAL)
        self.schedules = ctypes.CDLL(str(build / "test/Cuda/libmercury_rt_schedules.so"))
        self.library.mercury_rt_last_error.restype = ctypes.c_char_p
        self.library.mercury_rt_cuda_stream.restype = ctypes.c_void_p
        self.image = merge.read_bytes() + b"\0"
        self.pool = torch.cuda.MemPool()
        self.kept: list[torch.Tensor] = []
        self.error: BaseException | None = None
        self.callbacks = {
            b"attention_fwd": KERNEL(self.guarded(self.attention)),
            b"matmul": KERNEL(self.guarded(self.matmul)),
        }
        self.register(self.callbacks)

    def register(self, callbacks: dict[bytes, Any]) -> None:
        for name, callback in callbacks.items():
            self.library.mercury_rt_kernel_drop(name)
            self.check(self.library.mercury_rt_kernel_register(name, callback, None))

    def check(self, status: int) -> None:
        if self.error:
            raise self.error
        if status:
            raise RuntimeError(
                f"status {status}: {self.library.mercury_rt_last_error().decode()}"
            )

    def guarded(self, kernel: Callable[[Call], None]) -> Callable[..., int]:
        """An exception may not leave a callback: it is kept, and told as a status."""

        def call(_context: int, _user: int, stream: int, call: Any) -> int:
            try:
                with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
                    kernel(call.contents)
            except BaseException as error:  # noqa: BLE001 (it is raised by check)
                self.error = error
                return 100
            return 0

        return call

    def attention(self, call: Call) -> None:
        q, k, v = (tensor_of(call.tiles[i]) for i in range(3))
        out, sums = cudnn_attention(q, k, v)
        self.kept += [out, sums]
        call.tiles[3].data, call.tiles[4].data = out.data_ptr(), sums.data_ptr()

    def matmul(self, call: Call) -> None:
        a, b, c = (tensor_of(call.tiles[i]) for i in range(3))
        if call.integers[0]:
            c.addmm_(a, b)
        else:
            torch.mm(a, b, out=c)


def cudnn_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of [batch, heads, rows, dim], and its log-sum-exp."""
    result = torch.ops.aten._scaled_dot_product_cudnn_attention(
        q, k, v, None, True, 0.0, False, False
    )
    return result[0], result[1]


class Context:
    """One context of this process, over all ranks as one level."""

    def __init__(
        self,
        runtime: Runtime,
        arena_bytes: int,
        communicators: bool = False,
        deadline_ms: int = 60000,
    ) -> None:
        self.runtime, self.library = runtime, runtime.library
        name = [f"/dev/shm/mercury-{uuid.uuid4().hex}" if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(name, device="cpu")
        self.job = Job(
            abi_version=ABI_VERSION,
            number_of_levels=1,
            level_sizes=(ctypes.c_int64 * 1)(dist.get_world_size()),
            level_names=(ctypes.c_char_p * 1)(b"gpu"),
            rank=dist.get_rank(),
            device=torch.cuda.current_device(),
            rendezvous=name[0].encode(),
            arena_bytes=arena_bytes,
            deadline_ms=deadline_ms,
            make_communicators=communicators,
        )
        self.handle = ctypes.c_void_p()
        runtime.check(
            self.library.mercury_rt_cuda_open(ctypes.byref(self.job), ctypes.byref(self.handle))
        )
        self.graphs: list[ctypes.c_void_p] = []

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        torch.cuda.synchronize()
        for graph in self.graphs:
            self.library.mercury_rt_cuda_graph_free(self.handle, graph)
        self.library.mercury_rt_cuda_close(self.handle)
        self.runtime.kept.clear()

    def run(self, entry: Any, buffers: Any) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        with torch.cuda.use_mem_pool(self.runtime.pool):
            self.runtime.check(
                self.library.mercury_rt_cuda_run(self.handle, entry, buffers, stream)
            )

    def capture(self, entry: Any, buffers: Any) -> Callable[[], None]:
        """Run once, to warm every kernel, and capture."""
        self.run(entry, buffers)
        self.synchronize()
        self.runtime.kept.clear()
        graph = ctypes.c_void_p()
        with torch.cuda.use_mem_pool(self.runtime.pool):
            self.runtime.check(
                self.library.mercury_rt_cuda_capture(
                    self.handle, entry, buffers, ctypes.byref(graph)
                )
            )
        self.graphs.append(graph)

        def replay() -> None:
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            self.runtime.check(self.library.mercury_rt_cuda_replay(self.handle, graph, stream))

        return replay

    def synchronize(self) -> None:
        self.runtime.check(self.library.mercury_rt_cuda_synchronize(self.handle))


def pointers(sizes: Sizes, *tensors: torch.Tensor) -> Any:
    return (ctypes.c_void_p * (1 + len(tensors)))(
        ctypes.addressof(sizes), *[t.data_ptr() for t in tensors]
    )


# --- Measuring --------------------------------------------------------------------------------------------------------


def graph_of(work: Callable[[], None]) -> Callable[[], None]:
    """The floor as a CUDA graph of PyTorch's."""
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def milliseconds(work: Callable[[], None], times: int) -> float:
    """The time of one run, the maximum over the ranks."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    dist.barrier()
    begin.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    worst = torch.tensor(begin.elapsed_time(end) / times)
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return float(worst)


def compare(
    name: str,
    floor: Callable[[], None],
    ours: Callable[[], None],
    error: float,
    rounds: int = 15,
) -> None:
    """Measure both in turns and print a line."""
    milliseconds(floor, 3), milliseconds(ours, 3)
    single = max(milliseconds(floor, 2), milliseconds(ours, 2))
    times = max(1, min(50, int(40 / single)))
    if single > 200:
        rounds = 5
    samples = [(milliseconds(floor, times), milliseconds(ours, times)) for _ in range(rounds)]
    floors, programs = (sorted(column) for column in zip(*samples, strict=True))
    ratios = sorted(ours / floor for floor, ours in samples)
    middle, spread = rounds // 2, max(1, int(0.98 * rounds**0.5))
    low, high = ratios[max(0, middle - spread)], ratios[min(rounds - 1, middle + spread)]
    say(
        f"{name:36} floor {floors[middle]:9.3f} ms  by hand {programs[middle]:9.3f} ms  "
        f"ratio {ratios[middle]:.3f} [{low:.3f}, {high:.3f}]  error {error:.1e}"
    )


def say(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)


def randn(*shape: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return (
        torch.randn(*shape, generator=generator, device="cuda", dtype=torch.bfloat16) * scale
    ).contiguous()


def relative(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """The error, NaN included, as the maximum over the ranks."""
    error = (actual.double() - expected).norm() / expected.norm()
    worst = torch.nan_to_num(error, nan=1e9).cpu()
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return float(worst)


# --- The programs -----------------------------------------------------------------------------------------------------


def attention(runtime: Runtime, batch: int, heads: int, rows: int) -> None:
    ranks, rank, dim = dist.get_world_size(), dist.get_rank(), 128
    part = rows // ranks
    shape = (batch, part, heads, dim)
    q = randn(*shape, seed=1000 + rank)
    keys = [randn(*shape, seed=2000 + r) for r in range(ranks)]
    values = [randn(*shape, seed=3000 + r) for r in range(ranks)]
    k, v = keys[rank], values[rank]
    all_k, all_v = torch.cat(keys, 1), torch.cat(values, 1)
    del keys, values
    out, lse = (
        torch.full_like(q, torch.nan),
        torch.full((batch, heads, part), torch.nan, device="cuda"),
    )
    sizes = Sizes(element=BF16, element_bytes=2, batch=batch, rows=part, heads=heads, dim=dim)
    sizes.merge_image = ctypes.cast(runtime.image, ctypes.c_void_p)
    sizes.merge_image_bytes = len(runtime.image)
    whole = [t.transpose(1, 2) for t in (q, all_k, all_v)]
    with Context(runtime, 2 * (ranks - 1) * k.nbytes) as context:
        ours = context.capture(
            runtime.schedules.schedule_attention, pointers(sizes, q, k, v, out, lse)
        )
        ours()
        context.synchronize()
        error = sampled_attention_error(q, all_k, all_v, out, lse)
        single, sums = cudnn_attention(*whole)
        floor_error = sampled_attention_error(
            q, all_k, all_v, single.transpose(1, 2), sums[..., 0]
        )
        if not error < 2 * floor_error:
            raise AssertionError(
                f"attention is wrong: error {error}, of one call {floor_error}"
            )
        del single, sums
        compare(
            f"attention {batch}, {heads}, {rows}",
            graph_of(lambda: cudnn_attention(*whole)),
            ours,
            error,
        )


def sampled_attention_error(q, k, v, out, lse) -> float:
    """Of 32 random rows, against float64."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    actual, expected = [], []
    for _ in range(32):
        b, r, h = (int(torch.randint(size, (1,), generator=generator)) for size in q.shape[:3])
        scores = k[b, :, h].double() @ q[b, r, h].double() / q.shape[-1] ** 0.5
        row = torch.softmax(scores, 0) @ v[b, :, h].double()
        total = torch.logsumexp(scores, 0)
        if not abs(float(lse[b, h, r]) - float(total)) < 1e-2:
            raise AssertionError(f"log-sum-exp is {float(lse[b, h, r])}, not {float(total)}")
        actual.append(out[b, r, h])
        expected.append(row)
    return relative(torch.stack(actual), torch.stack(expected))


def sampled_product_error(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """Of 64 x 64 random elements, against float64."""
    generator = torch.Generator(device="cuda").manual_seed(7)
    rows = torch.randint(c.shape[0], (64,), generator=generator, device="cuda")
    columns = torch.randint(c.shape[1], (64,), generator=generator, device="cuda")
    return relative(c[rows][:, columns], a[rows].double() @ b[:, columns].double())


def ag_gemm(runtime: Runtime, m: int, k: int, n: int, chunks: int) -> None:
    ranks, rank = dist.get_world_size(), dist.get_rank()
    parts = [randn(m // ranks, k, seed=1000 + r) for r in range(ranks)]
    a, all_a, b = (
        parts[rank],
        torch.cat(parts),
        randn(k, n // ranks, seed=2000 + rank, scale=k**-0.5),
    )
    c = torch.full((m, n // ranks), torch.nan, device="cuda", dtype=torch.bfloat16)
    single = torch.empty_like(c)
    sizes = Sizes(element=BF16, element_bytes=2, m=m, k=k, n=n // ranks, chunks=chunks)
    with Context(runtime, (ranks - 1) * a.nbytes) as context:
        ours = context.capture(runtime.schedules.schedule_ag_gemm, pointers(sizes, a, b, c))
        ours()
        context.synchronize()
        error = sampled_product_error(c, all_a, b)
        if not error < 5e-3:
            raise AssertionError(f"AG-GEMM is wrong: error {error}")
        floor = graph_of(lambda: torch.mm(all_a, b, out=single))
        compare(f"AG-GEMM {m}, {k}, {n}, {chunks} chunks", floor, ours, error)


def gemm_rs(runtime: Runtime, m: int, k: int, n: int, chunks: int) -> None:
    ranks, rank = dist.get_world_size(), dist.get_rank()
    own = m // ranks
    parts = [randn(m, k // ranks, seed=1000 + r) for r in range(ranks)]
    weights = [randn(k // ranks, n, seed=2000 + r, scale=k**-0.5) for r in range(ranks)]
    a, b = parts[rank], weights[rank]
    c = torch.full((own, n), torch.nan, device="cuda", dtype=torch.bfloat16)
    single = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)
    sizes = Sizes(element=BF16, element_bytes=2, m=m, k=k // ranks, n=n, chunks=chunks)
    with Context(runtime, (ranks - 1) * c.nbytes) as context:
        ours = context.capture(runtime.schedules.schedule_gemm_rs, pointers(sizes, a, b, c))
        ours()
        context.synchronize()
        rows = slice(rank * own, (rank + 1) * own)
        error = sampled_product_error(
            c, torch.cat([p[rows] for p in parts], 1), torch.cat(weights)
        )
        if not error < 5e-3:
            raise AssertionError(f"GEMM-RS is wrong: error {error}")
        floor = graph_of(lambda: torch.mm(a, b, out=single))
        compare(f"GEMM-RS {m}, {k}, {n}, {chunks} chunks", floor, ours, error)


# --- Is it right ------------------------------------------------------------------------------------------------------


def replay_many(runtime: Runtime, times: int = 1000) -> None:
    """Replays with inputs that change each time, and a rank that is late."""
    ranks, rank, part, heads = dist.get_world_size(), dist.get_rank(), 256, 4
    shape = (1, part, heads, 128)
    q, k, v = (torch.empty(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out, lse = torch.empty_like(q), torch.empty((1, heads, part), device="cuda")
    sizes = Sizes(element=BF16, element_bytes=2, batch=1, rows=part, heads=heads, dim=128)
    sizes.merge_image = ctypes.cast(runtime.image, ctypes.c_void_p)
    sizes.merge_image_bytes = len(runtime.image)
    generators = [torch.Generator(device="cuda").manual_seed(r) for r in range(ranks)]
    worst = torch.zeros((), device="cuda")
    k.normal_(), v.normal_(), q.normal_()
    with Context(runtime, 2 * (ranks - 1) * k.nbytes) as context:
        replay = context.capture(
            runtime.schedules.schedule_attention, pointers(sizes, q, k, v, out, lse)
        )
        late = torch.randint(
            ranks + 2, (times,), generator=torch.Generator().manual_seed(5)
        ).tolist()
        for round_number in range(times):
            whole = [
                torch.cat(
                    [
                        torch.randn(shape, generator=g, device="cuda", dtype=torch.bfloat16)
                        for g in generators
                    ],
                    1,
                )
                for _ in range(2)
            ]
            k.copy_(whole[0][:, rank * part : (rank + 1) * part])
            v.copy_(whole[1][:, rank * part : (rank + 1) * part])
            if late[round_number] == rank:
                torch.cuda._sleep(400_000)
            if round_number % 10 == 9:
                context.run(
                    runtime.schedules.schedule_attention, pointers(sizes, q, k, v, out, lse)
                )
            else:
                replay()
            expected, _ = cudnn_attention(*(t.transpose(1, 2) for t in (q, *whole)))
            error = (
                out.float() - expected.transpose(1, 2).float()
            ).norm() / expected.float().norm()
            worst = torch.maximum(worst, torch.nan_to_num(error, nan=1e9))
        context.synchronize()
        error = relative(1 + worst, torch.ones((), device="cuda", dtype=torch.float64))
        if not error < 1e-2:
            raise AssertionError(f"a replay is wrong: error {error}")
        say(f"{times} replays with new inputs and a late rank: worst error {error:.1e}")


def messages(runtime: Runtime) -> None:
    """NCCL's messages, run and captured."""
    ranks, rank, size = dist.get_world_size(), dist.get_rank(), 1 << 20
    with Context(runtime, size, communicators=True) as context:
        for uneven in (0, 1):
            src = torch.randint(1, 100, (size,), device="cuda", dtype=torch.uint8)
            dst, slots = (
                torch.zeros_like(src),
                torch.zeros((ranks, size), device="cuda", dtype=torch.uint8),
            )
            all_src = [torch.empty_like(src.cpu()) for _ in range(ranks)]
            dist.all_gather(all_src, src.cpu())
            sizes = Sizes(m=size, k=uneven)
            replay = context.capture(
                runtime.schedules.schedule_messages, pointers(sizes, src, dst, slots)
            )
            for _ in range(3):
                dst.zero_(), slots.zero_()
                replay()
                context.synchronize()
                for r in range(ranks):
                    given = size - r * uneven
                    if not (
                        torch.equal(slots[r, :given].cpu(), all_src[r][:given])
                        and torch.equal(dst, src)
                    ):
                        raise AssertionError(f"messages are wrong on rank {rank}")
    say("messages by NCCL, even and uneven, run and replayed: right")


def host_time(runtime: Runtime) -> None:
    """What a run costs the host outside a graph, kernels aside."""
    size = 1 << 20
    a, b, c = (torch.zeros(size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    ranks = dist.get_world_size()
    sizes = Sizes(element=BF16, element_bytes=2, m=8 * ranks, k=64, n=64, chunks=8)
    calls = (
        2 + 4 * 8 * (ranks - 1) + 1
    )  # open, close, own product; address, pull, wait, product of each part
    nothing = ctypes.cast(runtime.schedules.schedule_nothing, ctypes.c_void_p)
    runtime.register({b"matmul": nothing})
    with Context(runtime, size) as context:
        buffers = pointers(sizes, a, b, c)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        entry, times = runtime.schedules.schedule_ag_gemm, []
        for _ in range(200):
            context.synchronize()
            begin = time.perf_counter()
            runtime.library.mercury_rt_cuda_run(context.handle, entry, buffers, stream)
            times.append(time.perf_counter() - begin)
        context.synchronize()
        say(
            f"host time of a call outside a graph: {sorted(times)[100] / calls * 1e6:.2f} us ({calls} calls a run)"
        )
    runtime.register({b"matmul": runtime.callbacks[b"matmul"]})


def late_rank(runtime: Runtime) -> None:
    """A rank that never comes ends the others within the deadline."""
    size = 1 << 16
    a, b, c = (torch.zeros(size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    sizes = Sizes(
        element=BF16, element_bytes=2, m=8 * dist.get_world_size(), k=64, n=64, chunks=1
    )
    context = Context(runtime, size, deadline_ms=2000)
    replay = context.capture(runtime.schedules.schedule_ag_gemm, pointers(sizes, a, b, c))
    dist.barrier()
    begin, text = time.perf_counter(), ""
    if dist.get_rank() == 0:
        replay()
        try:
            context.synchronize()
        except RuntimeError as error:
            text = str(error)
    seconds = time.perf_counter() - begin
    dist.barrier()
    context.__exit__()
    if dist.get_rank() == 0 and not ("status 5" in text and seconds < 5):
        raise AssertionError(f"a late rank was not found: {seconds:.1f} s, {text}")
    say(f"a rank that never comes, after {seconds:.1f} s: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--build", type=pathlib.Path, required=True, help="where the runtime was built"
    )
    parser.add_argument(
        "--merge", type=pathlib.Path, required=True, help="PTX of softmax_merge.mlir"
    )
    parser.add_argument("--only", default="", help="the measurements whose name has this text")
    arguments = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo")
    runtime = Runtime(arguments.build, arguments.merge)
    steps: list[tuple[str, Callable[[], None]]] = [
        ("replays", lambda: replay_many(runtime)),
        ("messages", lambda: messages(runtime)),
        ("host", lambda: host_time(runtime)),
    ]
    steps += [("attention", lambda s=s: attention(runtime, *s)) for s in ATTENTION]
    steps += [
        ("ag_gemm", lambda s=s, n=n: ag_gemm(runtime, *s, n)) for s in PRODUCTS for n in (1, 2)
    ]
    steps += [
        ("gemm_rs", lambda s=s, n=n: gemm_rs(runtime, *s, n)) for s in PRODUCTS for n in (2, 4)
    ]
    steps.append(("late", lambda: late_rank(runtime)))
    for name, step in steps:
        if arguments.only in name:
            step()
            torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
