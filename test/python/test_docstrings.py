"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import mercury
import pytest

MODULES = [
    module.name
    for module in pkgutil.walk_packages(mercury.__path__, "mercury.")
    if "._mlir" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert result.failed == 0


def test_import_does_no_work():
    code = "import sys, mercury; print('numpy' in sys.modules, 'mercury._mlir' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert done.stdout.split() == [b"False", b"False"]


def test_public_names_exist():
    for name in mercury.__all__:
        assert getattr(mercury, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(mercury, "nothing")  # noqa: B009 (the attribute is the test)
