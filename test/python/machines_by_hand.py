"""Machines whose times are round numbers, for tests of the simulator."""

from dataclasses import replace

from mercury.topology import Curve, KernelCurve, Link, Machine, Topology

MB, GB = 10**6, 10**9
SMALL = {
    "matmul": {"m": 18, "n": 18, "depth": 18},
    "attention": {"h": 6, "sq": 24, "sk": 24, "d": 4},
    "decode_attention": {"h": 6, "sk": 24, "d": 4},
}


def link(name, size, *, latency=0.0, slowdown=0.0, rate=10 * GB, **settings):
    """A link whose messages take a second for `rate` bytes."""
    curve = Curve(latency=latency, points=((1, rate),), slowdown=slowdown)
    pulled = replace(curve, slowdown=0.0)
    transports = {"p2p": curve, "collective": curve, "pull": pulled}
    return Link(name=name, size=size, transports=transports, **settings)


def machine(*links, launch=0.0, join=0.0, message_lanes="one", moves=None, **kernels):
    """Kernels do a flop in a nanosecond, memory a byte."""
    curves = {"*": KernelCurve(points=((1, 1e9),)), **kernels}
    rank = Machine(
        name="test",
        memory=GB,
        copy_rate=1e9,
        launch=launch,
        kernels=curves,
        join=join,
        message_lanes=message_lanes,
        moves=moves or {},
    )
    return Topology(name="test", machine=rank, links=links)


def busy_tile(plan, seconds):
    """A tile whose fill takes so long."""
    return plan.tile(round(seconds * 1e9), dtype="i8") if seconds else None


def matmul(plan, seconds):
    """Launch a product of so many seconds: 2 m k n flops of a nanosecond."""
    k = round(seconds * 1e9 / 2)
    plan.launch("matmul", [plan.tile(1, k), plan.tile(k, 1)], [plan.tile(1, 1)])
