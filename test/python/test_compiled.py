"""Compiling for a target: machine code of the host, and kernels of a device."""

from __future__ import annotations

import re

import mercury as mc
import pytest
from mercury.runtime.compiled import Compiled, compile_for


def compiled(schedule: mc.Schedule, target: str = "cuda", **options: str) -> Compiled:
    return compile_for(target, schedule._module, schedule.program, schedule.mesh, **options)


def test_a_plan_for_gpus_carries_the_kernels_that_it_launches() -> None:
    schedule = mc.strategies.get("gemm-rs-shifted").schedule(mc.Mesh(gpu=2))
    made = compiled(schedule)
    entries = set(re.findall(rb"\.entry (\w+)\(", made.image))
    assert {b"matmul_bf16_f32_f32_overwrite", b"accumulate_f32_f32_f32"} <= entries
    # What is overwritten is not filled.
    assert not any(b"attention" in entry or b"fill" in entry for entry in entries)
    assert made.image.index(b"\0") == len(made.image) - 1
    assert b".target sm_90a" in made.image
    assert made.entry != 0
    assert made.local_bytes > 0
    assert made.spmd == compiled(schedule, "sim").spmd


def test_the_chip_is_a_choice() -> None:
    schedule = mc.strategies.get("gemm-rs").schedule(mc.Mesh(gpu=2))
    assert b".target sm_80" in compiled(schedule, chip="sm_80").image
    with pytest.raises(mc.CompileError, match="must be named as in 'sm_90a', got 'hopper'"):
        compiled(schedule, chip="hopper")


def test_kernels_of_others_are_named_and_not_compiled() -> None:
    program = mc.programs.matmul(m=8, n=8, depth=8)
    schedule = mc.Schedule(program, mc.Mesh(gpu=2)).parallelize("i", "gpu")
    own = compiled(schedule)
    assert own.named_kernels == ()
    assert b".entry matmul" in own.image
    made = compiled(schedule.patch("matmul", "cublas"))
    assert made.named_kernels == ("cublas.matmul",)
    assert b".entry matmul" not in made.image


def test_a_target_that_is_not_there_is_refused() -> None:
    schedule = mc.strategies.get("gemm-rs").schedule(mc.Mesh(gpu=2))
    with pytest.raises(
        mc.CompileError, match="there is no target 'tpu'; choose 'sim' or 'cuda'"
    ):
        compiled(schedule, "tpu")
