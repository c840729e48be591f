"""The mercury command, as a shell sees it."""

import pathlib
import shlex
import subprocess
import sys

import pytest

README = pathlib.Path(__file__).parents[2] / "README.md"
SHOWN = [
    line.strip()
    for line in README.read_text(encoding="utf-8").splitlines()
    if line.startswith("    mercury ")
]


def mercury(*arguments, code=0):
    entry = "import sys; from mercury.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", entry, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_run_compares_with_float64():
    printed = mercury(
        *("run", "attention", "--strategy", "ring", "--mesh", "gpu=3", "--mask", "causal"),
        *("--set", "sq=33,sk=33,h=2,d=8", "--dtype", "bf16", "--delays", "7"),
    )
    assert "schedule    parallelize(sq, gpu); shift(sk, by=sq)" in printed
    # Both K and V, 33 keys of 2 heads of 8 elements of 2 bytes, to 2 other ranks.
    assert f"gpu         {2 * 33 * 2 * 8 * 2 * 2:,} bytes" in printed
    assert printed.count("right") == 2


def test_run_prints_what_the_compiler_remarks():
    printed = mercury(
        *("run", "matmul", "--mesh", "gpu=3", "--set", "m=9,n=9,depth=9"),
        *("--recipe", "parallelize(i, gpu); shard(A, k, gpu); shift(k, by=i)"),
    )
    assert printed.count("remark      'A' is exchanged whole before the loops (R8)") == 1
    quiet = mercury("run", "matmul", "--strategy", "ag-gemm", "--set", "m=9,n=9,depth=9")
    assert "remark" not in quiet


def test_run_takes_a_program_of_the_user(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import mercury as mc\n\n"
        "@mc.program\n"
        "def scores(p, rows=9):\n"
        "    r, c, x = p.axes(r=rows, c=4, x=5)\n"
        "    a, b = p.input('A', (r, x), 'f32'), p.input('B', (x, c), 'f32')\n"
        "    s = p.output('S', (r, c), 'f32')\n"
        "    with p.loops(r, c):\n"
        "        s[r, c] = p.reduce(x, merge='sum', body=lambda: p.matmul(a[r, x], b[x, c]))\n"
    )
    program = f"{tmp_path / 'mine.py'}:scores"
    printed = mercury("run", program, "--recipe", "parallelize(r, gpu)", "--set", "rows=7")
    assert "S           error" in printed
    assert "right" in printed
    (tmp_path / "schedule.txt").write_text("parallelize(r, gpu)")
    mercury("run", program, "--schedule", str(tmp_path / "schedule.txt"))


def test_run_says_what_is_wrong_in_a_file(tmp_path):
    (tmp_path / "broken.py").write_text("import mercury as mc\ndef f(:\n")
    program = f"{tmp_path / 'broken.py'}:f"
    printed = mercury("run", program, "--strategy", "ring", code=1)
    assert "cannot be run: SyntaxError" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attention"], "give one of --strategy, --schedule and --recipe"),
        (
            ["attend", "--strategy", "ring"],
            "no program 'attend'; shipped are ag_gemm, attention, attention_backward",
        ),
        (["no.py:p", "--strategy", "ring"], "there is no file 'no.py'"),
        (["attention", "--strategy", "star"], "no strategy 'star'; they are"),
        (["attention", "--strategy", "ring", "--mesh", "gpu=0"], "must be at least 1"),
        (["attention", "--strategy", "ring", "--set", "size=4"], "no parameter 'size'"),
        (["attention", "--strategy", "ring", "--set", "sq"], "expected settings such as"),
        (["attention", "--strategy", "ring", "--mask", "window"], "expected full, causal"),
        (["attention", "--strategy", "ring", "--mask", "window(--3)"], "expected full, causal"),
        (["attention", "--strategy", "ring", "--mask", "window(2,3"], "expected full, causal"),
        (["attention", "--strategy", "ring", "--set", "sq=1,sq=2"], "'sq' is set twice"),
        (["attention", "--strategy", "ring", "--set", "d=0"], "d of at least 1"),
        (["attention", "--strategy", "ring", "--mesh", "gpu=2,gpu=3"], "is given twice"),
        (["matmul", "--strategy", "ring"], "'sq' is none; the loops are"),
        (
            ["matmul", "--strategy", "gemm-rs", "--mesh", "gpu=2", "--target", "cuda"],
            "start with: torchrun --nproc-per-node 2",
        ),
    ],
)
def test_run_says_what_is_wrong(arguments, message):
    code = 2 if len(arguments) == 1 else 1
    printed = mercury("run", *arguments, code=code)
    assert message in printed
    assert "Traceback" not in printed


def test_strategies_are_listed_and_shown():
    listed = mercury("strategies")
    assert "RingAttention" in listed
    assert "[i, j]" in listed  # and not taken for markup
    shown = mercury("strategies", "usp", "--mesh", "node=2,gpu=4")
    assert shown.startswith("parallelize(h, gpu); parallelize(sq, node); shift(sk, by=sq)")
    assert "transform.commir.shift" in shown
    assert "no strategy 'x'" in mercury("strategies", "x", code=1)


def test_help_names_the_commands():
    printed = mercury("--help")
    for command in ("doctor", "run", "strategies"):
        assert command in printed
    assert "mercury, version" in mercury("--version")


@pytest.mark.parametrize("shown", SHOWN, ids=lambda line: line.split()[1])
def test_readme_shows_commands_that_work(shown, tmp_path):
    """As they stand there, by the name that a shell finds; a search takes less time."""
    words = shlex.split(shown.replace("--time-limit 60s", "--time-limit 5s"), comments=True)
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
