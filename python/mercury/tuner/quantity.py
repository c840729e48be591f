"""Amounts as people write them: ``40GiB``, ``60s``."""

from __future__ import annotations

import re

from ..errors import MercuryError

__all__ = ["TuneError", "format_bytes", "format_seconds", "parse_bytes", "parse_seconds"]

_AMOUNT = re.compile(r"\s*(?P<number>[0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(?P<unit>[A-Za-z]*)\s*")
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_SECONDS = {"": 1.0, "S": 1.0, "MS": 1e-3, "MIN": 60.0, "M": 60.0, "H": 3600.0}


class TuneError(MercuryError):
    """A search was asked for something that does not exist, or found nothing."""


def parse_bytes(value: str | int | float) -> int:
    """Read a number of bytes.

    Raises
    ------
    TuneError
        When it is none.

    Examples
    --------
    >>> parse_bytes("40GiB"), parse_bytes("1.5 MB"), parse_bytes(7)
    (42949672960, 1500000, 7)
    """
    return int(_amount(value, _BYTES, "bytes such as '40GiB'"))


def parse_seconds(value: str | int | float) -> float:
    """Read a time in seconds.

    Raises
    ------
    TuneError
        When it is none.

    Examples
    --------
    >>> parse_seconds("60s"), parse_seconds("2min"), parse_seconds(0.5)
    (60.0, 120.0, 0.5)
    """
    return _amount(value, _SECONDS, "a time such as '60s' or '2min'")


def _amount(
    value: str | int | float, units: dict[str, float] | dict[str, int], what: str
) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return value
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    unit = units.get(found["unit"].upper()) if found else None
    amount = float(found["number"]) * unit if found and unit is not None else 0.0
    if amount <= 0:
        raise TuneError(f"expected {what}, above 0, got {value!r}")
    return amount


def format_bytes(count: float) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> format_bytes(42949672960), format_bytes(100)
    ('40.0 GiB', '100 B')
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.0f} B" if units[0] == "B" else f"{count:.1f} {units[0]}"


def format_seconds(seconds: float) -> str:
    """Write a time.

    Examples
    --------
    >>> format_seconds(0.0034), format_seconds(2.5e-5)
    ('3.40 ms', '25.0 us')
    """
    factor, unit = next(
        (pair for pair in ((1e6, "us"), (1e3, "ms")) if seconds * pair[0] < 1000), (1.0, "s")
    )
    amount = seconds * factor
    return f"{amount:.{0 if amount >= 100 else 1 if amount >= 10 else 2}f} {unit}"
