"""RingAttention from program to result, on 3 ranks of this process with uneven shards.

python -m mercury.examples.ring
"""

from __future__ import annotations

import numpy as np

import mercury as mc
from mercury import reference

__all__ = ["main"]


def main() -> None:
    """Schedule attention as a ring, run it, and compare with float64."""
    program = mc.programs.attention(h=4, sq=100, sk=130, d=32, mask="causal", dtype="f32")
    boundary = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}}
    schedule = mc.Schedule(program, mc.Mesh(gpu=3), boundary)
    schedule.parallelize("sq", "gpu").shift("sk", by="sq")
    plan = schedule.compile(target="sim")

    rng = np.random.default_rng(0)
    inputs = {buffer.name: rng.standard_normal(buffer.shape) for buffer in program.inputs}
    result = plan.gather(plan.run(plan.scatter(**inputs)))

    o, _ = reference.attention(inputs["Q"], inputs["K"], inputs["V"], mask="causal")
    print(schedule.recipe())
    print(f"queries of each rank: {[plan.layout('Q').shape(r)[1] for r in range(3)]}")
    print(f"bytes sent: {plan.report.bytes_sent['gpu']}")
    print(f"relative error against float64: {reference.relative_error(result['O'], o):.1e}")


if __name__ == "__main__":
    main()
