"""The generated kernels on a GPU against float64; device_kernels.py runs this."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

import torch
from device_kernels import COPIES, INPUTS, OVERWRITTEN, Device, accumulator


class Checks:
    """Each kernel on tiles of many shapes and strides against float64."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.types = {
            "f16": torch.float16,
            "bf16": torch.bfloat16,
            "f32": torch.float32,
            "f64": torch.float64,
        }
        self.random = torch.Generator("cuda").manual_seed(0)
        self.failures: list[str] = []
        self.count = 0

    def tensor(self, shape: tuple[int, ...], dtype: str, layout: str = "dense") -> Any:
        """Random numbers: dense, cut out of more, begun askew, or with dims permuted."""
        order = list(range(len(shape)))
        if layout == "permuted":
            order.reverse()
        inner = [shape[d] for d in order]
        pad = 0 if layout in ("dense", "permuted") else 8 if layout == "cut" else 3
        whole = [*inner[:-1], inner[-1] + pad] if inner else inner
        made = torch.randn(whole, generator=self.random, device="cuda", dtype=torch.float64)
        made = made.to(self.types[dtype])[..., pad:]
        return made.permute([order.index(d) for d in range(len(shape))])

    def near(self, what: str, found: Any, wanted: Any, bound: float) -> None:
        """The largest difference, of what is finite, against the largest number."""
        self.count += 1
        found, wanted = found.double(), wanted.double()
        same = (found == wanted) | (torch.isnan(found) & torch.isnan(wanted))
        finite = wanted[torch.isfinite(wanted)]
        scale = finite.abs().max().item() if finite.numel() else 1.0
        error = torch.where(same, 0.0, (found - wanted).abs() / max(scale, 1e-30))
        worst = error.max().item() if error.numel() else 0.0
        if not worst <= bound:
            self.failures.append(f"{what}: differs by {worst:.3g}, allowed {bound:.3g}")

    def elementwise(self) -> None:
        shapes = [(1, 1, 1, 1), (2, 3, 5, 64), (1, 1, 7, 1025), (3, 1, 4, 24), (2, 0, 3, 8)]
        shapes += [(1, 1, 1, 1 << 20), (5, 7, 11, 13)]
        layouts = ("dense", "cut", "askew", "permuted")
        for shape, x_layout, y_layout in itertools.product(shapes, layouts, layouts):
            for source, target in COPIES:
                bits = {"f16": "i16", "bf16": "i16", "f32": "i32", "f64": "i64"}
                wide = "f64" if "f64" in (source, target) else "f32"
                name = f"copy_{source}_{wide}_{target}"
                if source == target:
                    name = "copy" + f"_{bits[source]}" * 3
                x, y = (
                    self.tensor(shape, source, x_layout),
                    self.tensor(shape, target, y_layout),
                )
                self.device.launch(name, x, y)
                what = f"{name} {shape} {x_layout} {y_layout}"
                self.near(what, y, x.to(self.types[target]), 0.0)
            for dtype in INPUTS:
                x, y = self.tensor(shape, dtype, x_layout), self.tensor(shape, dtype, y_layout)
                wanted = x + y
                self.device.launch("accumulate" + f"_{dtype}" * 3, x, y)
                self.near(f"accumulate {dtype} {shape} {x_layout} {y_layout}", y, wanted, 0.0)
                if dtype not in ("f16", "bf16"):
                    continue
                y = self.tensor(shape, "f32", y_layout)
                wanted = x.float() + y
                self.device.launch(f"accumulate_{dtype}_f32_f32", x, y)
                what = f"accumulate {dtype} to f32 {shape} {x_layout} {y_layout}"
                self.near(what, y, wanted, 0.0)
        for shape, layout, dtype in itertools.product(shapes, layouts, INPUTS):
            if dtype in ("f16", "bf16"):
                continue
            y = self.tensor(shape, dtype, layout)
            root = y._base if y._base is not None else y
            others = root.clone()
            # It is given bits, whatever they mean.
            bits = struct.pack("<f" if dtype == "f32" else "<d", -math.inf)
            value = int.from_bytes(bits, "little")
            self.device.launch("fill" + f"_i{8 * len(bits)}" * 3, y, value)
            self.near(f"fill {dtype} {shape} {layout}", y, torch.full_like(y, -math.inf), 0)
            self.count += 1
            if root.numel() - (root == others).sum() != y.numel():
                self.failures.append(f"fill {dtype} {shape} {layout}: wrote elsewhere")

    def sums(self) -> None:
        for dtype, n, m in itertools.product(("f32", "f64"), (0, 1, 2, 5), (1, 1000, 4099)):
            for pad in (0, 4, 3):
                x = self.tensor((n, m + pad), dtype)[:, :m]
                y = self.tensor((m,), dtype)
                y_before = y.double().clone()
                wanted = y_before + x.double().sum(0)
                given = x.view(n, 1, 1, 1, m), y.view(1, 1, 1, m)
                self.device.launch("sum_all" + f"_{dtype}" * 3, *given)
                # Either sum rounds n times, each by half an epsilon of what was added up.
                added = (y_before.abs() + x.double().abs().sum(0)).max().item()
                epsilons = torch.finfo(x.dtype).eps + torch.finfo(torch.float64).eps
                bound = n * epsilons / 2 * added / wanted.abs().max().item()
                self.near(f"sum_all {dtype} {n} {m} {pad}", y, wanted, bound)

    def overwritten(self) -> None:
        """Results that are written, whatever they held, and rounded once."""
        bounds = {"f16": 2e-3, "bf16": 1e-2, "f32": 2e-5}
        layouts = ("dense", "cut", "askew", "permuted")
        for (dtype, out), layout in itertools.product(OVERWRITTEN, layouts):
            name, what = f"_{dtype}_f32_{out}_overwrite", f"{dtype} {out} {layout}"
            bound = bounds[out]

            def result(*shape: int, kind: str = out, layout: str = layout) -> Any:
                return self.tensor(shape, kind, layout).fill_(math.nan)

            for n in (0, 1, 2, 5):
                x, y = self.tensor((n, 2, 5, 3, 24), dtype), result(2, 5, 3, 24)
                self.device.launch("sum_all" + name, x, y)
                self.near(f"sum_all of {n} {what}", y, x.double().sum(0), bound)

                # The first row no part has seen.
                o2, lse2 = (
                    self.tensor((n, 2, 5, 3, 24), dtype),
                    self.tensor((n, 2, 3, 5), "f32"),
                )
                o2[:, :, 0], lse2[:, :, :, 0] = 0, -math.inf
                o, lse = result(2, 5, 3, 24), result(2, 3, 5, kind="f32")
                self.device.launch("softmax_merge_all" + name, o2, lse2, o, lse)
                none = torch.zeros_like(o), torch.full_like(lse, -math.inf)
                wanted = self.merged([*zip(o2, lse2, strict=True), none])
                self.near(f"softmax_merge_all of {n} o {what}", o, wanted[0], bound)
                self.near(f"softmax_merge_all of {n} lse {what}", lse, wanted[1], 1e-5)

            for k in (0, 70):
                a, b = self.tensor((130, k), dtype), self.tensor((k, 90), dtype, layout)
                c = result(130, 90)
                self.device.launch("matmul" + name, a, b, c)
                self.near(f"matmul of {k} {what}", c, a.double() @ b.double(), bound)

            b, sq, sk, h, d, dv = 2, 70, 150, 3, 40, 130
            q, k = self.tensor((b, sq, h, d), dtype, layout), self.tensor((b, sk, h, d), dtype)
            v = self.tensor((b, sk, h, dv), dtype)
            o, lse = result(b, sq, h, dv), result(b, h, sq, kind="f32")
            # Causal, and the first 20 queries come before every key.
            scores = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()) * d**-0.5
            i, j = (torch.arange(n, device="cuda") for n in (sq, sk))
            scores = scores.masked_fill(j[None] + 20 > i[:, None], -math.inf)
            p = torch.softmax(scores, -1).nan_to_num(0.0)
            wanted = torch.einsum("bhij,bjhe->bihe", p, v.double())
            given = (torch.empty(0, device="cuda"), d**-0.5, 0, 20, 0, 0, 1, 1 << 40, 0)
            self.device.launch("attention_fwd" + name, q, k, v, o, lse, *given)
            self.near(f"attention_fwd o {what}", o, wanted, bound)
            self.near(f"attention_fwd lse {what}", lse, torch.logsumexp(scores, -1), 1e-5)

    def merged(self, pairs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
        """What pairs of (output [b, s, h, dv], log-sum-exp [b, h, s]) are together."""
        sums = torch.stack([lse.double() for _, lse in pairs])
        total = torch.logsumexp(sums, 0)
        shares = torch.exp(sums - total).nan_to_num(0.0).transpose(2, 3)[..., None]
        values = torch.stack([o.double() for o, _ in pairs])
        return (shares * values).sum(0), total

    def pair(
        self, shape: tuple[int, int, int, int], dtype: str, layout: str
    ) -> tuple[Any, Any]:
        """A partial result of which some rows are empty."""
        b, s, h, _ = shape
        o, lse = self.tensor(shape, dtype, layout), self.tensor((b, h, s), dtype, layout)
        empty = torch.rand(lse.shape, generator=self.random, device="cuda") < 0.3
        lse[empty] = -math.inf
        o[empty.transpose(1, 2)] = 0
        return o, lse

    def merges(self) -> None:
        shapes = [(2, 5, 3, 128), (1, 70, 4, 64), (1, 3, 2, 5), (2, 9, 3, 24), (1, 2, 1, 512)]
        shapes += [(1, 0, 2, 8), (3, 4, 2, 1)]
        layouts = ("dense", "cut", "askew", "permuted")
        for shape, layout, dtype in itertools.product(shapes, layouts, ("f32", "f64")):
            bound = 2e-6 if dtype == "f32" else 1e-14
            what, suffix = f"{dtype} {shape} {layout}", f"_{dtype}" * 3
            (o2, lse2), (o, lse) = (self.pair(shape, dtype, layout) for _ in range(2))
            wanted = self.merged([(o2, lse2), (o, lse)])
            self.device.launch("softmax_merge" + suffix, o2, lse2, o, lse)
            self.near(f"softmax_merge o {what}", o, wanted[0], bound)
            self.near(f"softmax_merge lse {what}", lse, wanted[1], bound)

            for n in (2, 3):
                parts = [self.pair(shape, dtype, "dense") for _ in range(n)]
                wanted = self.merged([*parts, (o, lse)])
                o2 = torch.stack([o for o, _ in parts])
                lse2 = torch.stack([lse for _, lse in parts])
                self.device.launch("softmax_merge_all" + suffix, o2, lse2, o, lse)
                self.near(f"softmax_merge_all of {n} o {what}", o, wanted[0], bound)
                self.near(f"softmax_merge_all of {n} lse {what}", lse, wanted[1], bound)

            for source in ("bf16", "f32") if dtype == "f32" else ("f64",):
                sink = self.tensor((shape[2],), source)
                o, lse = self.pair(shape, dtype, layout)
                zeros = torch.zeros_like(o)
                of_rows = sink[None, :, None].expand(lse.shape)
                wanted = self.merged([(zeros, of_rows), (o, lse)])
                self.device.launch(f"softmax_sink_{source}_{dtype}_{dtype}", sink, o, lse)
                self.near(f"softmax_sink o {source} {what}", o, wanted[0], bound)
                self.near(f"softmax_sink lse {source} {what}", lse, wanted[1], bound)

    def matmuls(self) -> None:
        shapes = [(1, 1, 1), (64, 64, 64), (130, 70, 33), (257, 129, 500), (5, 0, 7), (5, 6, 0)]
        layouts = ("dense", "askew", "permuted")
        for (m, n, k), layout, dtype in itertools.product(shapes, layouts, INPUTS):
            acc = accumulator(dtype)
            a, b = self.tensor((m, k), dtype, layout), self.tensor((k, n), dtype, layout)
            c = self.tensor((m, n), acc, layout)
            wanted = c.double() + a.double() @ b.double()
            self.device.launch(f"matmul_{dtype}_{acc}_{acc}", a, b, c)
            bound = 1e-5 if acc == "f32" else 1e-13
            self.near(f"matmul {dtype} {m} {n} {k} {layout}", c, wanted, bound)

    def attention(self) -> None:
        far = 1 << 40
        cases = [
            # b, sq, sk, h, group, d, dv, q0, k0, left, right
            (1, 1, 1, 1, 1, 8, 8, 0, 0, far, far),
            (2, 64, 64, 2, 1, 64, 64, 0, 0, far, 0),
            (1, 100, 150, 4, 2, 40, 24, 50, 0, far, 0),
            (1, 130, 70, 6, 3, 128, 128, 3, 40, 30, 5),
            (2, 33, 65, 2, 2, 17, 5, 0, 64, far, 0),  # no row sees any
            (1, 70, 140, 2, 1, 16, 70, 100, 0, 10, -3),
            (1, 5, 0, 2, 1, 8, 8, 0, 0, far, far),
        ]
        for case, dtype, layout in itertools.product(
            cases, INPUTS, ("dense", "askew", "permuted")
        ):
            b, sq, sk, h, group, d, dv, q0, k0, left, right = case
            acc, heads = accumulator(dtype), -(-h // group)
            q = self.tensor((b, sq, h, d), dtype, layout)
            k = self.tensor((b, sk, heads, d), dtype, layout)
            v = self.tensor((b, sk, heads, dv), dtype, layout)
            o, lse = self.pair((b, sq, h, dv), acc, layout)
            scale, at = d**-0.5, (q0, k0, 0, 0, group, left, right)
            none = torch.empty(0, device="cuda")
            of = torch.arange(h, device="cuda") // group
            scores = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()[:, :, of]) * scale
            i = torch.arange(sq, device="cuda")[:, None] + q0
            j = torch.arange(sk, device="cuda")[None] + k0
            seen = (j - i <= right) & (i - j <= left)
            scores = scores.masked_fill(~seen, -math.inf)
            own = (
                torch.logsumexp(scores, -1) if sk else torch.full_like(lse, -math.inf).double()
            )
            p = torch.exp(scores - own[..., None]).nan_to_num(0.0)
            out = torch.einsum("bhij,bjhe->bihe", p, v.double()[:, :, of])
            wanted = self.merged([(out, own), (o, lse)])
            name, bound = f"{dtype}_{acc}_{acc}", 2e-5 if acc == "f32" else 1e-13
            self.device.launch(f"attention_fwd_{name}", q, k, v, o, lse, none, scale, *at)
            self.near(f"attention_fwd o {case} {dtype} {layout}", o, wanted[0], bound)
            self.near(f"attention_fwd lse {case} {dtype} {layout}", lse, wanted[1], bound)

            # The gradients, by whole rows of this tile alone; empty rows hold anything.
            whole = out.to(self.types[dtype])
            given = self.tensor((b, sq, h, dv), dtype, layout)
            sums = own.to(self.types[acc])
            empty = torch.isneginf(own).transpose(1, 2)
            clean = given.double().masked_fill(empty[..., None], 0.0)
            delta = (clean * whole.double()).sum(-1).transpose(1, 2)[..., None]
            dp = torch.einsum("bihe,bjhe->bhij", clean, v.double()[:, :, of])
            ds = p * (dp - delta)
            given[empty] = math.nan
            q[empty] = math.nan
            grads = [self.tensor(x.shape, acc, layout) for x in (q, k, v)]
            dq = torch.einsum("bhij,bjhd->bihd", ds, k.double()[:, :, of]) * scale
            clean_q = q.double().masked_fill(empty[..., None], 0.0)
            dk = torch.einsum("bhij,bihd->bjhd", ds, clean_q) * scale
            dv_ = torch.einsum("bhij,bihe->bjhe", p, clean)
            dk, dv_ = (torch.zeros_like(x[:, :, :heads]).index_add(2, of, x) for x in (dk, dv_))
            wants = [dq, dk, dv_]
            wants = [w + g.double() for w, g in zip(wants, grads, strict=True)]
            self.device.launch(
                f"attention_bwd_{name}", q, k, v, whole, given, sums, *grads, none, scale, *at
            )
            for which, found, want in zip(("dq", "dk", "dv"), grads, wants, strict=True):
                self.near(f"attention_bwd {which} {case} {dtype} {layout}", found, want, bound)
