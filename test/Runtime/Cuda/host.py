"""The runtime's C interface, with PyTorch's kernels registered."""

from __future__ import annotations

import ctypes
import pathlib
import uuid
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from mercury.libraries import ABI_VERSION

BF16, F32 = 2, 3
DTYPES = {BF16: torch.bfloat16, F32: torch.float32}


class Group(ctypes.Structure):
    _fields_ = (
        ("group", ctypes.c_int64),
        ("sends", ctypes.c_int32),
        ("puts", ctypes.c_int32),
        ("communicator", ctypes.c_void_p),
    )


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
        ("local_bytes", ctypes.c_int64),
        ("symmetric_bytes", ctypes.c_int64),
        ("deadline_ms", ctypes.c_int64),
        ("number_of_groups", ctypes.c_int64),
        ("groups", ctypes.POINTER(Group)),
        ("kernels", ctypes.c_void_p),
        ("number_of_kernels", ctypes.c_int64),
        ("cuda_library", ctypes.c_char_p),
        ("nccl_library", ctypes.c_char_p),
    )


class Tile(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("element_type", ctypes.c_int32),
        ("rank", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )


class Parameter(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("integer", ctypes.c_int64),
        ("number", ctypes.c_double),
    )


class Arguments(ctypes.Structure):
    _fields_ = (
        ("number_of_inputs", ctypes.c_int64),
        ("inputs", ctypes.POINTER(Tile)),
        ("number_of_outputs", ctypes.c_int64),
        ("outputs", ctypes.POINTER(Tile)),
        ("number_of_parameters", ctypes.c_int64),
        ("parameters", ctypes.POINTER(Parameter)),
    )


FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.POINTER(Arguments),
    ctypes.c_void_p,
    ctypes.c_int64,
)


class Kernel(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
    )


class Results(ctypes.Structure):
    _fields_ = (("o", ctypes.c_void_p), ("lse", ctypes.c_void_p))


class Sizes(ctypes.Structure):
    _fields_ = (
        ("element", ctypes.c_int32),
        ("element_bytes", ctypes.c_int32),
        *[
            (name, ctypes.c_int64)
            for name in ("batch", "rows", "heads", "dim", "m", "k", "n", "chunks", "lanes")
        ],
        ("merge_image", ctypes.c_void_p),
        ("merge_image_bytes", ctypes.c_int64),
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
    sizes = tile.sizes[: tile.rank]
    strides = tile.strides[: tile.rank]
    elements = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    kind = {BF16: "<i2", F32: "<f4"}[tile.element_type]
    flat = torch.as_tensor(Memory(tile.data, elements, kind), device="cuda").view(
        DTYPES[tile.element_type]
    )
    return flat.as_strided(sizes, strides)


class Runtime:
    """libmercury_rt.so, the hand-written programs and the image of the merge."""

    def __init__(self, build: pathlib.Path, merge: pathlib.Path) -> None:
        path = str(build / "libmercury_rt.so")
        self.library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self.schedules = ctypes.CDLL(str(build / "test/Cuda/libmercury_rt_schedules.so"))
        self.library.mercury_rt_last_error.restype = ctypes.c_char_p
        self.library.mercury_rt_cuda_stream.restype = ctypes.c_void_p
        self.image = merge.read_bytes() + b"\0"
        self.pool = torch.cuda.MemPool()

    def check(self, status: int) -> None:
        if status:
            message = self.library.mercury_rt_last_error().decode()
            raise RuntimeError(f"status {status}: {message}")


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
        local_bytes: int,
        symmetric_bytes: int = 0,
        communicators: bool = False,
        deadline_ms: int = 60000,
        kernels: dict[bytes, Any] | None = None,
    ) -> None:
        self.runtime, self.library = runtime, runtime.library
        self.kept: list[torch.Tensor] = []
        self.functions = {
            b"test.attention": FUNCTION(self.guarded(self.attention)),
            b"test.matmul": FUNCTION(self.guarded(self.matmul)),
            **(kernels or {}),
        }
        rows = [
            Kernel(name, ctypes.cast(function, ctypes.c_void_p), None)
            for name, function in self.functions.items()
        ]
        self.table = (Kernel * len(rows))(*rows)
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
            local_bytes=local_bytes,
            symmetric_bytes=symmetric_bytes,
            deadline_ms=deadline_ms,
            kernels=ctypes.addressof(self.table),
            number_of_kernels=len(rows),
            number_of_groups=1,
            groups=(Group * 1)(Group(group=0, sends=communicators)),
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
        self.kept.clear()

    def guarded(self, kernel: Callable[[Arguments], None]) -> Callable[..., int]:
        """An exception may not leave a callback: it becomes a status and a message."""

        def call(_: int, arguments: Any, message: int, message_bytes: int) -> int:
            try:
                stream = self.library.mercury_rt_cuda_stream(self.handle)
                with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
                    kernel(arguments.contents)
            except BaseException as error:
                text = f"{type(error).__name__}: {error}".encode()[: message_bytes - 1]
                ctypes.memmove(message, text + b"\0", len(text) + 1)
                return 100
            return 0

        return call

    def attention(self, arguments: Arguments) -> None:
        out, sums = cudnn_attention(*(tensor_of(arguments.inputs[i]) for i in range(3)))
        self.kept += [out, sums]
        results = Results.from_address(arguments.parameters[0].integer)
        results.o, results.lse = out.data_ptr(), sums.data_ptr()

    def matmul(self, arguments: Arguments) -> None:
        a, b = (tensor_of(arguments.inputs[i]) for i in range(2))
        c = tensor_of(arguments.outputs[0])
        if arguments.parameters[0].integer:
            c.addmm_(a, b)
        else:
            torch.mm(a, b, out=c)

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
        self.kept.clear()
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
