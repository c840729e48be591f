"""Topologies: curves, files and their errors, presets, and the mesh on them."""

import math
import re
from dataclasses import replace
from pathlib import Path

import mercury as mc
import pytest
from click.testing import CliRunner
from mercury.cli.topology import topology as command
from mercury.topology import Curve, KernelCurve, TopologyError, Work, load, presets
from mercury.topology.write import dump

MIB = 1 << 20
SMALL = """
schema = 1
name = "small"
[machine]
name = "a GPU"
memory_gib = 40.0
copy_gb_per_s = 1000.0
launch_us = 4.0
[machine.kernels."*"]
tflops = [[1.0, 10.0]]
[[levels]]
name = "gpu"
size = 4
latency_us = 10.0
transports.p2p.curve = [[1.0, 10.0], [256.0, 200.0]]
transports.collective.curve = [[1.0, 8.0]]
"""


def write(tmp_path, text):
    path = tmp_path / "machine.toml"
    path.write_text(text)
    return path


def test_a_curve_gives_the_measured_times_and_never_falls_with_size():
    curve = load("h200-2x1").links[-1].curve("p2p")
    for mib, rate in ((1, 7e9), (16, 101e9), (256, 261e9), (1024, 346e9)):
        assert curve.seconds(mib * MIB) == pytest.approx(mib * MIB / rate, rel=1e-12)
    times = [curve.seconds(size) for size in range(0, 2048 * MIB, 3 * MIB)]
    assert times == sorted(times)
    assert times[0] == pytest.approx(10e-6)
    # Beyond the last point the bandwidth stays.
    assert curve.bandwidth(4096 * MIB) == pytest.approx(346e9)


def test_half_the_bandwidth_is_twice_the_time_of_a_large_message():
    machine = load("h200-4x2")
    slow = machine.slower("node", 0.5)
    node, gpu = (link.curve("p2p") for link in machine.links)
    slow_node, slow_gpu = (link.curve("p2p") for link in slow.links)
    assert slow_node.seconds(1 << 30) == pytest.approx(2 * node.seconds(1 << 30))
    assert slow_gpu.seconds(1 << 30) == gpu.seconds(1 << 30)
    assert slow_node.latency == node.latency


def test_a_kernel_curve_counts_the_last_wave():
    curve = KernelCurve(points=((1e9, 1e12),), block=(128, 256), units=132, overhead=1e-5)
    full = Work(flops=1e12, rows=128 * 132, columns=256)
    over = Work(flops=1e12, rows=128 * 132 + 1, columns=256)
    assert curve.efficiency(full) == 1
    assert curve.efficiency(over) == pytest.approx(133 / 264)
    assert curve.seconds(over) - 1e-5 > 1.98 * (curve.seconds(full) - 1e-5)
    assert curve.seconds(Work(flops=0, rows=1)) == 0


@pytest.mark.parametrize(
    ("kernel", "work", "measured"),
    [
        # The floors of one rank of two, by one cuDNN or cuBLAS call, in ms: means of two runs.
        (
            "attention_fwd",
            Work(flops=2 * 32 * 2048 * 4096 * 128 * 2, rows=2048, batch=32),
            0.249,
        ),
        (
            "attention_fwd",
            Work(flops=2 * 32 * 8192 * 16384 * 128 * 2, rows=8192, batch=32),
            3.45,
        ),
        (
            "attention_fwd",
            Work(flops=2 * 32 * 32768 * 65536 * 128 * 2, rows=32768, batch=32),
            58.15,
        ),
        ("matmul", Work(flops=2 * 8192 * 8192 * 14336, rows=8192, columns=14336), 2.59),
        ("matmul", Work(flops=2 * 16384 * 8192 * 4096, rows=16384, columns=4096), 1.59),
        ("matmul", Work(flops=2 * 4096 * 4096 * 7168, rows=4096, columns=7168), 0.382),
    ],
)
def test_the_h200_kernels_are_within_their_stated_error(kernel, work, measured):
    curve = load("h200-2x1").machine.kernel(kernel)
    assert abs(1e3 * curve.seconds(work) / measured - 1) <= curve.error


def test_every_preset_has_every_mesh_of_the_paper_and_says_its_sources():
    assert presets() == ["a100", "h100", "h200", "l4"]
    for gpu in presets():
        for nodes, gpus in ((1, 4), (4, 1), (2, 4), (4, 2), (1, 8), (4, 4), (4, 8)):
            machine = load(f"{gpu}-{gpus}x{nodes}")
            assert machine.size == gpus * nodes
            assert machine.mesh.size == gpus * nodes
            assert len(machine.sources) >= 3
    assert load("h100-8x2").mesh == mc.Mesh(node=2, gpu=8)
    assert load("l4-4x1").machine.memory < 24e9 < load("a100-4x1").machine.memory
    # PCIe without peer access: what needs it is not offered.
    assert "peer-access" not in load("l4-4x1").links[-1].capabilities
    assert "pull" not in load("l4-4x1").links[-1].transports


@pytest.mark.parametrize(
    ("mesh", "links"),
    [
        (mc.Mesh(node=2, gpu=8), ["node", "gpu"]),
        (mc.Mesh(node=2, gpu0=2, gpu1=4), ["node", "gpu", "gpu"]),
        (mc.Mesh(gpu=16), ["node"]),
        (mc.Mesh(a=4, b=4), ["node", "gpu"]),
        (mc.Mesh(a=2, b=2, c=4), ["node", "gpu", "gpu"]),
        (mc.Mesh(gpu=4), ["gpu"]),
        (mc.Mesh(one=1, gpu=8), ["gpu", "gpu"]),
    ],
)
def test_levels_of_a_mesh_find_their_link(mesh, links):
    found = load("h100-8x2").links_of(mesh)
    assert list(found) == list(mesh.names)
    assert [link.name for link in found.values()] == links


def test_a_mesh_that_is_too_large_is_refused():
    with pytest.raises(TopologyError, match=r"32 ranks, topology 'h100-8x2' has 16.*Mesh\("):
        load("h100-8x2").links_of(mc.Mesh(gpu=32))


def test_a_file_reads(tmp_path):
    machine = load(write(tmp_path, SMALL))
    assert machine.name == "small"
    assert machine.mesh == mc.Mesh(gpu=4)
    assert machine.machine.memory == 40 << 30
    curve = machine.links[0].curve("p2p")
    assert curve == Curve(
        latency=1e-5, points=((1.0 * MIB, 10e9), (256.0 * MIB, 200e9)), slowdown=0.12
    )
    assert machine.machine.kernel("anything").rate(1) == 10e12


def test_what_a_file_does_not_say_has_its_default(tmp_path):
    machine = load(write(tmp_path, SMALL))
    assert (machine.machine.join, machine.machine.message_lanes) == (4e-6, "one")
    assert machine.links[0].signal == machine.links[0].curve("p2p").latency
    said = SMALL.replace(
        "launch_us = 4.0", 'launch_us = 4.0\njoin_us = 6.0\nmessage_lanes = "group"'
    )
    said = said.replace("latency_us = 10.0", "latency_us = 10.0\nsignal_us = 2.0")
    machine = load(write(tmp_path, said + "transports.p2p.slowdown = 0.25\n"))
    assert (machine.machine.join, machine.machine.message_lanes) == (6e-6, "group")
    assert machine.links[0].signal == 2e-6
    assert machine.links[0].curve("p2p").slowdown == 0.25


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "launch_us",
            'message_lanes = "two"\nlaunch_us',
            "must be one of one, group, got 'two'",
        ),
        (
            "transports.collective",
            "transports.p2p.slowdown = 1.5\ntransports.collective",
            "'levels.0..transports.p2p.slowdown' must be a number from 0 to 0.9, got 1.5",
        ),
        ("schema = 1", "schema = 2", r"'schema' must be 1, the schema.*, got 2"),
        ("schema = 1", "", "'schema' must be a whole number of the schema.*it is missing"),
        ('name = "small"', "name = 7", "'name' must be a text, got 7"),
        ("memory_gib = 40.0", 'memory_gib = "40"', "'machine.memory_gib' must be a number of"),
        ("memory_gib = 40.0", "memory_gib = -1", r"number of GiB from 0.001, got -1"),
        ("memory_gib", "memory_gb", "'machine.memory_gib' .* it is missing"),
        ('kernels."*"', "kernels.matmul", r"'machine.kernels' must be .*'\*' for those not"),
        ("[[1.0, 10.0]]", "[[1.0, 0.0]]", r"'machine.kernels.\*.tflops' must be a list"),
        ("size = 4", "size = 0", r"'levels\[0\].size' must be a whole number.*got 0"),
        ("size = 4", "size = true", r"'levels\[0\].size' must be a whole number.*got True"),
        (
            "size = 4",
            'size = 4\ndomain = "room"',
            "must be one of port, uplink, bus, got 'room'",
        ),
        (
            "size = 4",
            'size = 4\ncapabilities = ["warp"]',
            r"'levels\[0\].capabilities' must be a list of peer-access, .*got \['warp'\]",
        ),
        ("[256.0, 200.0]", "[0.5, 200.0]", r"p2p.curve' must be a list of \[MiB, GB/s\]"),
        ("collective", "pigeon", "of p2p, collective, pull, push, rma; see 'pigeon'"),
        ("transports.collective.curve = [[1.0, 8.0]]", "", "at least p2p and collective"),
        ("launch_us = 4.0", "launch_us = 4.0\nspeed = 1", "there is no key 'machine.speed'"),
        ("[[levels]]", "[[levels", "this is not TOML"),
        ("[[levels]]", "[levels]", r"'levels' must be a list of tables"),
    ],
)
def test_a_wrong_file_names_file_key_and_value(tmp_path, old, new, message):
    path = write(tmp_path, SMALL.replace(old, new))
    with pytest.raises(TopologyError, match=message) as caught:
        load(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize("name", ["v100-8x1", "h100", "h100-8", "h100-8x2x2", "nothing"])
def test_an_unknown_name_lists_the_presets(name):
    with pytest.raises(TopologyError, match=r"h100-8x2.*a100, h100, h200, l4"):
        load(name)
    with pytest.raises(TopologyError, match="at least one gpu"):
        load("h100-0x1")
    with pytest.raises(TopologyError, match="cannot be read"):
        load("missing.toml")


def test_the_fingerprint_follows_the_figures_alone():
    assert load("h100-8x2").fingerprint() == load("h100-8x2").fingerprint()
    others = {load(name).fingerprint() for name in ("h100-8x2", "h100-2x8", "h200-8x2")}
    assert len(others) == 3
    assert load("h100-8x2").slower("gpu", 0.5).fingerprint() not in others


def test_the_schema_page_is_true(tmp_path):
    page = (Path(mc.__file__).parent / "topology" / "README.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    machine = load(write(tmp_path, example))
    assert [(link.name, link.size) for link in machine.links] == [("node", 2), ("gpu", 4)]
    assert math.isclose(machine.machine.kernel("matmul").masked, 0.9)


def test_show_and_check_from_the_shell(tmp_path):
    run = CliRunner().invoke
    shown = run(command, ["show", "h200-8x4"]).output
    for part in ("32 x NVIDIA H200", "346.0", "multicast", "source: measured on 2 H200"):
        assert part in shown
    assert "right, 32 ranks (node = 4, gpu = 8)" in run(command, ["check", "h200-8x4"]).output
    path = write(tmp_path, SMALL.replace("size = 4", "size = -4"))
    failed = run(command, ["check", str(path)])
    assert failed.exit_code == 1
    assert "'levels[0].size' must be" in failed.output
    assert "a100" in run(command, ["list"]).output


@pytest.mark.parametrize("name", ["h200-4x2", "l4-2x4"])
def test_a_machine_that_was_written_reads_back(name, tmp_path):
    machine = load(name)
    machine = replace(machine, machine=replace(machine.machine, message_lanes="group"))
    again = load(write(tmp_path, dump(machine)))
    assert again.machine == machine.machine
    assert again.links == machine.links
