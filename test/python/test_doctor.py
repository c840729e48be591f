"""`mercury doctor` on machines that lack things."""

from __future__ import annotations

import ctypes
import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from mercury import libraries
from mercury.cli import doctor

SYMBOLS = Path(__file__).parents[2] / "lib" / "Runtime" / "Cuda" / "NcclSymbols.def"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime is opened anew, and no environment names an NCCL."""
    libraries.open_runtime.cache_clear()
    monkeypatch.delenv("MERCURY_RT_NCCL_LIBRARY", raising=False)


def found(name: str) -> doctor.Finding:
    (finding,) = [finding for finding in doctor.run() if finding.name == name]
    return finding


def refuse(*_: Any) -> NoReturn:
    raise OSError("cannot open shared object file")


def test_this_machine_is_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    findings = doctor.run()
    assert not [finding for finding in findings if finding.status == "missing"]
    doctor.print_findings(findings)
    printed = capsys.readouterr().out
    assert all(finding.name in printed for finding in findings)


def test_another_distribution_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    owners = {"mercury": ["mercury-compiler", "mercury", "mercury"]}
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: owners)
    finding = found("import name")
    assert finding.status == "missing"
    assert finding.remedy.startswith("pip uninstall mercury,")


def test_no_library_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert found("runtime").status == "missing"
    assert found("CUDA driver").status == "optional"


def test_runtime_of_another_abi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "ABI_VERSION", 0)
    finding = found("runtime")
    assert finding.status == "missing"
    assert "this package wants 0" in finding.detail


def make_nccl(place: Path, version: int) -> Path:
    """A library with the functions that the runtime looks for, of some version."""
    if not (compiler := shutil.which("cc")):
        pytest.skip("needs a C compiler")
    names = set(re.findall(r"\bnccl[A-Z]\w+(?=,)", SYMBOLS.read_text()))
    lines = [f"int {name}(void) {{ return 0; }}" for name in names - {"ncclGetVersion"}]
    lines += ["const char *ncclGetErrorString(int result) { return 0; }"]
    lines += [f"int ncclGetVersion(int *found) {{ *found = {version}; return 0; }}"]
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", place],
        input="\n".join(lines).encode(),
        check=True,
    )
    return place


def test_nccl_of_pytorch_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = make_nccl(tmp_path / "nvidia" / "nccl" / "lib" / "libnccl.so.2", 22809)
    for package in (tmp_path / "nvidia", tmp_path / "nvidia" / "nccl"):
        (package / "__init__.py").touch()
    for name in [each for each in sys.modules if each.split(".")[0] == "nvidia"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    finding = found("NCCL")
    assert finding.status == "ok"
    assert f"NCCL 2.28.9, of the package that PyTorch requires ({place})" in finding.detail


def test_nccl_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = make_nccl(tmp_path / "libnamed.so", 23000)
    monkeypatch.setenv("MERCURY_RT_NCCL_LIBRARY", str(place))
    assert "NCCL 2.30.0, named by MERCURY_RT_NCCL_LIBRARY" in found("NCCL").detail
    old = make_nccl(tmp_path / "libold.so", 21703)
    monkeypatch.setenv("MERCURY_RT_NCCL_LIBRARY", str(old))
    finding = found("NCCL")
    assert finding.status == "optional"
    assert "is NCCL 2.17.3; install NCCL 2.18.0 or later" in finding.detail
    monkeypatch.setenv("MERCURY_RT_NCCL_LIBRARY", "/nowhere/libnccl.so")
    assert "cannot open '/nowhere/libnccl.so'" in found("NCCL").detail


class FakeDriver:
    """A CUDA driver with three devices of two kinds."""

    names = (b"A", b"B", b"A")

    def __init__(self, code: int) -> None:
        self.code = code

    def cuInit(self, _flags: int) -> int:  # noqa: N802 -- the driver's names
        return self.code

    def cuDriverGetVersion(self, version: Any) -> int:  # noqa: N802
        version._obj.value = 12080
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.names)
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:  # noqa: N802
        device._obj.value = number
        return 0

    def cuDeviceGetName(self, name: Any, _size: int, device: Any) -> int:  # noqa: N802
        name.value = self.names[device.value]
        return 0


def test_devices_are_counted_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: FakeDriver(0))
    finding = doctor._cuda()
    assert (finding.status, finding.detail) == ("ok", "CUDA 12.8, 2 x A, 1 x B")


def test_driver_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: FakeDriver(100))
    finding = doctor._cuda()
    assert finding.status == "optional"
    assert "cuInit returned 100" in finding.detail
