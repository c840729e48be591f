"""`mercury doctor` on machines that lack things."""

from __future__ import annotations

import ctypes
import importlib.metadata
from typing import Any, NoReturn

import pytest
from mercury.cli import doctor


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
    monkeypatch.setattr(doctor, "ABI_VERSION", 0)
    finding = found("runtime")
    assert finding.status == "missing"
    assert "expected 0" in finding.detail


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
