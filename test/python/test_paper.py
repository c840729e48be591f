"""The paper's comparisons: every method and ours on each machine, and what is said of it."""

import json

import pytest
from click.testing import CliRunner
from mercury.cli.bench_paper import paper as command
from mercury.paper import CASES, PUBLISHED, compare, summary
from mercury.paper.methods import methods, space

ATTENTION = ("Ring", "Ulysses", "USP", "gather KV")


def case(text):
    return next(each for each in CASES if text in f"{each.group}: {each.name}")


def test_every_comparison_of_the_paper_is_there():
    names = {f"{each.group}: {each.name}" for each in CASES}
    assert len(names) == len(CASES)
    for gpu in ("h100", "a100", "l4"):
        for mesh in ("1x4", "4x1", "2x4", "4x2", "1x8", "4x4"):
            assert any("topologies: MHA" in n and f"{gpu} {mesh}" in n for n in names)
            assert any("topologies: GQA" in n and f"{gpu} {mesh}" in n for n in names)
    for keys in ("MHA 32:32", "GQA 32:8"):
        for length in ("4K", "64K", "1M"):
            assert any(f"lengths: {keys}, batch 1, {length}" in n for n in names)
        assert any(f"lengths: {keys}, batch 16" in n for n in names)
        assert f"memory wall: {keys}, batch 1, 2M tokens, h100 2x4" in names
    for product in ("ag_gemm", "gemm_rs"):
        assert any(product in n for n in names)
    assert [claim.published for claim in PUBLISHED] == [1.56, 2.91, 4.0, 1.9]


@pytest.mark.parametrize(
    "name",
    [
        "topologies: MHA 32:32, batch 1, 64K tokens, h100 1x4",
        "topologies: GQA 32:8, batch 16, 4K tokens, l4 4x2",
        "products: ag_gemm 8192x14336x4096, h100 1x4",
        "products: gemm_rs 8192x4096x14336, h100 1x4",
    ],
)
def test_ours_is_never_slower_than_a_method(name):
    """The methods are in the space, so this holds by search, not by luck."""
    one = case(name)
    (found,) = compare([one])
    wanted = ATTENTION if one.operator == "attention" else ("synchronous", "AsyncTP")
    assert tuple(found.methods) == wanted
    assert found.ours.recipe
    assert found.ours.tried >= len(wanted)
    assert found.ratios
    assert all(ratio >= 1 for ratio in found.ratios.values())
    every = {r for several in methods(one.operator, one.mesh).values() for r in several}
    assert every <= set(space(one.operator, one.mesh))


def test_two_million_tokens_need_a_plan_that_does_not_gather():
    (found,) = compare([case("memory wall: MHA")])
    assert found.methods["gather KV"].peak_bytes > found.methods["Ring"].peak_bytes
    assert found.ours.time_s is not None
    assert found.ours.peak_bytes < 80e9


def test_the_summary_puts_published_ratios_beside_ours():
    found = compare([case("products: ag_gemm 8192x14336x4096, h100 1x4")])
    lines = summary(found)
    assert [line.claim.what for line in lines] == [
        "average over hand-written operators",
        "AG-GEMM",
    ]
    for line in lines:
        assert 1 <= line.against_best <= line.against_mean
        near = any(
            abs(ratio / line.claim.published - 1) <= 0.15
            for ratio in (line.against_best, line.against_mean)
        )
        assert bool(line.why) != near


def test_the_command_marks_every_line(tmp_path):
    path = tmp_path / "paper.json"
    arguments = ["--only", "ag_gemm 8192x14336x4096, h100 1x4", "--json", str(path)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("*predicted*") for line in lines)
    assert "published 1.90x" in done.output
    written = json.loads(path.read_text())
    assert written["predicted"] is True
    assert written["cases"][0]["predicted"] is True
    assert written["cases"][0]["ours"]["recipe"]
    wrong = CliRunner().invoke(command, ["--only", "nothing"])
    assert wrong.exit_code != 0
    assert "no case has 'nothing' in its name; groups are lengths, topologies" in wrong.output
