"""What the paper compares: operators, machines, and how many of them."""

from __future__ import annotations

from dataclasses import dataclass

from .. import programs
from ..dsl import Mesh, Program
from ..topology import Topology, load

__all__ = ["CASES", "Case"]

_KI, _MI = 1 << 10, 1 << 20
MESHES = ((1, 4), (4, 1), (2, 4), (4, 2), (1, 8), (4, 4))
MACHINES = ("h100", "a100", "l4")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One operator on one machine.

    Attributes
    ----------
    group
        ``"lengths"``, ``"topologies"``, ``"memory wall"`` or ``"products"``.
    operator
        ``"attention"``, ``"ag_gemm"`` or ``"gemm_rs"``.
    gpu, nodes, gpus
        The machine: nodes of so many GPUs.
    sizes
        Of attention batch, heads, key heads and tokens; of products m, n and depth.
    """

    group: str
    operator: str
    gpu: str
    nodes: int
    gpus: int
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """The case in a few words."""
        if self.operator == "attention":
            batch, heads, keys, tokens = self.sizes
            kind = "MHA" if heads == keys else "GQA"
            length = f"{tokens // _MI}M" if tokens >= _MI else f"{tokens // _KI}K"
            what = f"{kind} {heads}:{keys}, batch {batch}, {length} tokens"
        else:
            what = f"{self.operator} {'x'.join(map(str, self.sizes))}"
        return f"{what}, {self.gpu} {self.nodes}x{self.gpus}"

    @property
    def topology(self) -> Topology:
        """The machine."""
        return load(f"{self.gpu}-{self.gpus}x{self.nodes}")

    @property
    def mesh(self) -> Mesh:
        """All of its ranks."""
        return self.topology.mesh

    def program(self) -> Program:
        """Build the operator, bf16, head dimension 128, no mask."""
        if self.operator == "attention":
            batch, heads, keys, tokens = self.sizes
            return programs.attention(
                b=batch, h=heads, group=heads // keys, sq=tokens, sk=tokens
            )
        m, n, depth = self.sizes
        product = programs.ag_gemm if self.operator == "ag_gemm" else programs.gemm_rs
        return product(m=m, n=n, depth=depth)


def _attention(
    group: str, gpu: str, mesh: tuple[int, int], batch: int, keys: int, tokens: int
) -> Case:
    return Case(
        group=group,
        operator="attention",
        gpu=gpu,
        nodes=mesh[0],
        gpus=mesh[1],
        sizes=(batch, 32, keys, tokens),
    )


def _cases() -> list[Case]:
    found = []
    for keys in (32, 8):
        for batch, lengths in ((1, (4, 16, 64, 256, 1024)), (16, (4, 16, 64))):
            for length in lengths:
                found.append(_attention("lengths", "h100", (2, 4), batch, keys, length * _KI))
    for gpu in MACHINES:
        for mesh in MESHES:
            found.append(_attention("topologies", gpu, mesh, 1, 32, 64 * _KI))
            found.append(_attention("topologies", gpu, mesh, 16, 8, 4 * _KI))
    found += [_attention("memory wall", "h100", (2, 4), 1, keys, 2 * _MI) for keys in (32, 8)]
    # Tokens, and the hidden sizes of Llama-3 8B and 70B.
    for operator in ("ag_gemm", "gemm_rs"):
        for hidden, wide in ((4096, 14336), (8192, 28672)):
            for tokens in (8192, 32768):
                n, depth = (wide, hidden) if operator == "ag_gemm" else (hidden, wide)
                for nodes, gpus in ((1, 4), (1, 8), (2, 4)):
                    found.append(
                        Case(
                            group="products",
                            operator=operator,
                            gpu="h100",
                            nodes=nodes,
                            gpus=gpus,
                            sizes=(tokens, n, depth),
                        )
                    )
    return found


CASES = tuple(_cases())
