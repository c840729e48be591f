"""How fast the generated kernels are on a GPU; device_kernels.py runs this."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from device_kernels import Device

LARGE = 1 << 28  # bytes of a tile


def filled(*shape: int, dtype: Any = torch.float32) -> Any:
    """Random numbers: dividing zeros takes another way, and moving them less power."""
    return torch.randn(shape, device="cuda", dtype=dtype)


class Speed:
    """Compares with PyTorch's copy of as many bytes."""

    def __init__(self, device: Device) -> None:
        self.device, self.launcher = device, device.launcher
        self.a, self.b = filled(LARGE // 4), filled(LARGE // 4)
        times = []
        for _ in range(5):
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            for _ in range(20):
                self.b.copy_(self.a)
            events[1].record()
            torch.cuda.synchronize()
            times.append(events[0].elapsed_time(events[1]) / 1e3 / 20)
        self.best = 2 * LARGE / min(times)
        self.show("torch copy", 2 * LARGE, min(times))

    def show(self, what: str, moved: int, seconds: float) -> None:
        rate = moved / seconds
        share = rate / self.best
        print(f"{what:44} {seconds * 1e6:9.1f} us {rate / 1e12:6.2f} TB/s {share:6.1%}")

    def kernel(self, what: str, moved: int, name: str, *arguments: Any) -> None:
        self.show(what, moved, self.device.seconds(self.launcher(name, *arguments)))

    def flat(self) -> None:
        n = LARGE // 4
        x, y = (t.view(1, 1, 1, n) for t in (self.a, self.b))
        z = filled(1, 1, 1, n, dtype=torch.bfloat16)
        self.kernel("fill f32", LARGE, "fill_i32_i32_i32", x, 0)
        self.kernel("copy f32 to bf16", 6 * n, "copy_f32_f32_bf16", x, z)
        self.kernel("copy bf16 to f32", 6 * n, "copy_bf16_f32_f32", z, x)
        self.kernel("copy i32", 8 * n, "copy_i32_i32_i32", x, y)
        self.kernel("accumulate f32", 12 * n, "accumulate_f32_f32_f32", x, y)
        for parts in (2, 4):
            m = n // parts
            many, sums = filled(parts, 1, 1, 1, m), self.b[:m].view(1, 1, 1, m)
            moved = (parts + 2) * m * 4
            self.kernel(f"sum_all of {parts}", moved, "sum_all_f32_f32_f32", many, sums)
            many = filled(parts, 1, 1, 1, n, dtype=torch.bfloat16)
            moved, name = (parts + 1) * n * 2, "sum_all_bf16_f32_bf16_overwrite"
            self.kernel(f"sum_all of {parts} bf16", moved, name, many, z)
        w = torch.zeros_like(z)
        self.kernel("accumulate bf16", 6 * n, "accumulate_bf16_bf16_bf16", z, w)
        self.kernel("accumulate bf16 to f32", 10 * n, "accumulate_bf16_f32_f32", z, y)

    def packed(self, heads: int, dim: int) -> None:
        rows = LARGE // (4 * heads * dim)
        whole = filled(1, rows, 2 * heads, dim, dtype=torch.bfloat16)
        part, packed = whole[:, :, :heads], filled(1, rows, heads, dim, dtype=torch.bfloat16)
        moved = 2 * packed.numel() * 2
        what = f"half of {2 * heads} heads of {dim} bf16"
        self.kernel(f"pack {what}", moved, "copy_i16_i16_i16", part, packed)
        self.kernel(f"unpack {what}", moved, "copy_i16_i16_i16", packed, part)
        width = heads * dim * 2
        copy = self.device.library.mercury_rt_copy
        words = (2 * width, packed.data_ptr(), width, width, rows)
        given = [ctypes.c_void_p(part.data_ptr()), *map(ctypes.c_int64, words)]
        time = self.device.seconds(lambda context: copy(context, *given))
        self.show(f"the same by mercury_rt_copy, {width} bytes a row", moved, time)
        turned = filled(1, heads, rows, dim, dtype=torch.bfloat16).transpose(1, 2)
        what = f"rows of {heads} heads to heads of rows"
        self.kernel(what, moved, "copy_i16_i16_i16", packed, turned)

    def softmax(self, dim: int) -> None:
        rows, heads = LARGE // (4 * 32 * dim), 32
        o, o2 = (t.view(1, rows, heads, dim) for t in (self.a, self.b))
        lse, lse2 = filled(1, heads, rows), filled(1, heads, rows)
        sums = lse.numel() * 4
        name = "softmax_merge_f32_f32_f32"
        self.kernel(f"softmax_merge, dim {dim}", 3 * (LARGE + sums), name, o2, lse2, o, lse)
        name = "softmax_sink_f32_f32_f32"
        moved = 2 * (LARGE + sums)
        self.kernel(f"softmax_sink, dim {dim}", moved, name, filled(heads), o, lse)
        few = rows // 4
        parts = (filled(4, 1, few, heads, dim), filled(4, 1, heads, few))
        given = (*parts, o[:, :few], filled(1, heads, few))
        moved, name = 6 * (LARGE + sums) // 4, "softmax_merge_all_f32_f32_f32"
        self.kernel(f"softmax_merge_all of 4, dim {dim}", moved, name, *given)
        # What ends a deferred merge: the parts are read, the result is written. The last
        # is that of 4096 rows on two ranks.
        half, name = torch.bfloat16, "softmax_merge_all_bf16_f32_bf16_overwrite"
        large = LARGE // (2 * heads * dim)
        for n, rows in ((2, large // 2), (4, large // 4), (2, 2048)):
            parts = (filled(n, 1, rows, heads, dim, dtype=half), filled(n, 1, heads, rows))
            given = (*parts, filled(1, rows, heads, dim, dtype=half), filled(1, heads, rows))
            moved = sum(t.numel() * t.element_size() for t in given)
            what = f"softmax_merge_all of {n} bf16, dim {dim}, {rows} rows"
            self.kernel(what, moved, name, *given)

    def products(self) -> None:
        def show(what: str, work: int, name: str, *arguments: Any) -> None:
            time = self.device.seconds(self.launcher(name, *arguments), 3)
            print(f"{what:44} {time * 1e6:9.1f} us {work / time / 1e12:6.1f} TFLOP/s")

        half, m = torch.bfloat16, 4096
        x, y, z = filled(m, m, dtype=half), filled(m, m, dtype=half), filled(m, m)
        show(f"matmul of {m}", 2 * m**3, "matmul_bf16_f32_f32", x, y, z)
        s, h, d, far = 4096, 16, 128, 1 << 40
        q, k, v = (filled(1, s, h, d, dtype=half) for _ in range(3))
        o, lse, none = filled(1, s, h, d), filled(1, h, s), filled(0)
        at, work = (none, d**-0.5, 0, 0, 0, 0, 1, far, far), h * s * s * d
        name = "attention_fwd_bf16_f32_f32"
        show(f"attention_fwd of {s}", 4 * work, name, q, k, v, o, lse, *at)
        name, grads = "attention_bwd_bf16_f32_f32", [filled(1, s, h, d) for _ in range(3)]
        show(f"attention_bwd of {s}", 10 * work, name, q, k, v, q, q, lse, *grads, *at)


def measure(device: Device) -> None:
    """Print how fast each kernel is."""
    speed = Speed(device)
    speed.flat()
    for heads, dim in ((32, 128), (8, 64)):
        speed.packed(heads, dim)
    for dim in (64, 128):
        speed.softmax(dim)
    speed.products()
