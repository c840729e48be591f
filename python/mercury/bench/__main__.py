"""``torchrun --nproc-per-node 2 -m mercury.bench operators``: as ``mercury bench``."""

from __future__ import annotations

import sys

__all__: list[str] = []


def _main() -> int:
    try:
        from ..cli.bench import bench  # noqa: PLC0415 (needs the cli extra)
    except ImportError as missing:
        print(
            f"mercury bench needs {missing.name}; "
            "install it with: pip install 'mercury-compiler[cli]'",
            file=sys.stderr,
        )
        return 1
    return int(bench(standalone_mode=True, prog_name="mercury bench") or 0)


if __name__ == "__main__":
    sys.exit(_main())
