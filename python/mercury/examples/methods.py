"""Named methods as schedules of a few programs, on the embedded ranks of this process.

python -m mercury.examples.methods
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import mercury as mc
from mercury.runtime.trial import trial

__all__ = ["main"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A strategy on a program and a mesh.

    Attributes
    ----------
    strategy, mesh, program
        What runs where.
    """

    strategy: str
    mesh: mc.Mesh
    program: Callable[[], mc.Program]


def _attention(dtype: str) -> mc.Program:
    return mc.programs.attention(
        h=8, group=4, sq=301, sk=401, d=64, mask=mc.causal(100), dtype=dtype
    )


def _sink(dtype: str) -> mc.Program:
    return mc.programs.attention(
        h=8, group=4, sq=301, sk=401, d=64, dv=32, mask=mc.causal(100), sink=True, dtype=dtype
    )


def _backward(dtype: str) -> mc.Program:
    return mc.programs.attention_backward(
        h=8, group=4, sq=301, sk=401, d=64, mask=mc.causal(100), dtype=dtype
    )


def _decode(dtype: str) -> mc.Program:
    return mc.programs.decode_attention(h=8, group=4, sk=1001, d=64, dtype=dtype)


def _matmul(dtype: str) -> mc.Program:
    return mc.programs.matmul(m=500, n=333, depth=257, dtype=dtype)


_CASES = (
    Case(strategy="ring", mesh=mc.Mesh(gpu=3), program=lambda: _attention("f32")),
    Case(strategy="ring", mesh=mc.Mesh(gpu=8), program=lambda: _attention("bf16")),
    Case(strategy="context-parallel", mesh=mc.Mesh(gpu=5), program=lambda: _attention("f16")),
    Case(strategy="ulysses", mesh=mc.Mesh(gpu=3), program=lambda: _attention("bf16")),
    Case(strategy="usp", mesh=mc.Mesh(node=2, gpu=3), program=lambda: _attention("bf16")),
    Case(
        strategy="double-ring", mesh=mc.Mesh(node=2, gpu=3), program=lambda: _attention("bf16")
    ),
    Case(strategy="hybrid", mesh=mc.Mesh(node=2, gpu=2), program=lambda: _attention("f32")),
    Case(strategy="tree", mesh=mc.Mesh(gpu=4), program=lambda: _decode("bf16")),
    Case(strategy="split-reduction", mesh=mc.Mesh(gpu=4), program=lambda: _sink("bf16")),
    Case(strategy="ring", mesh=mc.Mesh(gpu=4), program=lambda: _backward("bf16")),
    Case(strategy="ulysses", mesh=mc.Mesh(gpu=4), program=lambda: _backward("f32")),
    Case(strategy="hybrid", mesh=mc.Mesh(node=2, gpu=2), program=lambda: _backward("f16")),
    Case(strategy="ag-gemm-shifted", mesh=mc.Mesh(gpu=3), program=lambda: _matmul("f32")),
    Case(strategy="summa", mesh=mc.Mesh(row=2, col=3), program=lambda: _matmul("f32")),
    Case(strategy="gemm-rs", mesh=mc.Mesh(gpu=3), program=lambda: _matmul("bf16")),
    Case(strategy="gemm-rs-shifted", mesh=mc.Mesh(gpu=5), program=lambda: _matmul("bf16")),
)


def _run(case: Case) -> bool:
    program = case.program()
    schedule = mc.strategies.get(case.strategy).schedule(case.mesh, program)
    start = time.perf_counter()
    plan = schedule.compile()
    compiled = time.perf_counter() - start
    result = trial(plan, seed=1)
    error = max(result.errors.values())
    sent = ", ".join(
        f"{level} {count:,} B" for level, count in result.report.bytes_sent.items()
    )
    print(
        f"{case.strategy:17} {case.mesh!r:19} {program.inputs[0].dtype:5} {error:8.1e} "
        f"{'right' if result.right else 'WRONG':6} {compiled:6.2f} s  {sent}"
    )
    print(f"{'':17} {program.name}: {schedule.recipe()}")
    return result.right


def main() -> int:
    """Run every case; 0 when all are right."""
    print("One program each, scheduled as named methods, compiled to machine code, run on")
    print("ranks that are threads of this process, compared with float64 on one device.\n")
    print("strategy          mesh                dtype    error        compile   bytes sent")
    wrong = sum(not _run(case) for case in _CASES)
    print(f"\n{len(_CASES) - wrong} of {len(_CASES)} right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
