"""A topology from measurements of a machine whose laws are known."""

import itertools
import random
from dataclasses import replace

import pytest
from mercury.bench.errors import BenchError
from mercury.bench.kernels import KernelPoint, kernel_table
from mercury.bench.links import LinkPoint, link_table
from mercury.bench.moves import moved_bytes, plan_that_moves
from mercury.bench.probe import Facts, kernel_curve, topology_of
from mercury.bench.unimodal import unimodal
from mercury.topology import TopologyError, Work, dump, load, presets, write

MIB = 1 << 20
FACTS = Facts(
    name="mine",
    device="a GPU",
    memory=80 << 30,
    units=4,
    levels={"gpu": 2},
    source='measured "here"',
)


def point(kernel, work, seconds, spread=0.0):
    ms = 1000 * seconds
    return KernelPoint(
        kernel=kernel,
        shape=str(work.rows),
        work=work,
        ms=ms,
        low=ms * (1 - spread),
        high=ms * (1 + spread),
    )


def kernels(*, overhead=20e-6, launch=2e-6, rate=1e12, edge=512):
    """A machine of 4 units and blocks of 128 x 256, at a known rate."""
    points = [point("launch", Work(flops=1, rows=1), launch)]
    points += [
        point("copy", Work(flops=2 * size, rows=size), 2 * size / bandwidth)
        for size, bandwidth in ((16 * MIB, 9e12), (256 * MIB, 4e12), (2048 * MIB, 3e12))
    ]
    for kernel, columns in (("matmul", 256), ("attention_fwd", 1)):
        points.append(point(kernel, Work(flops=1e3, rows=1), overhead + launch))
        for blocks in (4, 8, 64, 6):  # of 6 blocks the second wave is half empty
            rows = 128 * blocks
            work = Work(flops=1e9 * blocks, rows=rows, columns=columns)
            waves = -(-blocks // 4) * 4
            points.append(point(kernel, work, overhead + 1e9 * waves / rate))
    for keys in (512, 4096):
        work = Work(flops=4e9, rows=128 * 8, edge=4e9 / keys, hidden=4e10)
        points.append(point("attention_fwd", work, overhead + (4e9 + edge * work.edge) / rate))
    return points


def links(*, latency=5e-6, rate=2e11, alone=1.0):
    points = []
    for transport, slower in (("p2p", 1), ("all_gather", 2), ("all_to_all", 3), ("pull", 0.5)):
        for mib in (1 / 1024, 1.0, 64.0):
            ms = 1000 * slower * (latency + mib * MIB / rate)
            points.append(
                LinkPoint(
                    level="gpu",
                    transport=transport,
                    ranks="all",
                    mib=mib,
                    ms=ms,
                    low=0.5 * ms if mib < 1 else 0.96 * ms,
                    high=ms,
                    gb_per_s=mib * MIB / ms / 1e6,
                )
            )
    pull = points[-1]
    return [*points, replace(pull, ranks="0<-1", ms=pull.ms / alone)]


def test_a_kernel_curve_gives_the_measured_times_back():
    points = [p for p in kernels() if p.kernel == "matmul"]
    curve = kernel_curve(points, (128, 256), 4, 2e-6)
    assert curve.overhead == pytest.approx(20e-6)
    for each in points[1:]:
        assert curve.seconds(each.work) == pytest.approx(each.ms / 1000, rel=0.01)
    assert curve.error == 0.03
    noisy = [replace(each, high=1.2 * each.ms) for each in points]
    assert kernel_curve(noisy, (128, 256), 4, 2e-6).error == pytest.approx(0.2)


def test_shapes_make_no_dents_in_a_curve():
    """A shape that is slow for its flops must not make launches of as much work look slow."""
    points = [p for p in kernels() if p.kernel == "matmul"]
    slow = [
        replace(each, ms=1.3 * each.ms) if each.work.flops == 8e9 else each for each in points
    ]
    curve = kernel_curve(slow, (128, 256), 4, 2e-6)
    rates = [rate for _, rate in curve.points]
    assert rates == sorted(rates, reverse=True)
    assert curve.error > 0.1


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_unimodal_numbers(seed):
    draw = random.Random(seed)
    values = [draw.choice([1.0, 2.0, 3.0]) for _ in range(5)]

    def off(made):
        return sum((x - y) ** 2 for x, y in zip(made, values, strict=True))

    found = unimodal(values)
    peak = found.index(max(found))
    assert found[: peak + 1] == sorted(found[: peak + 1])
    assert found[peak:] == sorted(found[peak:], reverse=True)
    # No other is nearer, of all whose values are thirds.
    grid = [n / 3 for n in range(3, 10)]
    for made in itertools.product(grid, repeat=5):
        top = made.index(max(made))
        rises, falls = list(made[: top + 1]), list(made[top:])
        if rises == sorted(rises) and falls == sorted(falls, reverse=True):
            assert off(found) <= off(made) + 1e-9


@pytest.mark.parametrize("edge", [0, 512, 2520])
def test_a_mask_costs_as_many_keys_of_short_rows_as_of_long_ones(edge):
    points = [p for p in kernels(edge=edge) if p.kernel == "attention_fwd"]
    curve = kernel_curve(points, (128, 0), 4, 2e-6)
    assert curve.edge == pytest.approx(edge, rel=0.01, abs=1)
    assert curve.masked == pytest.approx(2520 / (2520 + edge), rel=0.01)
    for each in points:
        if each.work.edge:
            assert curve.seconds(each.work) == pytest.approx(each.ms / 1000, rel=0.01)


def test_a_probed_topology_reads_back(tmp_path):
    made = topology_of(FACTS, kernels(), links())
    path = tmp_path / "mine.toml"
    write(made, path)
    read = load(path)
    assert (read.name, read.size, read.machine.memory) == ("mine", 2, 80 << 30)
    assert read.machine.copy_rate == pytest.approx(4e12)
    assert read.machine.launch == pytest.approx(2e-6)
    link = read.links[0]
    assert link.capabilities == {"peer-access", "copy-engine"}
    # The slowest collective stands for all, and each curve gives the measured times.
    for transport, slower in (("p2p", 1), ("collective", 3), ("pull", 0.5)):
        for mib in (1.0, 64.0):
            expected = slower * (5e-6 + mib * MIB / 2e11)
            assert link.curve(transport).seconds(mib * MIB) == pytest.approx(expected, rel=1e-3)
    assert link.error == pytest.approx(0.04)
    assert "push" not in link.transports
    assert 'measured "here"' in read.sources[0]
    assert read.machine.kernel("matmul").library == "cublas"


def test_moves_and_what_messages_take_of_kernels_are_written(tmp_path):
    launch = 2e-6
    moves = [
        point("move softmax_merge_all", Work(flops=size, rows=1), size / rate + 2 * launch)
        for size, rate in ((1e9, 2e12), (1e8, 1e12), (1e7, 9e12))  # the last beats memory
    ]
    made = topology_of(
        FACTS, kernels(launch=launch) + moves, links(), {"gpu": {"p2p": 0.7, "collective": 0.2}}
    )
    assert "softmax_merge_all" in kernel_table(moves)
    write(made, tmp_path / "mine.toml")
    read = load(tmp_path / "mine.toml")
    assert list(read.machine.moves) == ["softmax_merge_all"]
    expected = [(1e8, 1e12), (1e9, 2e12)]
    for got, wanted in zip(read.machine.moves["softmax_merge_all"], expected, strict=True):
        assert got == pytest.approx(wanted, rel=1e-3)
    link = read.links[0]
    assert (link.curve("p2p").slowdown, link.curve("collective").slowdown) == (0.7, 0.2)
    assert link.curve("pull").slowdown == 0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # Two parts of 2 bytes and their sums are read, one and its sums are written.
        ("softmax_merge_all", 64 * 32 * (128 * (2 * 2 + 2) + 3 * 4)),
        # Two sums of 4 bytes are read, one of 2 is written.
        ("sum_all", 64 * 32 * 128 * (2 * 4 + 2)),
        # A sum of 4 bytes becomes one of 2.
        ("copy", 64 * 32 * 128 * (4 + 2)),
    ],
)
def test_the_plans_that_moves_are_measured_by_do_nothing_else(kind, expected):
    assert moved_bytes(plan_that_moves(kind, 1, 64)) == {kind: expected}
    assert moved_bytes(plan_that_moves("", 1, 64)) == {}


def test_a_pair_that_is_faster_alone_shares_its_link():
    assert topology_of(FACTS, kernels(), links(alone=1.0)).links[0].duplex
    assert not topology_of(FACTS, kernels(), links(alone=2.0)).links[0].duplex


def test_one_gpu_has_a_topology_without_peers(tmp_path):
    made = topology_of(replace(FACTS, levels={}), kernels(), [])
    write(made, tmp_path / "one.toml")
    assert load(tmp_path / "one.toml").size == 1
    assert "one rank" in made.sources[1]


def test_what_was_not_measured_is_named():
    with pytest.raises(BenchError, match="no 'copy' was measured"):
        topology_of(FACTS, kernels()[:1], links())
    only = [each for each in links() if each.transport == "pull"]
    with pytest.raises(BenchError, match="no measurement of collective, p2p"):
        topology_of(FACTS, kernels(), only)


@pytest.mark.parametrize("preset", presets())
def test_presets_survive_being_written(preset, tmp_path):
    found = load(f"{preset}-8x2")
    path = tmp_path / "again.toml"
    path.write_text(dump(found), encoding="utf-8")
    assert load(path).fingerprint() == found.fingerprint()
    with pytest.raises(TopologyError, match="cannot be written"):
        write(found, tmp_path / "none" / "x.toml")


def test_tables_show_rates_and_pairs():
    printed = link_table(links())
    assert "| gpu, MiB | p2p | all_gather | all_to_all | pull |" in printed
    assert "| 64 | 197.1 (341 us) |" in printed
    assert "gpu pull 0<-1 alone, 64 MiB" in printed
    table = kernel_table(kernels())
    assert "| copy | 268435456 |" in table
    assert "4,000 GB/s" in table
