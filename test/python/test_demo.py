"""The main job, from the search to the page."""

import re

import mercury as mc
import pytest
from mercury.examples import demo


def test_the_main_job_chooses_proves_and_reports(capsys, tmp_path):
    page = tmp_path / "demo.html"
    assert demo.main(["--seconds", "4", "--report", str(page)]) == 0
    said = capsys.readouterr().out
    for part in (
        "32 query heads, 8 key heads",
        "*predicted*",
        "chosen",
        "What was chosen, and why",
        f"{demo.REDUCED} tokens on 8 ranks",
        str(page),
    ):
        assert part in said
    # The best and two others, unless so little time found fewer.
    rows = r"^  (?:chosen|runner-up|plain|pareto)(?:, plain)? {2,}"
    found = len(re.findall(rows, said, re.MULTILINE))
    right, named = re.search(r"(\d) of (\d) plans right", said).groups()
    assert right == named
    assert said.count("right: error") == int(named) == min(3, found)
    text = page.read_text()
    assert "sq = 131,072" in text
    assert f"sq={demo.REDUCED}" in text


def test_too_little_memory_ends_with_what_is_needed(capsys, tmp_path):
    arguments = ["--seconds", "3", "--memory", "1MiB", "--report", str(tmp_path / "x.html")]
    assert demo.main(arguments) == 1
    assert "no plan fits into 1.0 MiB; the smallest so far needs" in capsys.readouterr().err


def test_the_program_is_that_of_the_model():
    program = demo.llama_attention(demo.TOKENS)
    shapes = {buffer.name: buffer.shape for buffer in program.inputs}
    assert shapes == {
        "Q": (1, demo.TOKENS, 32, 128),
        "K": (1, demo.TOKENS, 8, 128),
        "V": (1, demo.TOKENS, 8, 128),
    }
    with pytest.raises(mc.MercuryError):
        mc.Schedule(program, mc.Mesh(gpu=2), demo.BOUNDARY)
