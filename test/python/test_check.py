"""The plan checker, from the shell and on every plan that the compiler makes."""

import pathlib
import re
import subprocess
import sys

import mercury as mc
import numpy as np
import pytest
from mercury._mlir import ir
from mercury._mlir._mlir_libs import _mercury
from test_cli import mercury

MUTATION = pathlib.Path(__file__).parents[1] / "Mutation" / "mutate_plans.py"
MESHES = [
    {"gpu": 1},
    {"gpu": 2},
    {"gpu": 3},
    {"gpu": 5},
    {"gpu": 8},
    {"node": 2, "gpu": 2},
    {"node": 2, "gpu": 3},
    {"rack": 2, "node": 2, "gpu": 2},
]


def programs(strategy):
    """Give programs of a strategy of odd extents, some smaller than the mesh."""
    if strategy.program.name == "matmul":
        return [
            strategy.program(m=37, n=11, depth=29, dtype="bf16"),
            strategy.program(m=3, n=2, depth=5, dtype="f32"),
        ]
    known = strategy.program.parameters
    choices = [
        {"h": 6, "sq": 37, "sk": 41, "d": 4, "dtype": "f32"},
        {"h": 8, "group": 4, "sq": 29, "sk": 53, "d": 4, "mask": "causal", "dtype": "bf16"},
        {
            "h": 12,
            "group": 2,
            "sq": 5,
            "sk": 3,
            "d": 2,
            "mask": mc.window(2, 1),
            "dtype": "f32",
        },
    ]
    return [
        strategy.program(**{name: value for name, value in choice.items() if name in known})
        for choice in choices
    ]


def lower(text):
    module = ir.Module.parse(text, ir.Context())
    succeeded, messages, _ = _mercury.run_pipeline(module, "builtin.module(commir-to-spmd)")
    return module, "" if succeeded else messages[0][0][1]


def prove(strategy, levels, program):
    """Lower and check a program; say whether the method fits the mesh and is lowered."""
    try:
        scheduled = strategy.schedule(mc.Mesh(**levels), program)
    except mc.MercuryError:
        return False
    module, problem = lower(scheduled.ir())
    if problem:
        assert "does not lower" in problem or "does not yet" in problem, problem
        return False
    ((_, ranks, launches, _, _),) = _mercury.check_plans(module)[0]
    assert ranks == np.prod(list(levels.values()))
    assert launches > 0
    return True


@pytest.mark.parametrize("name", mc.strategies.names())
def test_no_plan_of_the_compiler_raises_an_alarm(name):
    strategy = mc.strategies.get(name)
    proved = [
        prove(strategy, levels, program) for levels in MESHES for program in programs(strategy)
    ]
    assert any(proved)


@pytest.mark.parametrize("layout", ["zigzag", "striped(2)"])
@pytest.mark.parametrize("name", mc.strategies.names())
def test_no_layout_raises_an_alarm(name, layout):
    strategy = mc.strategies.get(name)
    if strategy.program.name == "matmul":
        program = strategy.program(
            m=17, n=11, depth=13, layout=dict.fromkeys("ijk", layout), dtype="f32"
        )
    else:
        choice = {"h": 4, "group": 2, "sq": 19, "sk": 23, "d": 2, "mask": "causal"}
        known = strategy.program.parameters
        sizes = {axis: value for axis, value in choice.items() if axis in known}
        axes = dict.fromkeys([axis for axis in ("sq", "sk") if axis in known], layout)
        program = strategy.program(**sizes, layout=axes, dtype="bf16")
    for levels in ({"gpu": 3}, {"node": 2, "gpu": 2}):
        prove(strategy, levels, program)


def test_many_stripes_are_proved_before_the_time_is_up():
    # 43 stripes a rank: a step of the ring merges each with each, 1849 times.
    program = mc.programs.attention(
        h=3, sq=771, sk=771, d=8, mask=mc.window(257, 0),
        layout={"sq": "striped(3)", "sk": "striped(3)"}, dtype="bf16",
    )  # fmt: skip
    assert prove(mc.strategies.get("ring"), {"node": 3, "gpu": 2}, program)


@pytest.mark.parametrize(
    "name", ["ring", "double-ring", "ulysses", "tree", "gemm-rs", "hybrid"]
)
def test_what_is_proved_to_move_is_what_moves(name):
    strategy = mc.strategies.get(name)
    plan = strategy.schedule(mc.Mesh(gpu=4), programs(strategy)[0]).compile()
    proofs, _ = _mercury.check_plans(ir.Module.parse(plan.spmd, ir.Context()))
    whole = {b.name: np.ones(b.shape, np.float32) for b in plan.program.inputs}
    plan.run(plan.scatter(**whole))
    assert proofs[0][4] == sum(plan.report.bytes_sent.values()) > 0
    assert proofs[0][3] == sum(plan.report.messages.values())


def test_check_proves_a_program():
    printed = mercury(
        *("check", "attention", "--strategy", "ring", "--mesh", "gpu=3", "--mask", "causal"),
        *("--set", "sq=33,sk=33,h=2,d=8", "--dtype", "bf16"),
    )
    assert "attention: right on 3 ranks" in printed
    assert "by 9 launches" in printed
    # Both K and V, each shard to 2 other ranks.
    assert f"12 messages of {2 * 33 * 2 * 8 * 2 * 2:,} bytes" in printed


def test_check_reads_scheduled_and_lowered_text(tmp_path):
    schedule = mc.strategies.get("ag-gemm-shifted").schedule(
        mc.Mesh(gpu=3), mc.programs.matmul(m=7, n=5, depth=3)
    )
    (tmp_path / "scheduled.mlir").write_text(schedule.ir())
    (tmp_path / "lowered.mlir").write_text(schedule.compile().spmd)
    for name in ("scheduled.mlir", "lowered.mlir"):
        assert "matmul: right on 3 ranks" in mercury("check", str(tmp_path / name))


def test_check_names_the_rank_the_step_the_op_and_the_buffer(tmp_path):
    schedule = mc.strategies.get("ag-gemm-shifted").schedule(
        mc.Mesh(node=2, gpu=2), mc.programs.matmul(m=7, n=5, depth=3)
    )
    spmd = schedule.compile().spmd
    path = tmp_path / "broken.mlir"
    launch = next(line for line in spmd.splitlines() if "commir.launch" in line)
    again = launch.replace("{overwrite = array<i1: true>}", "")  # merges into what is there
    assert again != launch
    path.write_text(spmd.replace(launch, f"{launch}\n{again}"))
    printed = mercury("check", str(path), code=1)
    assert re.search(
        r"broken\.mlir:\d+: 'commir\.launch' op breaks the plan on rank 0 \(node 0, gpu 0\), "
        r"step 0\.0: adds k \[0, 3\) to 'C' \(i \[0, 2\), j \[0, 2\)\) a second time",
        printed,
    ), printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {}", "there is no plan to check"),
        ("garbage", "custom op 'garbage' is unknown"),
    ],
)
def test_check_says_what_is_wrong_with_a_file(tmp_path, text, message):
    (tmp_path / "file.mlir").write_text(text)
    assert message in mercury("check", str(tmp_path / "file.mlir"), code=1)


def test_check_needs_a_file_or_a_schedule():
    assert "there is no file 'attention'; give one of" in mercury("check", "attention", code=2)


def mutate(*options):
    """Break plans; count for each operator the mutants, caught, harmless and missed."""
    done = subprocess.run(
        [sys.executable, str(MUTATION), *options, "--show"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^(.*?) +(\d+) +(\d+) +(\d+) +(\d+)$", done.stdout, re.MULTILINE)
    return {name: tuple(map(int, counts)) for name, *counts in rows}


def test_broken_plans_are_caught_or_harmless():
    strategies = ("ring", "gemm-rs", "split-reduction")
    rows = mutate(
        *("--sample", "150", "--seed", "3"),
        *(word for name in strategies for word in ("--strategy", name)),
    )
    assert sum(caught for _, caught, _, _ in rows.values()) > 75
    assert sum(missed for _, _, _, missed in rows.values()) == 0


def test_broken_positions_of_stripes_are_caught_or_harmless():
    # Some move stripes from the launch of those seen whole to launches of their own.
    rows = mutate(
        *("--sample", "80", "--seed", "2", "--strategy", "stripes"),
        *("--operator", "offset or direction flipped"),
    )
    _, caught, _, missed = rows["offset or direction flipped"]
    assert caught > 40
    assert missed == 0


def test_broken_signals_are_caught_or_harmless():
    rows = mutate(
        *("--all", "--operator", "drop a signal", "--operator", "signal early"),
        *("--strategy", "async-tp", "--strategy", "cannon"),
    )
    for operator in ("drop a signal", "signal early"):
        applicable, caught, _, missed = rows[operator]
        assert applicable > 0
        assert caught >= applicable / 2
        assert missed == 0
