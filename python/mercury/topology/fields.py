"""Reading the fields of a topology file, with errors that name file, key and value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any

from .errors import TopologyError

__all__ = ["SCHEMA", "Fields"]

SCHEMA = 1


class Fields:
    """A table of a file; what is read is checked, what is not asked for is refused.

    Parameters
    ----------
    table
        As ``tomllib`` gives it.
    file
        Its file.
    key
        The dotted path of the table in the file; empty at the top.
    """

    def __init__(self, table: Mapping[str, Any], file: str, key: str = "") -> None:
        self._table, self._file, self._key = table, file, key
        self._read: set[str] = set()

    def error(self, key: str, expected: str) -> TopologyError:
        """Make the error of one key."""
        path = f"{self._key}.{key}" if self._key else key
        given = f"got {self._table[key]!r}" if key in self._table else "it is missing"
        return TopologyError(f"{self._file}: '{path}' must be {expected}, {given}")

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def names(self) -> list[str]:
        """Give all keys."""
        return list(self._table)

    def _get(self, key: str) -> Any:
        self._read.add(key)
        return self._table.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Read a text."""
        value = self._get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value:
            raise self.error(key, "a text")
        return value

    def word(self, key: str, words: Collection[str], default: str) -> str:
        """Read one of some words."""
        value = self._get(key)
        if value is None:
            return default
        if value not in words:
            raise self.error(key, f"one of {', '.join(words)}")
        return str(value)

    def words(self, key: str, words: Collection[str] | None = None) -> list[str]:
        """Read a list of texts, or of some words only."""
        value = self._get(key)
        if value is None:
            return []
        good = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not good or (words is not None and not set(value) <= set(words)):
            raise self.error(
                key, "a list of texts" if words is None else f"a list of {', '.join(words)}"
            )
        return list(value)

    def flag(self, key: str, default: bool) -> bool:
        """Read true or false."""
        value = self._get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, "true or false")
        return value

    def number(
        self,
        key: str,
        unit: str,
        *,
        default: float | None = None,
        least: float = 0.0,
        most: float | None = None,
    ) -> float:
        """Read a number in a unit, above ``least`` (or ``least`` itself, when that is 0)."""
        value = self._get(key)
        if value is None and default is not None:
            return default
        expected = f"a number of {unit}" if unit else "a number"
        expected += f" from {least:g}" + (f" to {most:g}" if most is not None else "")
        if not _is_number(value) or value < least or (most is not None and value > most):
            raise self.error(key, expected)
        return float(value)

    def whole(self, key: str, what: str, least: int = 1) -> int:
        """Read a whole number."""
        value = self._get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(key, f"a whole number of {what}, at least {least}")
        return value

    def points(self, key: str, x_unit: str, y_unit: str) -> tuple[tuple[float, float], ...]:
        """Read a list of points, their first numbers increasing and all above 0."""
        value = self._get(key)
        good = isinstance(value, list) and bool(value)
        for point in value if good else []:
            good &= isinstance(point, list) and len(point) == 2
            good = good and all(_is_number(number) and number > 0 for number in point)
        if not good or any(a[0] >= b[0] for a, b in pairwise(value)):
            raise self.error(
                key, f"a list of [{x_unit}, {y_unit}], above 0 and {x_unit} increasing"
            )
        return tuple((float(x), float(y)) for x, y in value)

    def pair(self, key: str, expected: str) -> tuple[int, int]:
        """Read two whole numbers."""
        value = self._get(key)
        good = isinstance(value, list) and len(value) == 2
        good = good and all(isinstance(n, int) and not isinstance(n, bool) for n in value)
        if not good or value[0] < 1 or value[1] < 0:
            raise self.error(key, expected)
        return value[0], value[1]

    def table(self, key: str) -> Fields:
        """Read a table."""
        value = self._get(key)
        if not isinstance(value, dict):
            raise self.error(key, f"a table, [{self._path(key)}]")
        return Fields(value, self._file, self._path(key))

    def tables(self, key: str) -> dict[str, Fields]:
        """Read a table of tables, by name; at least one."""
        value = self._get(key)
        if not isinstance(value, dict) or not value:
            raise self.error(key, f"tables such as [{self._path(key)}.NAME]")
        for name, inner in value.items():
            if not isinstance(inner, dict):
                raise self.error(key, f"tables, and '{name}' is none")
        return {
            name: Fields(inner, self._file, f"{self._path(key)}.{name}")
            for name, inner in value.items()
        }

    def list_of_tables(self, key: str) -> list[Fields]:
        """Read a list of tables; at least one."""
        value = self._get(key)
        good = isinstance(value, list) and bool(value)
        if not good or not all(isinstance(each, dict) for each in value):
            raise self.error(key, f"a list of tables, [[{self._path(key)}]]")
        return [
            Fields(each, self._file, f"{self._path(key)}[{number}]")
            for number, each in enumerate(value)
        ]

    def _path(self, key: str) -> str:
        return f"{self._key}.{key}" if self._key else key

    def done(self) -> None:
        """Refuse the keys that nobody asked for: a typing error must not be a default."""
        for key in self._table:
            if key not in self._read:
                path = self._path(key)
                raise TopologyError(
                    f"{self._file}: there is no key '{path}'; keys here are "
                    f"{', '.join(sorted(self._read))}"
                )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
