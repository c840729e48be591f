"""What the mercury command says of input that is wrong: what was given, and what to do."""

import mercury.runtime.trial as trials
import pytest
from click.testing import CliRunner
from mercury import programs, reference
from mercury.cli import main
from mercury.cli.commands import cli
from mercury.cli.loading import parse_layout, parse_settings

SMALL = ("--set", "sq=20,sk=20,h=2,d=8")
RING = ("run", "attention", "--strategy", "ring", *SMALL)

MINE = """
import beside
import mercury as mc

@mc.program
def chained(p, m: int = beside.ROWS):
    i, j, k = p.axes(i=m, j=4, k=5)
    a, b = p.input("A", (i, j), "f32"), p.input("B", (j, k), "f32")
    c = p.output("C", (i, k), "f32")
    with p.loops(i, k):
        t = p.reduce(j, merge="sum", body=lambda: p.matmul(a[i, j], b[j, k]))
        c[i, k] = p.matmul(t, b[j, k])

@mc.program
def fails(p):
    return 1 // 0
"""


def said(*arguments, code=1):
    """What a command prints; an exception that it does not tell fails the test."""
    done = CliRunner().invoke(cli, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--layout", "sq=zigzg"), "layout of axis 'sq' must be block, zigzag, striped(c) or"),
        (("--layout", "sq=striped(0)"), "got 'striped(0)'"),
        (("--layout", "sq=bounds[0, 5]"), "Error: the bounds of axis 'sq' must end at its ext"),
        (("--set", "b=99999999999999999999"), "must be a whole number from 0 to 2**63 - 1"),
        (("--set", "b=1.5"), "must be a whole number from 0"),
        (("--set", "dtype=2"), "give it as --dtype"),
        (("--set", "layout=2"), "give it as --layout"),
        (("--set", "grup=2"), "has no parameter 'grup'; it has 'b', 'h'"),
        (("--set", "grup=2"), "did you mean 'group'?"),
        (("--mask", "causal(99999999999999999999)"), "a whole number up to 2**40"),
        (("--mesh", "gpu=99999999999999999999"), "less than 2**31 ranks"),
        (("--mesh", "gpu=100000"), "at most 1,024, or mercury simulate"),
    ],
)
def test_options_of_a_program(arguments, message):
    printed = said(*RING, *arguments)
    assert message in printed
    assert "#commir" not in printed
    assert ".py:" not in printed


def test_names_that_are_nearly_right():
    assert "did you mean 'double-ring'?" in said("strategies", "doublering")
    assert "did you mean 'attention'?" in said("run", "atention", "--strategy", "ring")
    recipe = ("run", "matmul", "--recipe", "paralelize(i, gpu)", "--set", "m=4,n=4,depth=4")
    assert "did you mean 'parallelize'?" in said(*recipe)


def test_a_strategy_of_other_programs():
    printed = said("run", "matmul", "--strategy", "ring", "--set", "m=4,n=4,depth=4")
    assert "strategy 'ring' is for programs like 'attention', which 'matmul' is not" in printed


def test_a_program_of_the_user_that_fails(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(MINE)
    (tmp_path / "beside.py").write_text("ROWS = 3\n")
    schedule = ("--recipe", "parallelize(i, gpu)")
    chained = said("run", f"{mine}:chained", *schedule)
    assert f"{mine}:12: matmul takes tiles, got a result that loops reduce" in chained
    failed = said("run", f"{mine}:fails", *schedule)
    assert f"{mine}:16: program '{mine}:fails' cannot be run: ZeroDivisionError" in failed


def test_a_schedule_that_is_no_text(tmp_path):
    (tmp_path / "schedule").write_bytes(b"\xff\xfe\x00")
    printed = said("run", "matmul", "--schedule", str(tmp_path / "schedule"))
    assert "cannot be read as a schedule" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune", "attention", "--topology", "h100-4x1", "--json"),
        ("tune", "attention", "--topology", "h100-4x1", "--report"),
        ("explain", "attention", "--strategy", "ring", "--trace"),
        ("simulate", "attention", "--strategy", "ring", "--topology", "h100-4x1", "--trace"),
        ("bench", "operators", "--json"),
        ("bench", "paper", "--json"),
        ("topology", "probe"),
        ("cache", "export"),
    ],
)
def test_a_folder_to_write_in_that_is_not_there(arguments, tmp_path):
    """Before the work, which may be long, is done for nothing."""
    printed = said(*arguments, str(tmp_path / "none" / "file"), code=2)
    assert f"there is no folder '{tmp_path / 'none'}'; make it first" in printed


def test_memory_is_counted_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(trials, "free_memory", lambda: 1 << 20)
    printed = said(*RING, "--set", "b=9000")
    assert "GiB are free; take a smaller problem" in printed
    assert printed.startswith("schedule    parallelize(sq, gpu)")
    monkeypatch.setattr(trials, "free_memory", lambda: None)  # not told: it is tried
    assert "right" in said(*RING, code=0)


def test_the_reference_holds_the_scores_of_one_key_head():
    """Else the default program takes 17 GiB for four tables of all its heads."""
    one = reference.needed_bytes(programs.attention(h=1, sq=512, sk=512, d=8))
    many = reference.needed_bytes(programs.attention(h=32, sq=512, sk=512, d=8))
    assert many < 3 * one


@pytest.mark.parametrize("error", [MemoryError("64 GiB"), OSError(28, "No space left")])
def test_what_the_system_refuses_is_told(error, monkeypatch, capsys):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(cli, "main", refuse)
    assert main() == 1
    assert capsys.readouterr().err.startswith("Error: ")


def test_strategies_are_whole_on_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert "…" not in said("strategies", code=0)


def test_layouts_and_settings_are_read():
    bounds = parse_layout("sq=bounds[0, 3, 9],sk=zigzag")
    assert bounds == {"sq": "bounds[0, 3, 9]", "sk": "zigzag"}
    assert parse_settings(("scale=0.5,h=4",)) == {"scale": 0.5, "h": 4}
