"""The sampled reference says what the whole one says."""

from __future__ import annotations

import mercury as mc
import numpy as np
import pytest
from mercury import reference
from mercury.reference.sampled import draw_on, rows_dim, sampled

torch = pytest.importorskip("torch")

PROGRAMS = {
    "attention with a sink": lambda: mc.programs.attention(
        h=4, sq=9, sk=13, d=8, group=2, mask=mc.causal(2), dtype="f64", sink=True
    ),
    "attention of documents": lambda: mc.programs.attention(
        h=2, sq=9, sk=9, d=8, mask=mc.causal().packed([0, 4, 9]), dtype="f64"
    ),
    "attention backward": lambda: mc.programs.attention_backward(
        h=4, sq=9, sk=7, d=8, group=2, mask=mc.window(3, 1), dtype="f64"
    ),
    "product": lambda: mc.programs.matmul(m=5, n=4, depth=6, dtype="f64"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_samples_are_those_of_the_whole_reference(name: str) -> None:
    program = PROGRAMS[name]()
    inputs = draw_on(program, "cpu", seed=3)
    expected = reference.evaluate(program, {n: x.numpy() for n, x in inputs.items()})
    at = [0, 2, 4]
    for output in program.outputs:
        found = sampled(program, inputs, output.name, torch.tensor(at)).numpy()
        whole = np.take(expected[output.name], at, rows_dim(program, output.name))
        np.testing.assert_allclose(found, whole, atol=1e-14)


def test_a_program_without_a_sample_is_refused() -> None:
    @mc.program
    def sinks(p: mc.ProgramBuilder) -> None:
        i, j = p.axes(i=2, j=3)
        a, out = p.input("A", (i, j), "f32"), p.output("B", (i, j), "f32")
        with p.loops(i, j):
            (twice,) = p.kernel("double", a[i, j], results=[(i, j)], signature="i j -> i j")
            out[i, j] = twice

    with pytest.raises(mc.RunError, match="output 'B' of program 'sinks' has no sampled"):
        rows_dim(sinks(), "B")
