"""``mercury topology probe``: a machine's own topology, from measurements of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..implementations import ON_GPUS
from ..topology import Curve, KernelCurve, Link, Machine, Topology, load, write
from .beside import measure_slowdowns
from .cuda import Cuda
from .errors import BenchError
from .kernels import KernelPoint, kernel_table, measure_kernels
from .links import LinkPoint, levels_of, link_table, measure_links
from .moves import measure_moves
from .statistics import median
from .unimodal import unimodal

__all__ = ["Facts", "kernel_curve", "probe", "topology_of"]

_MIB = 1 << 20
# Libraries take smaller blocks for small products than the one of their fastest kernel.
_BLOCKS = {"matmul": (128, 64), "attention_fwd": (128, 0), "attention_bwd": (128, 0)}
_LEAST_ERROR = 0.03
_LEAST_MIB = 1.0
_ANY_TERA = 30.0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known about a machine without measuring.

    Attributes
    ----------
    name
        Of the topology.
    device
        Of the GPU.
    memory
        Of a GPU, in bytes.
    units
        Its multiprocessors.
    levels
        Group sizes by the name of the level, slowest first.
    source
        When and with what it was measured.
    """

    name: str
    device: str
    memory: int
    units: int
    levels: Mapping[str, int]
    source: str


def probe(
    file: Path, name: str, *, rounds: int = 9, tell: Callable[[str], None] = print
) -> None:
    """Measure the machine that this process runs on with its peers, and write its topology.

    Raises
    ------
    BenchError
        When there is no GPU, or something cannot be measured that a topology must have.
    """
    with Cuda() as on:
        kernels = measure_kernels(on, rounds=rounds) + measure_moves(on, rounds=rounds)
        links = measure_links(on, rounds=rounds) if on.size > 1 else []
        slowdowns = measure_slowdowns(on, rounds=rounds) if on.size > 1 else {}
        levels = {level: len(groups[0]) for level, groups in levels_of(on).items()}
        properties = on.torch.cuda.get_device_properties(on.device)
        versions = on.versions()
        if on.rank:
            return
        facts = Facts(
            name=name,
            device=on.name,
            memory=properties.total_memory,
            units=properties.multi_processor_count,
            levels=levels,
            source=f"measured by mercury topology probe on {on.size} ranks, "
            f"{datetime.date.today().isoformat()} "
            f"({', '.join(f'{key} {value}' for key, value in versions.items())})",
        )
        tell(kernel_table(kernels))
        tell(link_table(links))
        write(topology_of(facts, kernels, links, slowdowns), file)
        load(file)
        tell(f"{file}: written")


def topology_of(
    facts: Facts,
    kernels: Sequence[KernelPoint],
    links: Sequence[LinkPoint],
    slowdowns: Mapping[str, Mapping[str, float]] | None = None,
) -> Topology:
    """Make a topology of measurements.

    Parameters
    ----------
    facts
        Of the machine.
    kernels, links
        What was measured; a ``"move ..."`` gives a curve of ``moves``.
    slowdowns
        For each level and transport, what a kernel loses beside a message.

    Raises
    ------
    BenchError
        When something is missing that every topology has.
    """
    launch = _seconds(_only(kernels, "launch")[0])
    copies = _only(kernels, "copy")
    curves = {
        name: replace(
            kernel_curve(_only(kernels, name), _BLOCKS[name], facts.units, launch),
            library=ON_GPUS[name],
        )
        for name in _BLOCKS
        if any(point.kernel == name for point in kernels)
    }
    curves["*"] = KernelCurve(points=((1e9, _ANY_TERA * 1e12),), overhead=launch, error=0.5)
    # Small copies stay in the cache, the largest may be given to a copy engine.
    copy_rate = median([point.rate for point in copies])
    made = tuple(
        _link(
            level,
            size,
            [point for point in links if point.level == level],
            (slowdowns or {}).get(level, {}),
        )
        for level, size in facts.levels.items()
    )
    sources = [facts.source]
    if not made:
        # A topology has a link; that of a GPU alone is never used.
        own = Curve(latency=launch, points=((float(_MIB), copy_rate),))
        made = (Link(name="gpu", size=1, transports={"p2p": own, "collective": own}),)
        sources.append("gpu: there was one rank, the link stands for its own memory")
    return Topology(
        name=facts.name,
        machine=Machine(
            name=facts.device,
            memory=facts.memory,
            copy_rate=copy_rate,
            launch=launch,
            kernels=curves,
            moves=_moves(kernels, 2 * launch, copy_rate),
        ),
        links=made,
        sources=tuple(sources),
    )


_FASTEST_MOVE = 1.1  # of a copy, in which reads and writes are balanced


def _moves(
    points: Sequence[KernelPoint], overhead: float, copy_rate: float
) -> dict[str, tuple[tuple[float, float], ...]]:
    """Give the rate of each kind of move by its bytes, without what each launch costs.

    Faster than memory is a difference of times too short to tell apart, or a cache: such
    points are left out.
    """
    found: dict[str, dict[float, float]] = {}
    for point in points:
        kind, _, name = point.kernel.partition(" ")
        if kind == "move":
            rate = point.work.flops / max(_seconds(point) - overhead, 1e-9)
            if rate <= _FASTEST_MOVE * copy_rate:
                found.setdefault(name, {})[point.work.flops] = rate
    return {name: tuple(sorted(rates.items())) for name, rates in found.items()}


def _only(points: Iterable[KernelPoint], kernel: str) -> list[KernelPoint]:
    found = [point for point in points if point.kernel == kernel]
    if not found:
        raise BenchError(f"no '{kernel}' was measured, which every topology has")
    return found


def _seconds(point: KernelPoint) -> float:
    return point.ms / 1000


def kernel_curve(
    points: Sequence[KernelPoint], block: tuple[int, int], units: int, launch: float
) -> KernelCurve:
    """Fit a curve to launches of one kernel: overhead, rates of full waves, and its error.

    The smallest launch is all overhead. Where several shapes do the same work, the rate is
    their mean; with more work it rises to one peak and falls behind it, as clocks do under
    load. What shapes differ from that is the curve's error.
    """
    ordered = sorted(points, key=lambda point: point.work.flops)
    overhead = max(0.0, _seconds(ordered[0]) - launch)
    curve = KernelCurve(points=((1.0, 1.0),), block=block, units=units, overhead=overhead)
    whole = [point for point in ordered[1:] if not point.work.edge] or ordered
    rates: dict[float, list[float]] = {}
    for point in whole:
        busy = max(_seconds(point) - overhead, 1e-9)
        rate = point.work.flops / busy / curve.efficiency(point.work)
        # Shapes within a tenth of each other are one point of the curve.
        near = next((at for at in rates if abs(at / point.work.flops - 1) < 0.1), None)
        rates.setdefault(near or point.work.flops, []).append(rate)
    smooth = unimodal([sum(each) / len(each) for _, each in sorted(rates.items())])
    curve = replace(curve, points=tuple(zip(sorted(rates), smooth, strict=True)))
    if masked := [point for point in ordered if point.work.edge]:
        # Rows of many keys hardly show what the border costs: least squares of the whole time.
        costs = []
        for point in masked:
            unmasked = curve.seconds(replace(point.work, edge=0.0)) - overhead
            cost = (_seconds(point) - overhead) / unmasked - 1
            costs.append((point.work.edge / point.work.flops, cost))
        edge = sum(key * cost for key, cost in costs) / sum(key * key for key, _ in costs)
        curve = replace(curve, masked=1 / (1 + max(0.0, edge) / curve.masked_keys))
    off = [
        max(
            abs(curve.seconds(point.work) / _seconds(point) - 1),
            point.high / point.ms - 1,
            1 - point.low / point.ms,
        )
        for point in ordered[1:]
    ]
    return replace(curve, error=min(1.0, max([_LEAST_ERROR, *off])))


def _link(
    level: str, size: int, points: Sequence[LinkPoint], slowdowns: Mapping[str, float]
) -> Link:
    def curve(*names: str, slowdown: float = 0.0) -> Curve | None:
        chosen = [p for p in points if p.transport in names and p.ranks == "all"]
        if not chosen:
            return None
        sizes = sorted({point.mib for point in chosen})
        # Of several collectives the slowest: the curve stands for all of them.
        times = {
            mib: max(point.ms for point in chosen if point.mib == mib) / 1000 for mib in sizes
        }
        smallest = sizes[0]
        rising: list[tuple[float, float]] = []
        for mib in sizes[1:] or sizes:
            rising.append((mib * _MIB, mib * _MIB / times[mib]))
        return Curve(latency=times[smallest], points=tuple(rising), slowdown=slowdown)

    found = {
        "p2p": curve("p2p", slowdown=slowdowns.get("p2p", 0.0)),
        "collective": curve(
            "all_gather",
            "reduce_scatter",
            "all_to_all",
            slowdown=slowdowns.get("collective", 0.0),
        ),
        "pull": curve("pull"),
        "push": curve("push"),
    }
    transports = {name: each for name, each in found.items() if each is not None}
    if missing := {"p2p", "collective"} - set(transports):
        raise BenchError(
            f"level '{level}' has no measurement of {', '.join(sorted(missing))}, which every "
            "plan falls back to; mercury bench links says why"
        )
    return Link(
        name=level,
        size=size,
        transports=transports,
        domain="port",
        duplex=_duplex(points),
        capabilities=frozenset(
            (["peer-access", "copy-engine"] if "pull" in transports else [])
            + (["one-sided"] if "push" in transports else [])
        ),
        # The shortest messages vary by microseconds, which is much of them and nothing else.
        error=min(
            1.0,
            max([_LEAST_ERROR, *(_spread(p) for p in points if p.mib >= _LEAST_MIB)]),
        ),
    )


def _spread(point: LinkPoint) -> float:
    return max(point.high / point.ms - 1, 1 - point.low / point.ms)


def _duplex(points: Sequence[LinkPoint]) -> bool:
    """Whether a pair alone is no faster than all ranks both ways at once."""
    alone = [p for p in points if p.ranks != "all"]
    if not alone:
        return True
    beside = [p for p in points if p.ranks == "all" and p.transport == alone[0].transport]
    same = [p for p in beside if p.mib == alone[0].mib]
    return not same or same[0].ms < 1.5 * max(point.ms for point in alone)
