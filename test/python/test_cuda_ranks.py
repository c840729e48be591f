"""Plans for GPUs on the fake driver: ranks are processes, their memory is the host's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "test" / "Runtime" / "Cuda"
RUNTIME = ROOT / "lib" / "Runtime"
SOURCES = [*FAKE.glob("Fake*.cpp"), *FAKE.glob("Fake*.h"), RUNTIME / "Elements.h"]
NAME = "libmercury_rt_fake_cuda.so"


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that stands for the CUDA driver and NCCL."""
    build = os.environ.get("MERCURY_BUILD")
    if build is not None:
        built = Path(build) / "runtime" / "test" / "Cuda" / NAME
        newest = max(source.stat().st_mtime for source in SOURCES)
        if built.is_file() and built.stat().st_mtime > newest:
            return built
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    made = tmp_path_factory.mktemp("fake") / NAME
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-fexceptions", "-pthread"]
    includes = [f"-I{ROOT}", f"-I{FAKE}", f"-I{RUNTIME / 'include'}"]
    files = [str(source) for source in SOURCES if source.suffix == ".cpp"]
    subprocess.run([compiler, *flags, *includes, *files, "-o", str(made)], check=True)
    return made


def start(
    case: str, ranks: int, driver: Path, store: Path, mesh: str | None = None
) -> list[tuple[int, str]]:
    """Run a case on every rank; each one's exit status and what it printed."""
    shared = {
        **os.environ,
        "WORLD_SIZE": str(ranks),
        "MERCURY_STORE": str(store),
        "MERCURY_RT_CUDA_LIBRARY": str(driver),
        "MERCURY_RT_NCCL_LIBRARY": str(driver),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    started = [
        subprocess.Popen(
            [sys.executable, str(FAKE / "ranks.py"), case, *([mesh] if mesh else [])],
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    ended = []
    for one in started:
        try:
            printed, _ = one.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            one.kill()
            printed = one.communicate()[0] + "\nkilled after 100 s"
        ended.append((one.returncode, printed))
    return ended


def check(ended: list[tuple[int, str]]) -> None:
    for rank, (code, printed) in enumerate(ended):
        assert code == 0, f"rank {rank} ended with {code}:\n{printed}"
        assert printed.endswith("done\n")


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    "case",
    [
        "ring-rotate",
        "ring-pull",
        "ring-zigzag",
        "ulysses",
        "context-parallel",
        "shifted-reduction",
        "ring-merged-once",
        "tree",
        "all-reduce",
        "sum-merged-once",
        "summa",
        "panels-packed",
        "gemm-rs",
        "gemm-rs-shifted",
        "gemm-rs-fetch",
        "async-tp",
    ],
)
def test_a_plan_runs_and_replays_with_new_data(
    case: str, ranks: int, driver: Path, tmp_path: Path
) -> None:
    check(start(case, ranks, driver, tmp_path / "store"))


@pytest.mark.parametrize(
    ("case", "mesh"),
    [
        *(
            (case, "node=2,gpu=2")
            for case in (
                "context-parallel",
                "ulysses",
                "gemm-rs",
                "async-tp",
                "ring-pull",
                "tree",
                "panels-packed",
            )
        ),
        *((case, "node=2,gpu=3") for case in ("context-parallel", "async-tp", "summa")),
    ],
)
def test_a_plan_communicates_over_two_levels_at_once(
    case: str, mesh: str, driver: Path, tmp_path: Path
) -> None:
    ranks = 4 if mesh.endswith("2") else 6
    check(start(case, ranks, driver, tmp_path / "store", mesh))


def test_a_rank_without_memory_makes_all_take_the_next_plan(
    driver: Path, tmp_path: Path
) -> None:
    check(start("assumptions", 2, driver, tmp_path / "store"))


def test_two_plans_share_a_session(driver: Path, tmp_path: Path) -> None:
    check(start("two-plans", 2, driver, tmp_path / "store"))


def test_ranks_that_share_a_gpu_cannot_send(driver: Path, tmp_path: Path) -> None:
    check(start("shared-gpu", 3, driver, tmp_path / "store"))


@pytest.mark.parametrize(
    "fault",
    [
        "mismatched-plans",
        "out-of-memory",
        "broken-messages",
        *(f"absent-{way}{how}" for way in ("reads", "sends") for how in ("", "-replayed")),
    ],
)
def test_a_fault_is_told_to_every_rank_which_works_again(
    fault: str, driver: Path, tmp_path: Path
) -> None:
    check(start(fault, 3, driver, tmp_path / "store"))


@pytest.mark.parametrize("way", ["reads", "sends"])
def test_a_rank_that_ends_is_missed_within_the_deadline(
    way: str, driver: Path, tmp_path: Path
) -> None:
    *others, last = start(f"killed-{way}", 3, driver, tmp_path / "store")
    check(others)
    assert last[0] == -9


def test_an_exception_in_a_kernel_is_the_error_of_every_rank(
    driver: Path, tmp_path: Path
) -> None:
    check(start("failing-kernel", 2, driver, tmp_path / "store"))


def test_the_hosts_time_for_a_step_is_measured(driver: Path, tmp_path: Path) -> None:
    check(start("bench-host", 2, driver, tmp_path / "store"))


def test_a_step_calls_the_driver_no_more_than_it_must(driver: Path, tmp_path: Path) -> None:
    check(start("driver-calls", 2, driver, tmp_path / "store"))


def test_results_of_a_run_that_failed_are_kept(driver: Path, tmp_path: Path) -> None:
    check(start("kept-results", 2, driver, tmp_path / "store"))
