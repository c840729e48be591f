"""Plans written by hand, a line a call: what a compiler could emit, or others wrote."""

from mercury._mlir import ir
from mercury.dsl import Mesh
from mercury.simulator import simulate_module
from mercury.topology import load


class HandPlan:
    """One text for all ranks of a mesh; memory is where it is named, and never checked."""

    def __init__(self, **levels):
        self.mesh = Mesh(**levels)
        self.names = 0
        self.lines = []
        self.level = self.mesh.names[-1]
        self.size = self.mesh[self.level]
        self.constants = {}
        self.zero = self.constant(0)
        self.rank = self.say(f'commir.group_rank "{self.level}"')
        self.true = self.say("arith.constant true")

    def fresh(self):
        self.names += 1
        return f"%v{self.names}"

    def say(self, text):
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value):
        if value not in self.constants:
            self.constants[value] = self.say(f"arith.constant {value} : index")
        return self.constants[value]

    def peer(self, distance):
        """The group rank so far from this one, around the ring."""
        total = self.say(
            f"arith.addi {self.rank}, {self.constant(distance % self.size)} : index"
        )
        return self.say(f"arith.remui {total}, {self.constant(self.size)} : index")

    def is_rank(self, number):
        return self.say(f"arith.cmpi eq, {self.rank}, {self.constant(number)} : index")

    # -- memory ---------------------------------------------------------------

    def memory(self, what="local"):
        return self.say(f"commir.memory {what} : memref<?xi8>")

    def tile(self, *shape, dtype="bf16", of=None):
        kind = f"memref<{'x'.join(map(str, shape))}x{dtype}>"
        memory = of or self.memory()
        view = self.say(f"memref.view {memory}[{self.zero}][] : memref<?xi8> to {kind}")
        return view, kind

    # -- work -----------------------------------------------------------------

    def fill(self, tile):
        self.lines.append(f"commir.fill {tile[0]} with 0.0 : {tile[1]}")

    def copy(self, source, target):
        self.lines.append(
            f"commir.copy {source[0]} to {target[0]} : {source[1]} to {target[1]}"
        )

    def accumulate(self, source, target):
        self.lines.append(
            f"commir.accumulate {source[0]} to {target[0]} : {source[1]} to {target[1]}"
        )

    def launch(self, kernel, inputs, outputs, overwrite=True, mask=None, at=(0, 0)):
        def operands(tiles):
            names, kinds = (", ".join(each) for each in zip(*tiles, strict=True))
            return f"({names} : {kinds})"

        first = [*map(self.constant, at), self.zero, self.zero]
        at = ", ".join(first) if kernel.startswith("attention") else ""
        hides = f"mask({mask}) " if mask else ""
        flags = ", ".join([str(overwrite).lower()] * len(outputs))
        self.lines.append(
            f'commir.launch "{kernel}" ins{operands(inputs)} outs{operands(outputs)} at({at}) '
            f"{hides}{{overwrite = array<i1: {flags}>}}"
        )

    # -- transfers ------------------------------------------------------------

    def exchange(self, tile, target, to, sender, when=None):
        return self.say(
            f"commir.exchange.start {tile[0]} to {to}, {target[0]} from {sender} on "
            f'"{self.level}" when {when or self.true} : {tile[1]}, {target[1]}'
        )

    def all_gather(self, tile, target, length):
        table = self.say(f"memref.alloca() : memref<{self.size}xi64>")
        value = self.say(f"arith.constant {length} : i64")
        for member in range(self.size):
            self.lines.append(
                f"memref.store {value}, {table}[{self.constant(member)}] : "
                f"memref<{self.size}xi64>"
            )
        return self.say(
            f"commir.all_gather.start {tile[0]} into {target[0]} bytes {table} : "
            f'memref<{self.size}xi64> on "{self.level}" : {tile[1]}, {target[1]}'
        )

    def broadcast(self, tile, root, levels=None):
        group = ", ".join(f'"{level}"' for level in levels or [self.level])
        return self.say(
            f"commir.broadcast.start {tile[0]} into {tile[0]} of {self.constant(root)} on "
            f"[{group}] when {self.true} : {tile[1]}, {tile[1]}"
        )

    def lease(self, memory):
        return self.say(f'commir.lease.open {memory} on "{self.level}" : memref<?xi8>')

    def pull(self, lease, peer, tile, when=None):
        memory = self.say(f"commir.lease.memory {lease} of {peer} : memref<?xi8>")
        there = self.say(f"memref.view {memory}[{self.zero}][] : memref<?xi8> to {tile[1]}")
        return self.say(
            f"commir.pull.start {there} into {tile[0]} of {lease} from {peer} when "
            f"{when or self.true} : {tile[1]}, {tile[1]}"
        )

    def close(self, lease):
        self.lines.append(f"commir.lease.close {lease}")

    def wait(self, *tokens):
        self.lines += [f"commir.wait {token}" for token in tokens]

    # -- the result -----------------------------------------------------------

    def text(self):
        levels = ", ".join(f"{name} = {size}" for name, size in self.mesh.levels)
        body = "\n    ".join([*self.lines, "%s = commir.status", "return %s : i32"])
        return (
            f"commir.mesh @mesh({levels})\n"
            "func.func @plan(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes "
            f"{{commir.mesh = @mesh, commir.local_bytes = 0 : i64}} {{\n    {body}\n}}\n"
        )

    def simulate(self, topology):
        with ir.Context():
            module = ir.Module.parse(self.text())
        machine = load(topology) if isinstance(topology, str) else topology
        return simulate_module(module, self.mesh, machine)
