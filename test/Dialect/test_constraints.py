"""Every constraint that TableGen states has a negative test, and its error says the same words.

A constraint is a bullet `- [id] text with a `phrase`` in a .td file. Its test is a case of a
*-invalid.mlir file that begins with `// CONSTRAINT: id` and expects an error with the phrase.
"""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def stated() -> dict[str, str]:
    """Return the phrase of each constraint by its id."""
    phrases: dict[str, str] = {}
    for path in sorted((ROOT / "dialect").rglob("*.td")):
        for name, text in re.findall(r"- \[([\w.-]+)\](.*)", path.read_text()):
            assert name not in phrases, f"{name} is stated twice"
            quoted = re.findall(r"`([^`]+)`", text)
            assert quoted, f"{name} has no phrase in backquotes"
            phrases[name] = quoted[-1]
    return phrases


def expected_errors() -> dict[str, list[str]]:
    """Return the errors that the cases of each constraint expect."""
    errors: dict[str, list[str]] = {}
    for path in sorted((ROOT / "test" / "Dialect").rglob("*-invalid.mlir")):
        for case in path.read_text().split("// -----"):
            expected = "\n".join(re.findall(r"expected-error@below \{\{(.*)\}\}", case))
            for name in re.findall(r"// CONSTRAINT: ([\w.-]+)", case):
                errors.setdefault(name, []).append(expected)
    return errors


@pytest.mark.parametrize(("name", "phrase"), stated().items())
def test_constraint_has_a_case(name: str, phrase: str) -> None:
    cases = expected_errors().get(name, [])
    assert cases, f"no case says CONSTRAINT: {name}"
    for expected in cases:
        assert phrase in expected


def test_no_case_of_an_unknown_constraint() -> None:
    assert set(expected_errors()) <= set(stated())
