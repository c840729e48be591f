"""``python -m mercury`` and ``torchrun -m mercury``: the command ``mercury``."""

from __future__ import annotations

import sys

from .cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
