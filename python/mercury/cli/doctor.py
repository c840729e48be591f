"""What this machine has of all that Mercury needs or can use."""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import importlib.metadata
import os
import pathlib
import platform
from collections.abc import Sequence
from typing import Literal

from ..errors import RunError
from ..libraries import ABI_VERSION, find_nccl, nccl_version, open_runtime
from .doctor_gpu import describe_cudnn, describe_reach

__all__ = ["Finding", "print_findings", "run"]

Status = Literal["ok", "missing", "optional"]

DISTRIBUTION = "mercury-compiler"
PACKAGE = pathlib.Path(__file__).parents[1]
REINSTALL = "install Mercury again: tools/setup or pip install --force-reinstall . in a clone"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing looked for.

    Parameters
    ----------
    name
        What was looked for.
    status
        ``ok``; ``missing``: Mercury does not work without it; ``optional``: it is not
        there, and only what the detail names needs it.
    detail
        What was found.
    remedy
        What to do about it; empty when there is nothing to do.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""


def run() -> list[Finding]:
    """Look at this machine; nothing is changed.

    Returns
    -------
    list of Finding
        The findings, those that Mercury cannot do without first.

    Examples
    --------
    >>> [finding.name for finding in run()][:2]
    ['Python', 'import name']
    """
    return [
        _python(),
        _import_name(),
        _numpy(),
        _compiler(),
        _runtime(),
        _host(),
        _memory(),
        _torch(),
        _nccl(),
        _cudnn(),
        _cuda(),
    ]


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings as a table, and below it what to do.

    Parameters
    ----------
    findings
        What :func:`run` returned.
    """
    from rich.console import Console  # noqa: PLC0415 -- slow to import
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    marks = {
        "ok": "[green]ok[/]",
        "missing": "[bold red]missing[/]",
        "optional": "[dim]not found[/]",
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        table.add_row(marks[finding.status], finding.name, escape(finding.detail))
    console = Console(highlight=False)
    console.print(table)
    for finding in findings:
        if finding.remedy:
            console.print(f"[bold]{finding.name}[/]: {escape(finding.remedy)}", soft_wrap=True)


def _python() -> Finding:
    detail = f"{platform.python_implementation()} {platform.python_version()}"
    return Finding(name="Python", status="ok", detail=detail)


def _import_name() -> Finding:
    """Another distribution that installs a module `mercury` shadows or breaks this one."""
    owners = set(importlib.metadata.packages_distributions().get("mercury", []))
    others = sorted(owners - {DISTRIBUTION})
    if others:
        return Finding(
            name="import name",
            status="missing",
            detail=f"'mercury' also belongs to the distribution {', '.join(others)}",
            remedy=f"pip uninstall {' '.join(others)}, then {REINSTALL}",
        )
    return Finding(name="import name", status="ok", detail=f"mercury is {PACKAGE}")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numpy() -> Finding:
    try:
        numpy = importlib.import_module("numpy")
    except ImportError as error:
        return Finding(
            name="NumPy",
            status="missing",
            detail=str(error),
            remedy="pip install 'numpy>=1.26'",
        )
    return Finding(name="NumPy", status="ok", detail=str(numpy.__version__))


def _compiler() -> Finding:
    try:
        importlib.import_module("mercury._mlir.ir")
    except ImportError as error:
        return Finding(name="compiler", status="missing", detail=str(error), remedy=REINSTALL)
    absent = [
        name
        for name in ("mercury-opt", "mercury-lsp-server")
        if not os.access(PACKAGE / "_mlir" / "bin" / name, os.X_OK)
    ]
    if absent:
        detail = f"no program {', '.join(absent)} in the package"
        return Finding(name="compiler", status="missing", detail=detail, remedy=REINSTALL)
    return Finding(name="compiler", status="ok", detail="library and programs load")


def _runtime() -> Finding:
    try:
        open_runtime()
    except (RunError, ImportError, OSError, AttributeError) as error:
        return Finding(name="runtime", status="missing", detail=str(error), remedy=REINSTALL)
    detail = f"libmercury_rt.so, ABI version {ABI_VERSION}"
    return Finding(name="runtime", status="ok", detail=detail)


def _host() -> Finding:
    cores = len(os.sched_getaffinity(0))
    detail = f"{platform.machine()}, {cores} cores, {' '.join(platform.libc_ver())}"
    if platform.machine() not in ("x86_64", "aarch64"):
        return Finding(
            name="host",
            status="missing",
            detail=detail,
            remedy="generated kernels are for x86_64 and aarch64 only",
        )
    slow = []
    if platform.machine() == "x86_64":
        flags = _read("/proc/cpuinfo").partition("\nflags")[2].partition("\n")[0].split()
        slow = [flag for flag in ("fma", "f16c") if flags and flag not in flags]
    if slow:
        detail += f"; without {' and '.join(slow)}, generated kernels are right but slow"
    return Finding(name="host", status="ok", detail=detail)


def _memory() -> Finding:
    lines = (line.split() for line in _read("/proc/meminfo").splitlines())
    kibibytes = {line[0].rstrip(":"): int(line[1]) for line in lines if len(line) > 1}
    if "MemAvailable" not in kibibytes:
        return Finding(name="memory", status="ok", detail="unknown")
    free, total = (kibibytes[key] / 2**20 for key in ("MemAvailable", "MemTotal"))
    return Finding(
        name="memory", status="ok", detail=f"{free:.1f} of {total:.1f} GiB available"
    )


def _torch() -> Finding:
    version = _version("torch")
    if version is None:
        return Finding(
            name="PyTorch",
            status="optional",
            detail="needed for torch tensors and kernels",
            remedy="pip install 'torch>=2.6'",
        )
    return Finding(name="PyTorch", status="ok", detail=version)


def _nccl() -> Finding:
    binding = _version("nccl4py")
    given = f"nccl4py {binding}" if binding else "groups on several hosts need nccl4py"
    try:
        place, origin = find_nccl()
        detail = f"NCCL {nccl_version(place)}, {origin} ({place}); {given}"
        return Finding(name="NCCL", status="ok", detail=detail)
    except (RunError, ImportError, OSError, AttributeError) as error:
        return Finding(
            name="NCCL",
            status="optional",
            detail=f"needed to send between GPUs; {error}",
            remedy="pip install 'torch>=2.6', or set MERCURY_RT_NCCL_LIBRARY to its path",
        )


def _cudnn() -> Finding:
    complete, detail, remedy = describe_cudnn()
    status: Status = "ok" if complete else "optional"
    return Finding(name="cuDNN", status=status, detail=detail, remedy=remedy)


def _cuda() -> Finding:
    needed = "needed to run on GPUs; target 'sim' runs without"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Finding(name="CUDA driver", status="optional", detail=needed)
    code = driver.cuInit(0)
    if code != 0:
        return Finding(
            name="CUDA driver",
            status="optional",
            detail=f"cuInit returned {code}; {needed}",
            remedy="nvidia-smi says more about the driver's state",
        )
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetCount(ctypes.byref(count))
    names = []
    for number in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(128)
        driver.cuDeviceGet(ctypes.byref(device), number)
        driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode(errors="replace"))
    kinds = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    detail = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    reach = describe_reach(driver, count.value)
    return Finding(
        name="CUDA driver",
        status="ok" if names else "optional",
        detail=", ".join(filter(None, [detail, *(kinds or ["no device"]), reach])),
    )


def _read(path: str) -> str:
    """Return a file's text, or nothing where the system has no such file."""
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
