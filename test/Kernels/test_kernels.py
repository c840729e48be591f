"""The generated kernels against float64 references, tile by tile in random order.

A template is instantiated, lowered with the pipeline that README.md of lib/Kernels
states, compiled to a shared object and called through plain memref descriptors.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib.util
import itertools
import pathlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "lib" / "Kernels"
PIPELINE = """\
builtin.module(
  inline, symbol-dce,
  func.func(arith-expand{include-bf16=true}),
  expand-strided-metadata, lower-affine,
  convert-scf-to-cf, convert-vector-to-llvm, finalize-memref-to-llvm,
  convert-math-to-llvm, convert-arith-to-llvm, convert-func-to-llvm, convert-cf-to-llvm,
  reconcile-unrealized-casts)"""

DTYPES = ["f16", "bf16", "f32", "f64"]
NUMPY: dict[str, Any] = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
UNBOUNDED = 2**40
LLC = ["-relocation-model=pic", "-filetype=obj"]


# --- From a template to a function --------------------------------------------------


def tool(name: str, package: str) -> str:
    """Find an LLVM tool: in the wheels that the build requires, else on PATH."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = shutil.which(name, path=":".join(f"{f}/bin" for f in folders)) or shutil.which(name)
    if not found:
        pytest.skip(f"{name} not found")
    return found


def accumulator(dtype: str) -> str:
    return "f64" if dtype == "f64" else "f32"


WIDTH = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}


def conversion(name: str, source: str, target: str, types: str) -> str:
    """Spell one of the functions of the prelude."""
    head = f"func.func private @{name}(%x: {types.replace(',', ') ->')}"
    if source == target:
        return f"{head} {{ return %x : {source} }}\n"
    op = "extf" if WIDTH[source] < WIDTH[target] else "truncf"
    return f"{head} {{ %y = arith.{op} %x : {source} to {target} return %y : {target} }}\n"


def instantiate(kernel: str, dtype: str, acc: str, out: str, overwrites: bool) -> str:
    """Return the module text of a template for inputs, accumulators and outputs."""
    aliases = f"!in = {dtype}\n!acc = {acc}\n!out = {out}\n"
    casts = conversion("widen", dtype, acc, "!in, !acc")
    casts += conversion("narrow", acc, out, "!acc, !out")
    casts += conversion("widen_out", out, acc, "!out, !acc")
    casts += "func.func private @overwrites() -> i1 "
    casts += f"{{ %x = arith.constant {str(overwrites).lower()} return %x : i1 }}\n"
    return aliases + (TEMPLATES / f"{kernel}.mlir").read_text() + casts


NARROW = ["f16", "bf16"]


def flatten(value: object) -> Iterator[object]:
    """Spell an argument as LLVM's calling convention of a memref or a scalar has it."""
    if not isinstance(value, np.ndarray):
        yield value
        return
    root = value
    while isinstance(root.base, np.ndarray):
        root = root.base
    address = root.ctypes.data
    yield from (ctypes.c_void_p(address), ctypes.c_void_p(address))
    yield ctypes.c_int64((value.ctypes.data - address) // value.itemsize)
    yield from map(ctypes.c_int64, value.shape)
    yield from (ctypes.c_int64(s // value.itemsize) for s in value.strides)


def build(kernel: str, dtype: str) -> Callable[..., None]:
    """Compile a kernel for inputs of type `dtype`, with accumulators as results."""
    return compile_instance(kernel, dtype, accumulator(dtype), accumulator(dtype))


def build_narrow(kernel: str, dtype: str) -> Callable[..., None]:
    """Compile a kernel whose inputs and result are of type `dtype`."""
    return compile_instance(kernel, dtype, accumulator(dtype), dtype)


def build_overwriting(kernel: str, dtype: str, out: str) -> Callable[..., None]:
    """Compile a kernel that overwrites its results, the first of type `out`."""
    return compile_instance(kernel, dtype, accumulator(dtype), out, overwrites=True)


def build_copy(source: str, wide: str, target: str) -> Callable[..., None]:
    """Compile a copy from one type to another through a third."""
    return compile_instance("copy", source, wide, target)


@functools.cache
def compile_instance(
    kernel: str, dtype: str, acc: str, out: str, overwrites: bool = False
) -> Callable[..., None]:
    """Compile one instance. Arrays, index and i64 as int, floats as float."""
    target = f"-mtriple={platform.machine()}-linux-gnu"
    lower = [tool("mlir-opt", "mlir"), "--pass-pipeline=" + PIPELINE.replace("\n", "")]
    steps = [
        lower,
        [tool("mlir-translate", "mlir"), "--mlir-to-llvmir"],
        [tool("opt", "llvm"), "-O3", target, "-mcpu=native"],
        [tool("llc", "llvm"), "-O3", target, "-mcpu=native", *LLC],
    ]
    data = instantiate(kernel, dtype, acc, out, overwrites).encode()
    for step in steps:
        done = subprocess.run(step, input=data, capture_output=True, check=False)
        assert done.returncode == 0, f"{step[0]}: {done.stderr.decode()}"
        data = done.stdout
    with tempfile.TemporaryDirectory() as folder:
        obj, lib = f"{folder}/kernel.o", f"{folder}/kernel.so"
        pathlib.Path(obj).write_bytes(data)
        subprocess.run(["cc", "-shared", obj, "-o", lib, "-lm"], check=True)
        function = getattr(ctypes.CDLL(lib), kernel)
    function.restype = None
    real = ctypes.c_double if acc == "f64" else ctypes.c_float

    def call(*arguments: object) -> None:
        scalars: dict[type, Any] = {int: ctypes.c_int64, float: real}
        typed = [scalars[type(a)](a) if type(a) in scalars else a for a in arguments]
        function(*itertools.chain.from_iterable(map(flatten, typed)))

    return call


# --- Numbers, cuts and strides ------------------------------------------------------


def encode(x: Array, dtype: str) -> Array:
    """Round to `dtype`, to nearest even. bf16 is the upper half of a float32."""
    if dtype != "bf16":
        with np.errstate(over="ignore"):
            return x.astype(NUMPY[dtype])
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def decode(x: Array, dtype: str) -> Array:
    if dtype != "bf16":
        return x.astype(np.float64)
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def scatter(x: Array, rng: np.random.Generator) -> Array:
    """Return the same array with its dims in a random order in memory, and gaps."""
    order = rng.permutation(x.ndim)
    big = np.zeros([2 * x.shape[d] + 1 for d in order], x.dtype)
    view = big[tuple(slice(1, None, 2) for _ in order)].transpose(np.argsort(order))
    view[...] = x
    return view


def cut(extent: int, parts: int, rng: np.random.Generator) -> list[slice]:
    """Cut range(extent) into uneven parts, the first one always empty."""
    inner = np.sort(rng.integers(0, extent + 1, parts - 1))
    points = [0, 0, *map(int, inner), extent]
    return [slice(a, b) for a, b in itertools.pairwise(points)]


def within(got: Array, want: Array, bound: Array) -> bool:
    same = np.isneginf(got) & np.isneginf(want)
    with np.errstate(invalid="ignore"):
        return bool(np.all(same | (np.abs(got - want) <= bound)))


def scratch(kernel: str, d: int, dv: int, dtype: str) -> Array:
    """Return what README.md says that a kernel works in, full of NaN, with a guard behind."""
    d64, dv64 = -(-d // 64) * 64, -(-dv // 64) * 64
    elements = {
        "attention_fwd": 64 * (2 * d + 2 * dv64),
        "attention_bwd": 64 * (d + dv + 2 * d64 + dv64 + 128),
    }[kernel]
    memory = np.full(elements + 64, np.nan, NUMPY[accumulator(dtype)])
    memory[elements:] = 7
    return memory[:elements]


def check_guard(memory: Array) -> None:
    """Fail when a kernel wrote behind its scratch memory."""
    assert (memory.base[len(memory) :] == 7).all()


# --- matmul -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (70, 130, 300), (33, 64, 128)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_tiles(dtype: str, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    m, n, k = shape
    acc = NUMPY[accumulator(dtype)]
    a = scatter(encode(rng.standard_normal((m, k)), dtype), rng)
    b = scatter(encode(rng.standard_normal((k, n)), dtype), rng)
    start = rng.standard_normal((m, n)).astype(acc)
    exact_a, exact_b = decode(a, dtype), decode(b, dtype)
    want = start + exact_a @ exact_b
    bound = (k + 1) * np.finfo(acc).eps * (np.abs(start) + np.abs(exact_a) @ np.abs(exact_b))

    tiles = list(itertools.product(cut(m, 2, rng), cut(n, 2, rng), cut(k, 4, rng)))
    rng.shuffle(tiles)

    def run(tiles: Sequence[tuple[slice, slice, slice]]) -> Array:
        c = scatter(start, rng)
        for i, j, p in tiles:
            build("matmul", dtype)(a[i, p], b[p, j], c[i, j])
        return c

    assert within(run(tiles), want, bound)
    assert not within(np.zeros_like(want), want, bound)
    for lost, (i, j, p) in enumerate(tiles):
        if a[i, p].size and b[p, j].size:
            assert not within(run(tiles[:lost] + tiles[lost + 1 :]), want, bound)


@pytest.mark.parametrize("shape", [(5, 3, 7), (300, 70, 300)])
@pytest.mark.parametrize("dtype", NARROW)
def test_matmul_rounds_a_narrow_result_once(dtype: str, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    m, n, k = shape
    a = scatter(encode(rng.standard_normal((m, k)), dtype), rng)
    b = scatter(encode(rng.standard_normal((k, n)), dtype), rng)
    wide = np.zeros((m, n), np.float32)
    build("matmul", dtype)(a, b, wide)
    narrow = scatter(np.zeros((m, n), NUMPY[dtype]), rng)
    build_narrow("matmul", dtype)(a, b, narrow)
    assert wide.any()
    np.testing.assert_array_equal(narrow, encode(wide, dtype))


# --- attention_fwd and softmax_merge ------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention:
    """One attention problem; `ahead` is the first query's position, the first key's is 0."""

    b: int = 2
    sq: int = 90
    sk: int = 150
    h: int = 4
    group: int = 1
    d: int = 24
    dv: int = 24
    ahead: int = 0
    left: int = UNBOUNDED
    right: int = UNBOUNDED

    def seen(self, i: slice, j: slice) -> Array:
        """Return which pairs of queries `i` and keys `j` the mask allows."""
        query = np.arange(i.start, i.stop)[:, None] + self.ahead
        key = np.arange(j.start, j.stop)[None, :]
        allowed: Array = (-self.left <= key - query) & (key - query <= self.right)
        return allowed


ATTENTION = {
    "full": Attention(),
    "causal": Attention(sq=150, right=0),
    "causal_offset": Attention(ahead=60, right=0),
    "causal_masked_rows": Attention(ahead=-20, right=0),
    "window": Attention(ahead=30, left=17, right=0),
    "window_both_sides": Attention(ahead=30, left=70, right=5),
    "window_beyond_keys": Attention(ahead=100, left=20, right=0),
    "grouped": Attention(h=6, group=3, right=0),
    "narrow_values": Attention(d=72, dv=8),
    "wide_values": Attention(d=8, dv=130),
    "one_of_each": Attention(b=1, sq=1, sk=1, h=1, d=1, dv=1),
    "decode": Attention(sq=1, sk=300, h=4, group=4, ahead=299, right=0),
}


def reference(
    case: Attention, q: Array, k: Array, v: Array, *, scale: float
) -> tuple[Array, Array, Array]:
    """Return o, lse and sum p * abs(v), the magnitude that errors of o scale with."""
    k, v = np.repeat(k, case.group, axis=2), np.repeat(v, case.group, axis=2)
    s = scale * np.einsum("bihd,bjhd->bhij", q, k)
    s = np.where(case.seen(slice(0, case.sq), slice(0, case.sk)), s, -np.inf)
    with np.errstate(divide="ignore"):
        lse = np.log(np.sum(np.exp(s), axis=-1))
    p = np.exp(s - np.where(np.isneginf(lse), 0, lse)[..., None])
    magnitude = np.einsum("bhij,bjhe->bihe", p, np.abs(v))
    return np.einsum("bhij,bjhe->bihe", p, v), lse, magnitude


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_tiles(dtype: str, name: str) -> None:
    case = ATTENTION[name]
    rng = np.random.default_rng(len(name))
    acc = NUMPY[accumulator(dtype)]
    g, scale = case.group, case.d**-0.5

    def draw(rows: int, heads: int, depth: int) -> Array:
        return scatter(encode(rng.standard_normal((case.b, rows, heads, depth)), dtype), rng)

    q = draw(case.sq, case.h, case.d)
    k = draw(case.sk, case.h // g, case.d)
    v = draw(case.sk, case.h // g, case.dv)
    want_o, want_lse, magnitude = reference(
        case, *(decode(x, dtype) for x in (q, k, v)), scale=scale
    )
    # Scores are sums of d products; 16 covers exp, the merges and the divisions.
    eps = (case.d + 16) * np.finfo(acc).eps
    bounds = eps * magnitude, eps * (1 + np.abs(want_lse))

    def identity(rows: slice, heads: slice) -> tuple[Array, Array]:
        sq, h = rows.stop - rows.start, heads.stop - heads.start
        o = scatter(np.zeros((case.b, sq, h, case.dv), acc), rng)
        return o, scatter(np.full((case.b, h, sq), -np.inf, acc), rng)

    tiles = [
        (i, j, h, bool(rng.integers(2)))
        for i in cut(case.sq, 2, rng)
        for j in cut(case.sk, 4, rng)
        for h in cut(case.h, 2, rng)
    ]
    rng.shuffle(tiles)

    work = scratch("attention_fwd", case.d, case.dv, dtype)

    def run(tiles: Sequence[tuple[slice, slice, slice, bool]]) -> tuple[Array, Array]:
        o, lse = identity(slice(0, case.sq), slice(0, case.h))
        for i, j, h, apart in tiles:
            hk = slice(h.start // g, -(-h.stop // g))
            into = o[:, i, h], lse[:, h, i]
            part = identity(i, h) if apart else into
            build("attention_fwd", dtype)(
                *(q[:, i, h], k[:, j, hk], v[:, j, hk], *part, work, scale),
                *(case.ahead + i.start, j.start, h.start, hk.start, g, case.left, case.right),
            )
            if apart:
                build("softmax_merge", accumulator(dtype))(*part, *into)
        check_guard(work)
        return o, lse

    def right(o: Array, lse: Array) -> tuple[bool, bool]:
        return within(o, want_o, bounds[0]), within(lse, want_lse, bounds[1])

    assert right(*run(tiles)) == (True, True)
    assert right(np.zeros_like(want_o), np.zeros_like(want_lse)) == (False, False)
    counting = [
        t for t, (i, j, h, _) in enumerate(tiles) if h.stop > h.start and case.seen(i, j).any()
    ]
    for lost in rng.permutation(counting)[:3]:
        rest = tiles[:lost] + tiles[lost + 1 :]
        assert right(*run(rest)) == (False, False)


@pytest.mark.parametrize("dtype", NARROW)
def test_attention_rounds_a_narrow_result_once(dtype: str) -> None:
    rng = np.random.default_rng(5)
    q = encode(rng.standard_normal((2, 90, 4, 24)), dtype)
    k, v = (encode(rng.standard_normal((2, 150, 2, d)), dtype) for d in (24, 70))
    work = scratch("attention_fwd", 24, 70, dtype)
    made = []
    for out, kernel in ((np.float32, build), (NUMPY[dtype], build_narrow)):
        o, lse = np.zeros((2, 90, 4, 70), out), np.full((2, 4, 90), -np.inf, np.float32)
        # The first 20 queries see nothing.
        given = (0.2, 0, 20, 0, 0, 2, UNBOUNDED, 0)
        kernel("attention_fwd", dtype)(q, k, v, o, lse, work, *given)
        made.append((o, lse))
    (wide, lse), (narrow, same) = made
    assert not wide[:, :20].any()
    assert wide[:, 20:].all()
    np.testing.assert_array_equal(narrow, encode(wide, dtype))
    np.testing.assert_array_equal(lse, same)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", ["identity", "filled"])
@pytest.mark.parametrize(
    "sizes", [(0, 5, 2, 3), (5, 0, 2, 3), (5, 5, 0, 3), (5, 5, 2, 0), (5, 5, 2, 3)]
)
def test_attention_that_sees_nothing_changes_no_bit(
    dtype: str, start: str, sizes: tuple[int, int, int, int]
) -> None:
    sq, sk, h, depth = sizes
    rng = np.random.default_rng(sum(sizes))
    acc = NUMPY[accumulator(dtype)]
    q = encode(rng.standard_normal((1, sq, h, depth)), dtype)
    k = encode(rng.standard_normal((1, sk, h, depth)), dtype)
    o = rng.standard_normal((1, sq, h, depth)).astype(acc)
    lse = rng.standard_normal((1, h, sq)).astype(acc)
    if start == "identity":
        o[...], lse[...] = 0, -np.inf
    before = o.tobytes(), lse.tobytes()
    # Every key lies after every query and the mask is causal.
    work = scratch("attention_fwd", depth, depth, dtype)
    build("attention_fwd", dtype)(q, k, k, o, lse, work, 1.0, 0, 100, 0, 0, 1, UNBOUNDED, 0)
    assert (o.tobytes(), lse.tobytes()) == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_extremes(dtype: str) -> None:
    acc = NUMPY[accumulator(dtype)]
    everything = 2**63 - 1

    def attend(q: Sequence[float], k: Sequence[float]) -> tuple[Array, Array]:
        queries = encode(np.reshape(np.array(q, float), (1, -1, 1, 1)), dtype)
        keys = encode(np.reshape(np.array(k, float), (1, -1, 1, 1)), dtype)
        ones = encode(np.ones_like(keys, float), dtype)
        o = np.zeros((1, len(q), 1, 1), acc)
        lse = np.full((1, 1, len(q)), -np.inf, acc)
        scalars = (1.0, 2**40, 0, 0, 0, 1, everything, everything)
        work = scratch("attention_fwd", 1, 1, dtype)
        build("attention_fwd", dtype)(queries, keys, ones, o, lse, work, *scalars)
        return o.ravel(), lse.ravel()

    o, lse = attend([200, -200], [200, 100])  # exp(40000) overflows in any type
    np.testing.assert_array_equal(o, [1, 1])
    np.testing.assert_array_equal(lse, [40000, -20000])
    o, lse = attend([1, -1], [-np.inf, -np.inf, 3])  # scores -inf, then scores +inf
    np.testing.assert_allclose((o[0], lse[0]), (1, 3))
    assert np.isnan(o[1])
    o, lse = attend([1], [-np.inf] * 3)
    np.testing.assert_array_equal((o[0], lse[0]), (0, -np.inf))
    o, lse = attend([np.nan, 1], [1, 2])  # a NaN shows, and in its own row only
    np.testing.assert_array_equal(np.isnan([o, lse]), [[True, False]] * 2)


# --- attention_bwd ------------------------------------------------------------------

Gradients = tuple[Array, Array, Array]


def gradients(
    case: Attention, q: Array, k: Array, v: Array, o: Array, do: Array, lse: Array, scale: float
) -> tuple[Gradients, Gradients]:
    """Return dq, dk and dv and the sums of magnitudes that their errors scale with.

    The formulas of the kernel's meaning, of the o and lse that it is given.
    """
    many_k, many_v = (np.repeat(x, case.group, axis=2) for x in (k, v))
    s = scale * np.einsum("bihd,bjhd->bhij", q, many_k)
    s = np.where(case.seen(slice(0, case.sq), slice(0, case.sk)), s, -np.inf)
    empty = np.isneginf(lse)
    p = np.where(empty[..., None], 0, np.exp(s - np.where(empty, 0, lse)[..., None]))
    dp = np.einsum("bihe,bjhe->bhij", do, many_v)
    delta = np.einsum("bihe,bihe->bhi", do, o)
    ds = scale * p * (dp - delta[..., None])
    # A product that is cancelled leaves its rounding error.
    loud = np.einsum("bihe,bjhe->bhij", *map(np.abs, (do, many_v)))
    loud += np.einsum("bihe,bihe->bhi", *map(np.abs, (do, o)))[..., None]
    weight = np.einsum("bihd,bjhd->bhij", *map(np.abs, (q, many_k))) * scale
    loud_ds, loud_p = scale * p * loud * (1 + weight), p * (1 + weight)

    def grouped(x: Array) -> Array:
        b, sk, h, depth = x.shape
        return x.reshape(b, sk, h // case.group, case.group, depth).sum(axis=3)

    def products(ds: Array, p: Array, q: Array, k: Array, do: Array) -> Gradients:
        return (
            np.einsum("bhij,bjhd->bihd", ds, k),
            grouped(np.einsum("bhij,bihd->bjhd", ds, q)),
            grouped(np.einsum("bhij,bihe->bjhe", p, do)),
        )

    return (
        products(ds, p, q, many_k, do),
        products(loud_ds, loud_p, np.abs(q), np.abs(many_k), np.abs(do)),
    )


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_backward_tiles(dtype: str, name: str) -> None:
    case = ATTENTION[name]
    rng = np.random.default_rng(len(name))
    acc = NUMPY[accumulator(dtype)]
    g, scale = case.group, case.d**-0.5

    def draw(rows: int, heads: int, depth: int) -> Array:
        return scatter(encode(rng.standard_normal((case.b, rows, heads, depth)), dtype), rng)

    q, do = draw(case.sq, case.h, case.d), draw(case.sq, case.h, case.dv)
    k, v = draw(case.sk, case.h // g, case.d), draw(case.sk, case.h // g, case.dv)
    exact = [decode(x, dtype) for x in (q, k, v)]
    whole_o, whole_lse, _ = reference(case, *exact, scale=scale)
    o, lse = scatter(encode(whole_o, dtype), rng), scatter(whole_lse.astype(acc), rng)
    exact += [decode(o, dtype), decode(do, dtype), lse.astype(np.float64)]
    want, magnitudes = gradients(case, *exact, scale)
    # Of sums over d, dv, queries and keys; a few for exp and the products.
    terms = case.d + case.dv + case.sq * g + case.sk + 16
    bounds = [terms * np.finfo(acc).eps * m for m in magnitudes]

    tiles = [
        (i, j, h)
        for i in cut(case.sq, 2, rng)
        for j in cut(case.sk, 3, rng)
        for h in cut(case.h, 2, rng)
    ]
    rng.shuffle(tiles)
    work = scratch("attention_bwd", case.d, case.dv, dtype)

    def run(tiles: Sequence[tuple[slice, slice, slice]]) -> list[bool]:
        made = [scatter(np.zeros_like(x, acc), rng) for x in want]
        for i, j, h in tiles:
            hk = slice(h.start // g, -(-h.stop // g))
            build("attention_bwd", dtype)(
                *(q[:, i, h], k[:, j, hk], v[:, j, hk], o[:, i, h], do[:, i, h], lse[:, h, i]),
                *(made[0][:, i, h], made[1][:, j, hk], made[2][:, j, hk], work, scale),
                *(case.ahead + i.start, j.start, h.start, hk.start, g, case.left, case.right),
            )
        check_guard(work)
        return [within(*each) for each in zip(made, want, bounds, strict=True)]

    assert all(run(tiles))
    # Of one key the weight is 1 whatever the score: nothing but dv is not 0.
    alive = [True, True, True] if case.sk > 1 else [False, False, True]
    zeros = [
        not within(np.zeros_like(w), w, bound) for w, bound in zip(want, bounds, strict=True)
    ]
    assert [a and z for a, z in zip(alive, zeros, strict=True)] == alive
    counting = [
        t for t, (i, j, h) in enumerate(tiles) if h.stop > h.start and case.seen(i, j).any()
    ]
    for lost in rng.permutation(counting)[:3]:
        assert not any(run(tiles[:lost] + tiles[lost + 1 :])[2 - 2 * alive[0] :])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "sizes", [(0, 5, 2, 3), (5, 0, 2, 3), (5, 5, 0, 3), (5, 5, 2, 0), (5, 5, 2, 3)]
)
def test_backward_of_what_is_hidden_changes_no_bit(
    dtype: str, sizes: tuple[int, int, int, int]
) -> None:
    sq, sk, h, depth = sizes
    rng = np.random.default_rng(sum(sizes))
    acc = NUMPY[accumulator(dtype)]

    def full(rows: int) -> Array:
        return encode(np.full((1, rows, h, depth), np.nan), dtype)

    lse = rng.standard_normal((1, h, sq)).astype(acc)
    made = [rng.standard_normal((1, rows, h, depth)).astype(acc) for rows in (sq, sk, sk)]
    before = [x.tobytes() for x in made]
    work = scratch("attention_bwd", depth, depth, dtype)
    # Every key lies after every query and the mask is causal.
    operands = (full(sq), full(sk), full(sk), full(sq), full(sq), lse, *made, work)
    build("attention_bwd", dtype)(*operands, 1.0, 0, 100, 0, 0, 1, UNBOUNDED, 0)
    assert [x.tobytes() for x in made] == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_of_a_single_key_leaves_no_rounding(dtype: str) -> None:
    rng = np.random.default_rng(0)
    acc = NUMPY[accumulator(dtype)]
    q, k = (encode(rng.standard_normal((1, n, 1, 7)), dtype) for n in (5, 1))
    v, do = (encode(rng.standard_normal((1, n, 1, 9)), dtype) for n in (1, 5))
    o = np.repeat(v, 5, axis=1)
    lse = np.einsum("bihd,bjhd->bhi", decode(q, dtype), decode(k, dtype)).astype(acc)
    made = [np.zeros(x.shape, acc) for x in (q, k, v)]
    work = scratch("attention_bwd", 7, 9, dtype)
    scalars = (1.0, 0, 0, 0, 0, 1, UNBOUNDED, UNBOUNDED)
    build("attention_bwd", dtype)(q, k, v, o, do, lse, *made, work, *scalars)
    assert not made[0].any()
    assert not made[1].any()
    np.testing.assert_allclose(made[2], decode(do, dtype).sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_of_a_row_that_saw_nothing_is_zero(dtype: str) -> None:
    acc = NUMPY[accumulator(dtype)]
    one = np.ones((1, 2, 1, 1))
    q = encode(one * [[[[np.inf]], [[1]]]], dtype)  # row 0 is never read
    k, v, do = (encode(one * x, dtype) for x in (2.0, [[[[3.0]], [[5.0]]]], 1.0))
    o = encode(one * [[[[np.nan]], [[4.0]]]], dtype)
    lse = np.array([[[-np.inf, 2 + np.log(2)]]], acc)
    made = [np.zeros((1, 2, 1, 1), acc) for _ in range(3)]
    work = scratch("attention_bwd", 1, 1, dtype)
    far = 2**63 - 1
    operands = (q, k, v, o, do, lse, *made, work)
    build("attention_bwd", dtype)(*operands, 1.0, 2**40, 0, 0, 0, 1, far, far)
    # Both keys weigh 1/2, ds = 1/2 * (3 - 4) and 1/2 * (5 - 4).
    for got, want in zip(made, ([0, 0], [-0.5, 0.5], [0.5, 0.5]), strict=True):
        np.testing.assert_allclose(got.ravel(), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_sink_is_one_more_logit(dtype: str) -> None:
    rng = np.random.default_rng(0)
    acc = NUMPY[accumulator(dtype)]
    b, s, h, dv = 2, 5, 4, 7
    sink = encode(np.array([0.5, -3.0, 20.0, -np.inf]), dtype)
    lse = rng.standard_normal((b, h, s)) * 4
    lse[:, :, 0] = -np.inf
    o = rng.standard_normal((b, s, h, dv)) * np.isfinite(lse.swapaxes(1, 2)[..., None])
    got_o, got_lse = scatter(o.astype(acc), rng), scatter(lse.astype(acc), rng)
    before = got_o.copy(), got_lse.copy()
    build("softmax_sink", dtype)(scatter(sink, rng), got_o, got_lse)
    lse = before[1].astype(np.float64)
    want = np.logaddexp(lse, decode(sink, dtype)[None, :, None])
    eps = np.finfo(acc).eps
    assert within(got_lse, want, 4 * eps * (1 + np.abs(want)))
    weight = np.exp(lse - np.where(np.isneginf(want), 0, want)).swapaxes(1, 2)[..., None]
    assert within(got_o, before[0] * weight, 64 * eps * np.abs(before[0] * weight) + 1e-300)
    # A row that saw nothing has the sink alone; a sink of -inf changes no bit.
    np.testing.assert_array_equal(got_lse[:, :3, 0], np.tile(decode(sink, dtype)[:3], (b, 1)))
    assert not got_o[:, 0].any()
    np.testing.assert_array_equal(got_o[:, :, 3], before[0][:, :, 3])
    np.testing.assert_array_equal(got_lse[:, 3], before[1][:, 3])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_softmax_merge(dtype: str) -> None:
    rng = np.random.default_rng(0)
    b, s, h, dv = 2, 5, 3, 7

    def draw() -> tuple[Array, Array]:
        lse = rng.standard_normal((b, h, s)) * 10
        lse[rng.random(lse.shape) < 0.4] = -np.inf
        o = rng.standard_normal((b, s, h, dv)) * np.isfinite(lse.swapaxes(1, 2)[..., None])
        return scatter(o.astype(NUMPY[dtype]), rng), scatter(lse.astype(NUMPY[dtype]), rng)

    def merged(x: tuple[Array, ...], y: tuple[Array, ...]) -> tuple[Array, ...]:
        into = tuple(scatter(a, rng) for a in x)
        build("softmax_merge", dtype)(*y, *into)
        return into

    x, y = draw(), draw()
    o, lse = merged(x, y)
    want = np.logaddexp(x[1].astype(float), y[1].astype(float))
    eps = np.finfo(NUMPY[dtype]).eps
    assert within(lse, want, 4 * eps * (1 + np.abs(want)))
    total = np.where(np.isneginf(want), 0, want)
    parts = [p[0] * np.exp(p[1] - total).swapaxes(1, 2)[..., None] for p in (x, y)]
    bound = 32 * eps * sum(map(np.abs, parts))
    assert within(o, sum(parts), bound)
    assert not within(x[0], sum(parts), bound)

    for other in zip((o, lse), merged(y, x), strict=True):
        np.testing.assert_array_equal(*other)
    empty = np.zeros_like(x[0]), np.full_like(x[1], -np.inf)
    for both in [merged(x, empty), merged(empty, x)]:
        for got, same in zip(both, x, strict=True):
            np.testing.assert_array_equal(got, same)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("parts", [0, 1, 2, 7])
def test_softmax_merge_all(dtype: str, parts: int) -> None:
    rng = np.random.default_rng(parts)
    acc = NUMPY[dtype]
    b, s, h, dv = 2, 5, 3, 70
    lse = rng.standard_normal((parts + 1, b, h, s)) * 10
    lse[rng.random(lse.shape) < 0.4] = -np.inf
    lse[:, 0, 0, 0] = -np.inf
    finite = np.isfinite(lse.swapaxes(2, 3)[..., None])
    o = rng.standard_normal((parts + 1, b, s, h, dv)) * finite
    o, lse = o.astype(acc), lse.astype(acc)

    def merged() -> tuple[Array, Array]:
        into = scatter(o[0], rng), scatter(lse[0], rng)
        build("softmax_merge_all", dtype)(scatter(o[1:], rng), scatter(lse[1:], rng), *into)
        return into

    got_o, got_lse = merged()
    want = np.logaddexp.reduce(lse.astype(np.float64), axis=0)
    eps = np.finfo(acc).eps
    assert within(got_lse, want, 4 * eps * (1 + np.abs(want)))
    total = np.where(np.isneginf(want), 0, want)
    shares = o * np.exp(lse - total).swapaxes(2, 3)[..., None]
    bound = (32 + parts) * eps * np.abs(shares).sum(axis=0)
    assert within(got_o, shares.sum(axis=0), bound)
    for lost in range(parts + 1):
        rest = np.delete(shares, lost, axis=0).sum(axis=0)
        assert np.array_equal(shares[lost], 0 * shares[lost]) or not within(got_o, rest, bound)
    # Where the parts lie in memory changes no bit, and neither do empty ones.
    for mine, other in zip((got_o, got_lse), merged(), strict=True):
        np.testing.assert_array_equal(mine, other)
    o[1:], lse[1:] = 0, -np.inf
    for mine, first in zip(merged(), (o[0], lse[0]), strict=True):
        np.testing.assert_array_equal(mine, first)


@pytest.mark.parametrize("dtype", NARROW)
def test_softmax_merge_all_rounds_a_narrow_result_once(dtype: str) -> None:
    rng = np.random.default_rng(3)
    o = encode(rng.standard_normal((4, 2, 5, 3, 70)), dtype)
    lse = (rng.standard_normal((4, 2, 3, 5)) * 3).astype(np.float32)
    wide, narrow = np.zeros(o.shape[1:], np.float32), np.zeros(o.shape[1:], NUMPY[dtype])
    sums = [np.full(lse.shape[1:], -np.inf, np.float32) for _ in range(2)]
    build("softmax_merge_all", dtype)(o, lse, wide, sums[0])
    build_narrow("softmax_merge_all", dtype)(o, lse, narrow, sums[1])
    weights = np.exp(lse - np.logaddexp.reduce(lse)).swapaxes(2, 3)[..., None]
    want = (decode(o, dtype) * weights).sum(axis=0)
    assert within(wide, want, 64 * np.finfo(np.float32).eps * np.ones_like(want))
    np.testing.assert_array_equal(narrow, encode(wide, dtype))
    np.testing.assert_array_equal(*sums)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("parts", "length"), [(0, 5), (1, 256), (5, 1003), (3, 0)])
def test_sum_all(dtype: str, parts: int, length: int) -> None:
    rng = np.random.default_rng(parts)
    acc = NUMPY[accumulator(dtype)]
    shape = (2, 1, 3, length)
    x = scatter(encode(rng.standard_normal((parts, *shape)), dtype), rng)
    start = rng.standard_normal(shape).astype(acc)
    y = scatter(start, rng)
    build("sum_all", dtype)(x, y)
    terms = decode(x, dtype)
    want = start.astype(np.float64) + terms.sum(axis=0)
    bound = (parts + 1) * np.finfo(acc).eps * (np.abs(start) + np.abs(terms).sum(axis=0))
    assert within(y, want, bound)
    # Term by term in the order of the first dimension, whatever arrived first.
    one = start.copy()
    for term in terms:
        one += term.astype(acc)
    np.testing.assert_array_equal(y, one)
    narrow = scatter(encode(np.zeros(shape), dtype), rng)
    build_narrow("sum_all", dtype)(x, narrow)
    zero = np.zeros(shape, acc)
    build("sum_all", dtype)(x, zero)
    np.testing.assert_array_equal(narrow, encode(zero, dtype))


# --- Results that are overwritten ---------------------------------------------------


def launch_of(kernel: str, dtype: str, terms: int) -> tuple[list[Array], list[Any], list[Any]]:
    """Return inputs with so many terms, shapes of the results, and the other arguments."""
    rng = np.random.default_rng(terms)

    def numbers(*shape: int) -> Array:
        return scatter(encode(rng.standard_normal(shape), dtype), rng)

    if kernel == "matmul":
        return [numbers(70, 11 * terms), numbers(11 * terms, 66)], [(70, 66)], []
    if kernel == "sum_all":
        return [numbers(terms, 2, 1, 5, 70)], [(2, 1, 5, 70)], []
    shapes: list[Any] = [(2, 90, 4, 70), (2, 4, 90)]
    if kernel == "softmax_merge_all":
        o, lse = numbers(terms, 2, 90, 4, 70), 3 * rng.standard_normal((terms, 2, 4, 90))
        # Rows that no part has seen.
        o[:, 1, :7, 2], lse[:, 1, 2, :7] = 0, -np.inf
        return [o, lse.astype(NUMPY[accumulator(dtype)])], shapes, []
    keys = (numbers(2, 50 * terms, 2, d) for d in (24, 70))
    # The first 20 queries see nothing.
    rest = [scratch(kernel, 24, 70, dtype), 0.2, 0, 20, 0, 0, 2, UNBOUNDED, 0]
    return [numbers(2, 90, 4, 24), *keys], shapes, rest


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("terms", [0, 1, 3])
@pytest.mark.parametrize("kernel", ["matmul", "sum_all", "softmax_merge_all", "attention_fwd"])
def test_what_is_overwritten_is_as_if_merged_into_the_identity(
    kernel: str, terms: int, dtype: str
) -> None:
    acc = accumulator(dtype)
    inputs, shapes, rest = launch_of(kernel, dtype, terms)
    merged = [np.zeros(shapes[0], NUMPY[acc]), np.full(shapes[-1], -np.inf, NUMPY[acc])]
    merged = merged[: len(shapes)]
    build(kernel, dtype)(*inputs, *merged, *rest)
    assert merged[0].any() == (terms > 0)
    for out in {dtype, acc}:
        # Neither number is an identity: what is there is not read.
        found = [encode(np.full(shapes[0], np.nan), out), np.full(shapes[-1], 7, NUMPY[acc])]
        found = found[: len(shapes)]
        build_overwriting(kernel, dtype, out)(*inputs, *found, *rest)
        np.testing.assert_array_equal(found[0], encode(merged[0], out))
        np.testing.assert_array_equal(found[1:], merged[1:])


# --- fill and copy ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("value", [0.0, -np.inf])
@pytest.mark.parametrize("stride", [1, 2])
def test_fill(dtype: str, value: float, stride: int) -> None:
    around = np.ones((3, 4, 5, 23), NUMPY[dtype])
    want = around.copy()
    tile = (slice(1, None), slice(1, 3), slice(0, 4), slice(1, 22, stride))
    want[tile] = value
    build("fill", dtype)(around[tile], value)
    np.testing.assert_array_equal(around, want)
    build("fill", dtype)(around[:0], 5.0)
    np.testing.assert_array_equal(around, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_accumulate_adds_tiles_of_any_strides(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (encode(rng.standard_normal((3, 2, 5, 23)), dtype) for _ in range(2))
    want = encode(decode(x, dtype) + decode(y, dtype), dtype)
    run = compile_instance("accumulate", dtype, dtype, dtype)
    for source, target in ((x, y.copy()), (scatter(x, rng), scatter(y, rng))):
        run(source, target)
        np.testing.assert_array_equal(target, want)
    around = np.ones((3, 2, 7, 25), NUMPY[dtype])
    around[:, :, 1:-1, 1:-1] = y
    run(x, around[:, :, 1:-1, 1:-1])
    np.testing.assert_array_equal(around[:, :, 1:-1, 1:-1], want)
    assert (around[:, :, [0, -1]] == 1).all()
    assert (around[..., [0, -1]] == 1).all()


COPIES = [
    *((dtype, accumulator(dtype)) for dtype in DTYPES),
    *((accumulator(dtype), dtype) for dtype in ("f16", "bf16")),
    ("bf16", "f16"),
    ("f64", "f32"),
    ("i8", "i8"),
    ("i16", "i16"),
    ("i64", "i64"),
]


def copied(x: Array, source: str, target: str, into: Array) -> Array:
    """Run the copy kernel on tiles of four dimensions; the accumulator holds either type."""
    both = {source, target}
    wide = source if source == target else "f64" if "f64" in both else "f32"
    build_copy(source, wide, target)(x, into)
    return into


@pytest.mark.parametrize(("source", "target"), COPIES)
def test_copy_rounds_to_nearest_even(source: str, target: str) -> None:
    rng = np.random.default_rng(0)
    if source.startswith("i"):
        x = rng.integers(0, 100, (1, 1, 1, 1070)).astype(NUMPY[source])
        want = x
    else:
        ordinary = rng.standard_normal(1000) * 10.0 ** rng.integers(-9, 9, 1000)
        ties = 1 + np.arange(64) * 2.0**-11
        special = [0.0, -0.0, np.inf, -np.inf, 1e-40, 3.4e38]
        x = encode(np.concatenate([ordinary, ties, special]), source).reshape(1, 1, 1, -1)
        want = encode(decode(x, source), target)
    y = np.zeros((1, 1, 1, x.size + 2), NUMPY[target])
    copied(x, source, target, y[..., 1:-1])
    np.testing.assert_array_equal(y.ravel(), [0, *want.ravel(), 0])
    if not source.startswith("i"):
        copied(encode(np.full(x.shape, np.nan), source), source, target, y[..., 1:-1])
        assert np.isnan(decode(y[..., 1:-1], target)).all()


@pytest.mark.parametrize("case", range(40))
def test_copy_packs_and_unpacks_any_tile(case: int) -> None:
    rng = np.random.default_rng(case)
    source, target = [("f32", "bf16"), ("bf16", "f32"), ("i16", "i16"), ("f64", "f64")][
        case % 4
    ]
    sizes = [int(n) for n in rng.choice([0, 1, 1, 2, 3, 5, 65], 4)]
    whole = [n + int(rng.integers(0, 3)) for n in sizes]
    at = tuple(
        slice(int(first), int(first) + n)
        for n, first in zip(
            sizes,
            [rng.integers(0, w - n + 1) for w, n in zip(whole, sizes, strict=True)],
            strict=True,
        )
    )
    numbers = rng.standard_normal(whole)
    full = numbers.astype(np.int16) if source == "i16" else encode(numbers, source)
    # A slice of contiguous memory, or dimensions in any order with gaps.
    x = full[at] if case % 3 else scatter(full[at], rng)
    want = np.ascontiguousarray(x)
    if source != target:
        want = encode(decode(want, source), target)
    for y in (np.zeros(sizes, NUMPY[target]), scatter(np.zeros(sizes, NUMPY[target]), rng)):
        np.testing.assert_array_equal(copied(x, source, target, y), want)
    around = np.full(whole, 3, NUMPY[target])
    copied(x, source, target, around[at])
    np.testing.assert_array_equal(around[at], want)
    around[at] = 3
    assert (around == 3).all()


def test_readme_states_the_pipeline() -> None:
    assert PIPELINE in (TEMPLATES / "README.md").read_text()
