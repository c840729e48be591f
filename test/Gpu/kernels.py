"""The kernels of libraries on one GPU, against float64.

    python test/Gpu/kernels.py

Each case is a tile of a larger attention or product: cut anywhere, with strides, merged
into what is there or written over it. A case that fails is named; the others go on.
"""

from __future__ import annotations

import math
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from mercury.cuda.kernels import KERNELS
from mercury.cuda.launch import DeviceLaunch, DeviceTile

NAMES = {
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.float32: "f32",
    torch.float64: "f64",
}
# Of a result that is rounded to the type once, and of one that is summed of two such.
LIMITS = {torch.bfloat16: 6e-3, torch.float16: 1e-3, torch.float32: 1e-5, torch.float64: 1e-12}
FAR = 1 << 40


@dataclass(frozen=True, kw_only=True)
class Case:
    """A tile of attention: where it lies, what it sees, and how its results are kept."""

    impl: str
    rows: int
    keys: int
    at: tuple[int, int, int, int] = (0, 0, 0, 0)
    heads: int = 4
    group: int = 1
    depth: int = 128
    dtype: torch.dtype = torch.bfloat16
    left: int = FAR
    right: int = FAR
    overwrites: bool = False
    wide: bool = True  # results in float32


def tile(tensor: torch.Tensor) -> DeviceTile:
    return DeviceTile(
        address=tensor.data_ptr() if tensor.numel() else 0,
        dtype=NAMES[tensor.dtype],
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
    )


def launch(
    name: str, inputs: list[torch.Tensor], outputs: list[torch.Tensor], **numbers: float
) -> None:
    KERNELS[name](
        DeviceLaunch(
            inputs=tuple(map(tile, inputs)),
            outputs=tuple(map(tile, outputs)),
            parameters={key.replace("_over_", "/"): value for key, value in numbers.items()},
            stream=torch.cuda.current_stream().cuda_stream,
        )
    )


def strided(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """A tile of a larger tensor."""
    whole = torch.randn((shape[0], shape[1] + 3, *shape[2:]), device="cuda", dtype=dtype)
    return whole[:, 1 : shape[1] + 1]


def distance(result: torch.Tensor, expected: torch.Tensor) -> float:
    finite = torch.isfinite(expected)
    if not torch.equal(result.double()[~finite], expected[~finite]):
        return float("inf")
    difference = (result.double() - expected)[finite]
    size = expected[finite].norm()
    error = float(difference.norm() / size) if size else float(difference.norm())
    return error if math.isfinite(error) else float("inf")


# --- Attention ------------------------------------------------------------------------------


def scores(case: Case, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    at_row, at_key, at_head, at_key_head = case.at
    heads = (torch.arange(case.heads, device="cuda") + at_head) // case.group - at_key_head
    found = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()[:, :, heads])
    found *= case.depth**-0.5
    ahead = torch.arange(case.keys, device="cuda") + at_key
    ahead = ahead - (torch.arange(case.rows, device="cuda") + at_row)[:, None]
    return found.masked_fill_((ahead < -case.left) | (ahead > case.right), -torch.inf)


def prepare(case: Case) -> list[torch.Tensor]:
    at_head, at_key_head = case.at[2:]
    last = (at_head + case.heads - 1) // case.group
    key_heads = last + 1 - at_key_head
    return [
        strided(2, count, heads, case.depth, dtype=case.dtype)
        for count, heads in (
            (case.rows, case.heads),
            (case.keys, key_heads),
            (case.keys, key_heads),
        )
    ]


def numbers(case: Case) -> dict[str, float]:
    names = ("at_sq", "at_sk", "at_h", "at_h_over_g")
    return {
        **dict(zip(names, case.at, strict=True)),
        "group": case.group,
        "left": case.left,
        "right": case.right,
        "scale": case.depth**-0.5,
    }


def forward(case: Case) -> float:
    q, k, v = prepare(case)
    kind = torch.float32 if case.wide else case.dtype
    o = strided(2, case.rows, case.heads, case.depth, dtype=kind)
    lse = torch.randn(2, case.heads, case.rows + 5, device="cuda")[:, :, 2 : case.rows + 2]
    all_scores = scores(case, q, k)
    at_head, at_key_head = case.at[2:]
    heads = (torch.arange(case.heads, device="cuda") + at_head) // case.group - at_key_head
    total = torch.logsumexp(all_scores, -1)
    safe = torch.where(total == -torch.inf, 0.0, total)
    part = torch.einsum(
        "bhij,bjhd->bihd", torch.exp(all_scores - safe[..., None]), v.double()[:, :, heads]
    )
    if case.overwrites:
        o.fill_(torch.nan), lse.fill_(torch.nan)
        expected, sums = part, total
    else:
        lse[:, 0] = -torch.inf
        o[:, :, 0] = 0
        sums = torch.logaddexp(lse.double(), total)
        safe = torch.where(sums == -torch.inf, 0.0, sums)
        before, now = (
            torch.exp(one - safe).transpose(1, 2)[..., None] for one in (lse.double(), total)
        )
        expected = before * o.double() + now * part
    launch(
        f"{case.impl}.attention_fwd",
        [q, k, v],
        [o, lse],
        overwrite=3 if case.overwrites else 0,
        **numbers(case),
    )
    return max(distance(o, expected), 100 * distance(lse, sums))


def backward(case: Case) -> float:
    q, k, v = prepare(case)
    grad = strided(2, case.rows, case.heads, case.depth, dtype=case.dtype)
    exact = [tensor.double().detach().requires_grad_() for tensor in (q, k, v)]
    at_head, at_key_head = case.at[2:]
    heads = (torch.arange(case.heads, device="cuda") + at_head) // case.group - at_key_head
    all_scores = scores(case, exact[0], exact[1])
    lse = torch.logsumexp(all_scores, -1)
    safe = torch.where(lse == -torch.inf, 0.0, lse)
    weights = torch.exp(all_scores - safe.detach()[..., None])
    weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-300)
    o = torch.einsum("bhij,bjhd->bihd", weights, exact[2][:, :, heads])
    o.backward(grad.double())
    kind = torch.float32 if case.wide else case.dtype
    results = [torch.randn_like(tensor, dtype=kind) for tensor in (q, k, v)]
    if case.overwrites:
        before = [torch.zeros_like(result, dtype=torch.float64) for result in results]
        for result in results:
            result.fill_(torch.nan)
    else:
        before = [result.double() for result in results]
    launch(
        f"{case.impl}.attention_bwd",
        [q, k, v, o.detach().to(case.dtype), grad, lse.detach().float()],
        results,
        overwrite=7 if case.overwrites else 0,
        **numbers(case),
    )
    return max(
        distance(result, old + one.grad)
        for result, old, one in zip(results, before, exact, strict=True)
    )


def attention_cases() -> Iterator[Case]:
    for impl in ("cudnn", "torch"):
        for dtype in (torch.bfloat16, torch.float16):
            for overwrites, wide in ((False, True), (True, True), (True, False)):
                yield Case(
                    impl=impl,
                    rows=512,
                    keys=384,
                    dtype=dtype,
                    overwrites=overwrites,
                    wide=wide,
                )
        for group, heads, at in (
            (1, 4, (0, 0, 0, 0)),
            (4, 8, (0, 0, 0, 0)),
            (4, 6, (0, 0, 3, 0)),
        ):
            for rows, keys, right in (
                (500, 500, 0),
                (333, 777, 0),
                (777, 333, 0),
                (257, 1025, 100),
                (200, 300, -50),
            ):
                for overwrites in (False, True):
                    yield Case(
                        impl=impl,
                        rows=rows,
                        keys=keys,
                        right=right,
                        group=group,
                        heads=heads,
                        at=at,
                        overwrites=overwrites,
                    )
        yield Case(impl=impl, rows=256, keys=256, at=(512, 256, 0, 0), right=0)
        yield Case(impl=impl, rows=256, keys=256, at=(0, 256, 0, 0), right=0, overwrites=True)
        yield Case(impl=impl, rows=300, keys=300, left=64, right=0)
        yield Case(impl=impl, rows=300, keys=200, at=(100, 37, 0, 0), left=64, right=8)
        yield Case(impl=impl, rows=1, keys=777)
        yield Case(impl=impl, rows=300, keys=1, overwrites=True)
        yield Case(impl=impl, rows=64, keys=64, depth=40)
        yield Case(impl=impl, rows=64, keys=64, depth=192)
        yield Case(impl=impl, rows=64, keys=96, dtype=torch.float32, right=0)


# --- Products -------------------------------------------------------------------------------


def product(
    dtype: torch.dtype,
    out: torch.dtype,
    m: int,
    k: int,
    n: int,
    overwrites: bool,
    turned: bool = False,
) -> float:
    a = torch.randn(m, k + 8, device="cuda", dtype=dtype)[:, :k]
    b = torch.randn(k, n, device="cuda", dtype=dtype)
    if turned:
        b = torch.randn(n, k, device="cuda", dtype=dtype).t()
    c = torch.randn(m, n + 16, device="cuda", dtype=out)[:, 8 : n + 8]
    expected = a.double() @ b.double() + (0 if overwrites else c.double())
    if overwrites:
        c.fill_(torch.nan)
    launch("cublas.matmul", [a, b], [c], overwrite=int(overwrites), at_m=0, at_k=0, at_n=0)
    return distance(c, expected)


# --- One command ----------------------------------------------------------------------------


def checks() -> Iterator[tuple[str, float, object]]:
    for case in attention_cases():
        limit = LIMITS[case.dtype]
        yield f"forward {case}", limit, lambda case=case: forward(case)
    for case in attention_cases():
        if case.rows > 1 and case.keys > 1:
            yield f"backward {case}", 2 * LIMITS[case.dtype], lambda case=case: backward(case)
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        for out in {dtype, torch.float32 if dtype.itemsize == 2 else dtype}:
            for m, k, n in ((512, 256, 384), (1000, 777, 513), (64, 0, 64), (8, 8, 0)):
                for overwrites in (False, True):
                    for turned in (False, True):
                        given = (dtype, out, m, k, n, overwrites, turned)
                        limit = LIMITS[out] if k else 1e-12
                        yield f"product {given}", limit, lambda given=given: product(*given)


def main() -> int:
    begin, failed, count = time.perf_counter(), [], 0
    for number, (name, limit, check) in enumerate(checks()):
        torch.manual_seed(number)
        count += 1
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                error = check()
            for warning in told:
                print(f"{name}: {warning.message}", flush=True)
            if not error <= limit:
                failed.append(f"{name}: error {error:.1e}, limit {limit:.0e}")
        except Exception as problem:
            text = traceback.format_exception_only(problem)[-1].strip().splitlines()[0]
            failed.append(f"{name}: {text[:300]}")
            if "illegal" in text or "CUDA error" in text:
                break
    print("\n".join(failed))
    seconds = time.perf_counter() - begin
    print(f"{count - len(failed)} of {count} cases right, in {seconds:.0f} s")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
