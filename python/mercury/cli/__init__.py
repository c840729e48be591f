"""The ``mercury`` command: what the library does, from the shell."""

from __future__ import annotations

import sys
import warnings

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

    warnings.showwarning = _show_warning
    try:
        return int(cli(prog_name="mercury", standalone_mode=True) or 0)
    except MemoryError as error:
        print(f"Error: not enough memory: {error}; take smaller sizes", file=sys.stderr)
    except OSError as error:  # a file or the output itself, as on a full disk
        print(f"Error: {error.strerror or error}", *_named(error), file=sys.stderr)
    return 1


def _named(error: OSError) -> list[str]:
    return [f"('{error.filename}')"] if error.filename else []


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"Warning: {message}", file=sys.stderr)
