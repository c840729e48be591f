"""Print the PTX of a file of GPU kernels; mercury-opt must be in PATH.

python test/Runtime/Cuda/ptx.py test/Conversion/softmax-merge-gpu.mlir > merge.ptx
"""

from __future__ import annotations

import re
import subprocess
import sys

PIPELINE = "cubin-chip=sm_90a cubin-features=+ptx80 cubin-format=isa"


def main() -> None:
    command = ["mercury-opt", sys.argv[1], f"--gpu-lower-to-nvvm-pipeline={PIPELINE}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r'assembly = "((?:[^"\\]|\\.)*)"', text)
    if not found:
        sys.exit(f"{sys.argv[1]} has no gpu.module")
    # MLIR writes what it cannot print as two hexadecimal digits.
    escaped = re.compile(r"\\([0-9A-F]{2}|.)")
    plain = escaped.sub(lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else m[1], found[1])
    sys.stdout.write(plain.rstrip("\0"))


if __name__ == "__main__":
    main()
