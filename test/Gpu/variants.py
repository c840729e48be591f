"""What test/Gpu/plans.py runs: shapes of the named methods, and schedules beside them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import mercury as mc

PRODUCTS = ((1024, 768, 512), (1000, 513, 777))  # m, n, depth
LENGTHS = ((1024, 1024), (4097, 4097), (1000, 777))

_FLOWING = "parallelize(k, {all}); shard(C, i, {all}); shift(i, by=k, offset=1"
_FETCHED = (
    "parallelize(sk, {all}); shard(O, sq, {all}); shard(LSE, sq, {all}); "
    "shift(sq, by=sk, offset=1"
)
_RING = "parallelize(sq, {all}); shift(sk, by=sq"


def over(mesh: mc.Mesh, steps: str) -> str:
    """Put steps over every level of a mesh; a buffer is replicated over one at a time."""
    replicated = "; ".join(f"replicate(C, {name})" for name in mesh.names)
    return steps.format(all=f"[{', '.join(mesh.names)}]", replicated=replicated)


def programs(method: Any, quick: bool, long: bool) -> Iterator[tuple[str, mc.Program]]:
    """The shipped programs that a method schedules, in a few shapes."""
    make, name = method.program, method.program.name
    if name == "attention":
        lengths = [(1024, 1024), (4097, 4097), (1000, 777)]
        for sq, sk in lengths[:1] if quick else lengths:
            for mask in ("full", "causal"):
                for group in (1, 4):
                    text = f"{sq}:{sk} {mask} group {group} bf16"
                    yield text, make(h=8, sq=sq, sk=sk, mask=mask, group=group, dtype="bf16")
        yield (
            "1024:1024 causal group 4 f16",
            make(h=8, sq=1024, sk=1024, mask="causal", group=4, dtype="f16"),
        )
        if long:
            yield from long_attention()
    elif name == "decode_attention":
        for sk, group in ((4096, 1), (4097, 4)):
            for dtype in ("bf16", "f16"):
                yield (
                    f"1:{sk} group {group} {dtype}",
                    make(h=8, sk=sk, group=group, dtype=dtype),
                )
    else:
        for shape in ((1024, 512, 768), (1000, 777, 513)):
            for dtype in ("bf16", "f16"):
                m, depth, n = shape
                yield f"{m} {depth} {n} {dtype}", make(m=m, depth=depth, n=n, dtype=dtype)


def long_attention() -> Iterator[tuple[str, mc.Program]]:
    """Give balanced shards, 28 heads over 4, and a long odd length."""
    for sq, h, group, layout in (
        (4097, 28, 7, "zigzag"),
        (65537, 8, 4, "zigzag"),
        (65537, 28, 7, "block"),
    ):
        program = mc.programs.attention(
            h=h, sq=sq, sk=sq, group=group, mask="causal", layout={"sq": layout, "sk": layout}
        )
        yield f"{sq}:{sq} causal {layout} {h}:{h // group}", program


def variants(quick: bool) -> Iterator[tuple[str, mc.Program, str, str]]:
    """Give a name, a program, the strategy whose boundary it has, and the steps, for `over`."""
    for (m, n, depth), dtype in zip(PRODUCTS, ("bf16", "f16"), strict=True):
        program = mc.programs.matmul(m=m, n=n, depth=depth, dtype=dtype)
        for name, base, steps in products(dtype):
            yield f"{name} {m} {n} {depth} {dtype}", program, base, steps
    for (sq, sk), dtype in product(LENGTHS[: 1 if quick else 3], ("bf16", "f16")):
        for mask, group in (("full", 1), ("causal", 4)):
            program = mc.programs.attention(
                h=8, sq=sq, sk=sk, mask=mask, group=group, dtype=dtype
            )
            for name, base, steps in attentions(dtype):
                yield (
                    f"{name} {sq}:{sk} {mask} group {group} {dtype}",
                    program,
                    base,
                    steps,
                )


def products(dtype: str) -> Iterator[tuple[str, str, str]]:
    for results, chunks in product(("fetch", "deliver"), (1, 2, 4)):
        for link in ("", f", link={dtype}"):
            yield (
                f"product {results} {chunks}{link}",
                "gemm-rs",
                f"{_FLOWING}, results={results}, chunks={chunks}{link})",
            )
    yield "product travel narrow", "gemm-rs", f"{_FLOWING}, link={dtype})"
    yield "product reduce_scatter", "gemm-rs", "parallelize(k, {all}); shard(C, i, {all})"
    yield "product all_reduce", "gemm-rs", "parallelize(k, {all}); {replicated}"
    yield "product merged once", "gemm-rs", "parallelize(k, {all}); defer(C)"
    yield (
        "product pull",
        "ag-gemm",
        "parallelize(j, {all}); shift(i, by=j, reads=pull, chunks=3)",
    )


def attentions(dtype: str) -> Iterator[tuple[str, str, str]]:
    for results, chunks, link in (
        ("fetch", 1, ""),
        ("fetch", 2, f", link={dtype}"),
        ("deliver", 2, ""),
        ("deliver", 1, f", link={dtype}"),
    ):
        yield (
            f"attention {results} {chunks}{link}",
            "shifted-reduction",
            f"{_FETCHED}, reads=pull, results={results}, chunks={chunks}{link})",
        )
    yield "attention pull", "ring", f"{_RING}, reads=pull)"
    yield (
        "attention pull by heads",
        "ring",
        "parallelize(sq, {all}); shift(h, by=sq, reads=pull)",
    )
    yield "attention pull in chunks", "ring", f"{_RING}, reads=pull, chunks=2)"
    yield "attention merged once", "ring", f"{_RING}, reads=pull); defer(O, partial={dtype})"
    yield "attention merged once wide", "ring", f"{_RING}); defer(O)"


def backwards() -> Iterator[tuple[str, mc.Program, str, str]]:
    for mask, group, layout in (("full", 1, "block"), ("causal", 4, "zigzag")):
        program = mc.programs.attention_backward(
            h=8, sq=1024, sk=1024, mask=mask, group=group, layout={"sq": layout, "sk": layout}
        )
        for name, steps in (
            ("pull", f"{_RING}, reads=pull)"),
            ("merged once", f"{_RING}, reads=pull); defer(dQ)"),
        ):
            yield f"backward {name} {mask} {layout} group {group}", program, "ring", steps


def replays(mesh: mc.Mesh) -> Iterator[tuple[str, mc.Schedule]]:
    """Give schedules that are replayed many times."""
    attention = mc.programs.attention(h=4, sq=512, sk=512)
    causal = mc.programs.attention(h=4, sq=512, sk=512, mask="causal")
    yield "ring", mc.strategies.get("ring").schedule(mesh, attention)
    for program in (attention, causal):
        made = mc.Schedule(program, mesh).parallelize("sq", mesh.names)
        yield "ring by pull", made.shift("sk", by="sq", reads="pull")
    # Its boundary is crossed by an all-to-all.
    yield "ulysses", mc.strategies.get("ulysses").schedule(mesh, attention)
    product = mc.programs.matmul(m=512, n=256, depth=384)
    for name in ("async-tp", "gemm-rs-shifted", "gemm-rs", "ag-gemm"):
        yield name, mc.strategies.get(name).schedule(mesh, product)
    steps = "parallelize(k, {all}); shard(C, i, {all}); shift(i, by=k, offset=1, link=bf16"
    for how in ("results=fetch, chunks=2", "results=fetch, chunks=4"):
        started = mc.strategies.get("gemm-rs").start(mesh, product)
        yield how, started.apply(over(mesh, f"{steps}, {how})"))
