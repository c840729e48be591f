"""The ``mercury`` command: what the library does, from the shell."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command; needs the ``cli`` extra."""
    try:
        import click  # noqa: F401, PLC0415 (an optional dependency)
        import rich  # noqa: F401, PLC0415
    except ImportError as missing:
        print(
            f"the mercury command needs {missing.name}; "
            "install it with: pip install '.[cli]' in a clone",
            file=sys.stderr,
        )
        return 1
    from .commands import cli  # noqa: PLC0415 (needs what was checked above)

    return int(cli(prog_name="mercury", standalone_mode=True) or 0)
