"""What users of such systems suffer from, one named test for each kind: shapes and heads."""

import mercury as mc
import numpy as np
import pytest
from case_checks import BOTH, check, each, inputs_of, schedule_by

# --- Shapes -------------------------------------------------------------------------


@each(["ring", "ulysses", "hybrid"])
@pytest.mark.parametrize(("length", "ranks"), [(257, 8), (125, 3)])
def test_c01_a_length_that_ranks_do_not_divide(program, strategy, length, ranks):
    """A length that no rank count divides, forward and backward: no one sees padding."""
    made = program(h=8, group=2, sq=length, sk=length, d=8, mask="causal", dtype="f32")
    plan, _ = check(schedule_by(strategy, f"gpu={ranks}", made))
    shards = plan.scatter(**inputs_of(made))
    assert sum(shard["Q"].shape[1] for shard in shards) == length
    assert sum(shard["K"].shape[1] for shard in shards) == length


def test_c01_a_thousand_positions_on_three_ranks():
    """A length that no rank count divides, as it was met."""
    program = mc.programs.attention(h=1, sq=1000, sk=1000, d=16, mask="causal", dtype="f32")
    check(schedule_by("ring", "gpu=3", program))


@pytest.mark.parametrize("strategy", ["ring", "context-parallel", "ulysses"])
def test_c02_tokens_of_image_and_text_together(strategy):
    """Two odd parts in one sequence, not causal: 302 and 47 tokens on 2 ranks."""
    program = mc.programs.attention(h=3, sq=349, sk=349, d=8, dtype="f32")
    check(schedule_by(strategy, "gpu=2", program))


@pytest.mark.parametrize("strategy", ["ring", "ulysses", "usp"])
def test_c03_tokens_of_an_odd_image(strategy):
    """The square of an odd number of tokens in bf16, not causal, on 2 ranks."""
    program = mc.programs.attention(h=2, sq=17 * 17, sk=17 * 17, d=16, dtype="bf16")
    check(schedule_by(strategy, "gpu=2", program))


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("strategy", ["ring", "context-parallel", "hybrid"])
def test_c08_queries_and_keys_of_other_lengths(program, strategy):
    """Cross-attention: neither length is a multiple of the ranks, nor of the other."""
    made = program(h=4, sq=251, sk=194, d=8, dtype="f32")
    check(schedule_by(strategy, "gpu=4", made))


@pytest.mark.parametrize("strategy", ["ring", "context-parallel", "ulysses"])
def test_c08_padding_is_a_mask(strategy):
    """What is padding at the end is a document of its own, and adds nothing to the rest."""
    length, real = 61, 50
    mask = mc.Mask(documents=(0, real, length))
    sizes = {"h": 4, "sq": length, "sk": length, "d": 8, "dtype": "f32"}
    program = mc.programs.attention(mask=mask, **sizes)
    plan, _ = check(schedule_by(strategy, "gpu=4", program))
    inputs = inputs_of(program)
    first = plan.gather(plan.run(plan.scatter(**inputs)))["O"][:, :real]
    for name in ("K", "V"):
        inputs[name][:, real:] = 1e30
    other = plan.gather(plan.run(plan.scatter(**inputs)))["O"][:, :real]
    np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("strategy", ["ring", "shifted-reduction", "hybrid"])
@pytest.mark.parametrize("ranks", [2, 5])
def test_c09_neighbours_in_documents_of_odd_length(strategy, ranks):
    """A token meets the one before it across ranks, and never that of another document."""
    mask = mc.window(1).packed([0, 5, 14, 17])
    program = mc.programs.attention(h=3, sq=17, sk=17, d=8, mask=mask, dtype="f32")
    plan, _ = check(schedule_by(strategy, f"gpu={ranks}", program))
    inputs = inputs_of(program)
    made = plan.gather(plan.run(plan.scatter(**inputs)))["O"]
    # The first of a document sees itself alone.
    for first in (0, 5, 14):
        np.testing.assert_allclose(made[:, first], inputs["V"][:, first], rtol=1e-6)


@pytest.mark.parametrize("program", BOTH)
def test_c12_two_tokens(program):
    """Fewer tokens than anything is aligned to, on 4 x 2 ranks."""
    made = program(h=4, sq=2, sk=2, d=8, mask="causal", dtype="f32")
    schedule = mc.Schedule(made, mc.Mesh(tp=4, cp=2))
    check(schedule.parallelize("h", "tp").parallelize("sq", "cp").shift("sk", by="sq"))
    for strategy in ("ring", "hybrid"):
        check(schedule_by(strategy, "gpu=8", made))


# --- Heads --------------------------------------------------------------------------


@each(["hybrid", "usp", "ulysses"])
def test_c17_heads_that_ranks_do_not_divide(program, strategy):
    """28 query heads on 4 key heads over 8 ranks: a hybrid, or uneven heads."""
    made = program(h=28, group=7, sq=33, sk=33, d=8, mask="causal", dtype="f32")
    check(schedule_by(strategy, "gpu=8", made))


@each(["ulysses", "usp"])
def test_c19_a_group_of_heads_on_two_ranks(program, strategy):
    """28 query heads on 7 key heads over 2 ranks: both ranks need the middle key head."""
    made = program(h=28, group=4, sq=21, sk=21, d=8, dtype="f32")
    check(schedule_by(strategy, "gpu=2", made))
    check(mc.Schedule(made, mc.Mesh(gpu=2)).parallelize("h", "gpu"))


@pytest.mark.parametrize("program", BOTH)
def test_c20_uneven_heads(program):
    """30 heads over 4 ranks and an odd length: 8, 7, 8 and 7 heads."""
    made = program(h=30, sq=37, sk=37, d=4, mask="causal", dtype="f32")
    check(schedule_by("ulysses", "gpu=4", made))
    plan, _ = check(mc.Schedule(made, mc.Mesh(gpu=4)).parallelize("h", "gpu"))
    heads = [plan.layout("Q").shape(rank)[2] for rank in range(4)]
    assert sum(heads) == 30
    assert max(heads) - min(heads) <= 1


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_c22_decoding_over_long_keys(dtype):
    """One query over 30000 keys with grouped heads, heads and keys both over ranks."""
    program = mc.programs.decode_attention(h=16, group=4, sk=30_000, d=16, dtype=dtype)
    mesh = mc.Mesh(tp=4, dcp=2)
    schedule = mc.Schedule(program, mesh, {"K": {"sk": "dcp", "h": "tp"}})
    schedule.parallelize("h", "tp").parallelize("sk", "dcp")
    plan, _ = check(schedule.replicate("O", "dcp").replicate("LSE", "dcp"))
    assert plan.layout("K").shape(3) == (1, 15_000, 1, 16)
    check(schedule_by("tree", "gpu=8", program))
