"""What is to be reached: the workloads that are measured when none is named."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GOALS", "MANY_GPUS", "ONE_GPU"]

GOALS: Mapping[str, float] = {
    "attention-1x32x4096-full": 1.05,
    "attention-1x32x16384-full": 1.05,
    "attention-1x32x65536-full": 1.03,
    "attention-16x32x4096-full": 1.10,
    "attention-1x32x262144-full": 1.00,
    "attention-1x32x16384-causal": 1.08,
    "attention-1x32x65536-causal": 1.08,
    "attention-16x32x4096-causal": 1.08,
    "attention-1x32x16384-full-bwd": 1.10,
    "attention-1x32x16384-causal-bwd": 1.10,
    "attention-1x32x65536-full-bwd": 1.10,
    "attention-1x32x65536-causal-bwd": 1.10,
    "attention-16x32x4096-full-bwd": 1.10,
    "attention-16x32x4096-causal-bwd": 1.10,
    "attention-1x32x16384-causal-gqa8": 1.08,
    "attention-1x64x16384-causal-gqa8": 1.08,
    "ag-gemm-8192x8192x28672": 1.06,
    "ag-gemm-16384x8192x8192": 1.02,
    "ag-gemm-4096x4096x14336": 1.05,
    "gemm-rs-8192x8192x28672": 1.08,
    "gemm-rs-16384x8192x8192": 1.06,
    "gemm-rs-4096x4096x14336": 1.25,
}
"""The largest ratio to the floor that is wanted, on two ranks of one host."""

ONE_GPU = (
    "attention-1x32x4096-full",
    "attention-1x32x16384-full",
    "attention-1x32x16384-causal",
    "attention-1x32x16384-full-bwd",
    "ag-gemm-4096x4096x14336",
    "gemm-rs-4096x4096x14336",
)
"""What one GPU without peers is asked."""

MANY_GPUS = (
    *(
        f"attention-{sizes}-{mask}{more}"
        for more in ("", "-bwd")
        for sizes, heads in (
            ("1x32x32768", ""),
            ("1x32x131072", ""),
            ("16x32x4096", ""),
            ("1x64x65536", "-gqa8"),
        )
        for mask in (f"full{heads}", f"causal{heads}")
    ),
    *(
        f"{operator}-{sizes}"
        for operator in ("ag-gemm", "gemm-rs")
        for sizes in ("8192x8192x28672", "8192x4096x14336", "16384x8192x8192")
    ),
)
"""What four and eight GPUs of one host are asked, and are predicted before."""
