"""The compiled programs of the package, as commands."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn

__all__ = ["mercury_lsp_server", "mercury_opt"]


def mercury_opt() -> NoReturn:
    """Become ``mercury-opt``, the pass driver, with this process' arguments."""
    _become("mercury-opt")


def mercury_lsp_server() -> NoReturn:
    """Become ``mercury-lsp-server``, the language server of ``.mlir`` files."""
    _become("mercury-lsp-server")


def _become(name: str) -> NoReturn:
    program = pathlib.Path(__file__).parents[1] / "_mlir" / "bin" / name
    if not os.access(program, os.X_OK):
        sys.exit(f"{name}: no program at {program}; build or install Mercury again")
    os.execv(program, [name, *sys.argv[1:]])
