"""What a plan says it does: events, the table, the trace, and who owns which documents."""

import itertools
import json
import pathlib
import re
from collections import Counter

import mercury as mc
import numpy as np
import pytest
from mercury.cli.plan_table import rows
from mercury.runtime.events import traffic
from mercury.runtime.timeline import Timeline, to_chrome, work
from mercury.runtime.trial import trial
from test_cli import mercury

ATTENTION = {"h": 6, "sq": 33, "sk": 27, "d": 4, "dtype": "f32"}
PROGRAMS = {
    "attention": lambda **more: mc.programs.attention(**{**ATTENTION, **more}),
    "decode_attention": lambda: mc.programs.decode_attention(h=6, sk=27, d=4, dtype="f32"),
    "matmul": lambda: mc.programs.matmul(m=13, n=12, depth=7, dtype="f32"),
}
STRATEGIES = ["ring", "double-ring", "ulysses", "async-tp", "tree"]
MESHES = ["gpu=3", "node=2,gpu=2"]
OTHERS = sorted(set(mc.strategies.names()) - set(STRATEGIES))


def compile_plan(strategy, mesh, **more):
    method = mc.strategies.get(strategy)
    program = PROGRAMS[method.program.name](**more)
    return method.schedule(mc.Mesh.parse(mesh), program).compile()


def table(plan):
    own = {rank: plan.events(rank) for rank in range(plan.mesh.size)}
    return {row.step: row.cells for row in rows(plan, own)}


@pytest.mark.parametrize(
    ("strategy", "mesh"),
    [
        *itertools.product(STRATEGIES, MESHES),
        *itertools.product(OTHERS, ["node=2,gpu=3"]),
    ],
)
def test_totals_are_those_of_a_run(strategy, mesh):
    plan = compile_plan(strategy, mesh)
    report = trial(plan).report
    found = traffic(plan.mesh, plan.events())
    assert {level: moved.bytes for level, moved in found.items()} == report.bytes_sent
    assert {level: moved.messages for level, moved in found.items()} == report.messages
    assert any(report.messages.values()) == (strategy != "column-parallel")


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_trace_is_what_perfetto_reads(strategy, mesh):
    plan = compile_plan(strategy, mesh)
    events = plan.events()
    trace = json.loads(json.dumps(to_chrome(plan.mesh, events)))
    assert "nominal" in trace["otherData"]["times"]
    slices, flows, names, tracks = {}, {"s": {}, "f": {}}, set(), set()
    for event in trace["traceEvents"]:
        assert {"ph", "ts", "pid", "tid", "name"} <= set(event)
        assert event["pid"] in range(plan.mesh.size)
        match event["ph"]:
            case "X":
                assert event["dur"] > 0
                slices.setdefault((event["pid"], event["tid"]), []).append(event)
            case "s" | "f":
                assert event["id"] not in flows[event["ph"]], "an arrow has two ends"
                flows[event["ph"]][event["id"]] = event
            case "M":
                names.add((event["name"], event["pid"], event["tid"]))
                if event["name"] == "thread_name":
                    tracks.add(event["args"]["name"].split(" (")[0])
            case other:
                pytest.fail(f"no phase of ours: {other}")
    for (rank, thread), found in slices.items():
        assert ("thread_name", rank, thread) in names
        ordered = sorted((event["ts"], event["ts"] + event["dur"]) for event in found)
        assert all(one[1] <= two[0] + 1e-9 for one, two in itertools.pairwise(ordered)), (
            "side by side"
        )
    assert {rank for _, rank, _ in names} == set(range(plan.mesh.size))
    assert flows["s"].keys() == flows["f"].keys()
    moved = traffic(plan.mesh, events)
    assert len(flows["s"]) == sum(level.messages for level in moved.values())
    assert tracks == {"compute", *(name for name, level in moved.items() if level.bytes)}
    by_level = Counter()
    for number, start in flows["s"].items():
        finish = flows["f"][number]
        assert start["pid"] != finish["pid"]
        assert start["ts"] <= finish["ts"]
        assert finish["bp"] == "e"
        by_level[start["cat"]] += start["args"]["bytes"]
        for end in (start, finish):
            assert any(
                event["ts"] <= end["ts"] < event["ts"] + event["dur"]
                for event in slices[end["pid"], end["tid"]]
            ), "an arrow ends in a slice"
    assert by_level == {name: level.bytes for name, level in moved.items() if level.bytes}


def test_compute_takes_its_multiply_accumulates():
    plan = compile_plan("ring", "gpu=3")
    done = sum(work(event) for event in plan.events() if event.kind == "launch")
    pairs = ATTENTION["sq"] * ATTENTION["sk"] * ATTENTION["h"]
    assert done == pairs * 2 * ATTENTION["d"]
    timeline = Timeline(plan.mesh, plan.events())
    launched = [s for s in timeline.slices if s.event.kind == "launch"]
    assert sum(part.end - part.begin for part in launched) == done
    plan = compile_plan("async-tp", "gpu=3")
    assert sum(work(e) for e in plan.events() if e.kind == "launch") == 13 * 12 * 7


def test_a_ring_receives_from_the_next_rank_and_waits():
    cells = table(compile_plan("ring", "gpu=3"))
    assert cells["0"][1] == (
        "send K[sk 9:18], V[sk 9:18] -> 0, receive K, V <- 2",
        "attention_fwd Q[sq 11:22] x K[sk 9:18] x V[sk 9:18]",
        "wait K, V",
    )
    # The last round sends nothing on.
    assert cells["2"][1] == ("attention_fwd Q[sq 11:22] x K[sk 0:9] x V[sk 0:9]",)
    # The first step writes the results: nothing fills them.
    assert "start" not in cells


def test_what_a_causal_mask_hides_is_named():
    cells = table(compile_plan("ring", "gpu=3", mask="causal", sq=27))
    masked = {
        (step, rank)
        for step, row in cells.items()
        for rank, lines in enumerate(row)
        if any("(masked)" in line for line in lines)
    }
    # Rank 0 sees only its own keys, rank 1 none of rank 2.
    assert masked == {("1", 0), ("2", 0), ("1", 1)}


def test_ulysses_puts_its_heads_together():
    plan = compile_plan("ulysses", "gpu=3")
    launched = [event for event in plan.events() if event.kind == "launch"]
    for event in launched:
        heads = (2 * event.rank, 2 * event.rank + 2)
        for box, extent in zip(event.inputs, (33, 27, 27), strict=True):
            assert box.parts == (((0, 1),), ((0, extent),), (heads,), ((0, 4),))
    assert len(launched) == 3


def test_what_is_gathered_is_known_by_its_slots():
    plan = compile_plan("context-parallel", "gpu=3")
    launched = [event for event in plan.events() if event.kind == "launch"]
    assert [event.inputs[1].parts[1] for event in launched] == [((0, 27),)] * 3


def test_steps_are_named_by_their_loops():
    assert list(table(compile_plan("double-ring", "node=2,gpu=2"))) == [
        *("0 start", "0.0", "0.1", "0 end", "1.0", "1.1")
    ]


def test_what_a_rank_received_is_known_from_what_was_sent():
    plan = compile_plan("ring", "gpu=3")
    seen = [event.inputs[1].parts[1] for event in plan.events(1) if event.kind == "launch"]
    assert seen == [((9, 18),), ((18, 27),), ((0, 9),)]


def test_a_double_ring_sends_on_both_levels():
    cells = table(compile_plan("double-ring", "node=2,gpu=2"))
    assert any("-> 2" in line for line in cells["0 start"][0]), cells
    assert any("-> 1" in line for line in cells["0.0"][0]), cells
    assert not any("-> 2" in line for line in cells["0.0"][0]), cells


def test_async_tp_pulls_from_the_owner():
    plan = compile_plan("async-tp", "gpu=3")
    pulls = [event for event in plan.events(0) if event.kind == "pull" and event.happens]
    assert {event.sender for event in pulls} == {1, 2}
    for event in pulls:
        assert event.inputs[0].memory == event.inputs[0].holds == "A"
        assert event.inputs[0].owner == event.sender
        assert event.outputs[0].memory == "local arena"
        assert event.outputs[0].holds == "A"
    lines = [line for row in table(plan).values() for line in row[0]]
    assert lines[0].startswith("open A")
    assert "close A" in lines
    pulled = [line for line in lines if line.startswith("pull A[i ")]
    # The rows of ranks 1 and 2, each once.
    spans = [line.split("[i ")[1].split("]")[0].split(":") for line in pulled]
    rows_of = sorted(row for low, high in spans for row in range(int(low), int(high)))
    own = plan.layout("A").positions(0, "i").tolist()
    assert rows_of == [row for row in range(13) if row not in own]


def test_events_tell_where_they_come_from():
    plan = compile_plan("ring", "gpu=3")
    launch = next(event for event in plan.events(2) if event.kind == "launch")
    assert launch.rank == 2
    assert launch.kernel == "attention_fwd"
    assert launch.inputs[0].parts == (((0, 1),), ((22, 33),), ((0, 6),), ((0, 4),))
    # The line that built the program.
    assert launch.source.rpartition(":")[0] == __file__
    assert [box.holds for box in launch.inputs] == ["Q", "K", "V"]
    assert [box.holds for box in launch.outputs] == ["O", "LSE"]
    start = next(event for event in plan.events(2) if event.kind == "exchange")
    assert start.to_json(plan.mesh)["to"] == {"rank": 1, "coordinates": {"gpu": 1}}
    assert start.inputs[0].bytes == 9 * 6 * 4 * 4
    with pytest.raises(mc.RunError, match="ranks 0 to 2, got 3"):
        plan.events(3)


RING = ("explain", "attention", "--strategy", "ring", "--mesh", "gpu=5")


def test_explain_prints_schedule_places_steps_and_totals(tmp_path):
    printed = mercury(
        *RING, "--set", "sq=50,sk=50,h=2,d=8", "--trace", str(tmp_path / "trace.json")
    )
    assert "schedule    parallelize(sq, gpu); shift(sk, by=sq)" in printed
    assert "K and V rotate along sk over gpu" in printed
    assert "sk -> gpu" in printed
    assert "bytes a rank, 0 of them symmetric; shards of the buffers:" in printed
    assert "send K[sk 0:10], V[sk 0:10] -> 4" in printed
    assert "5 ranks in all; --ranks names those to show" in printed
    sent = 2 * 50 * 2 * 8 * 4 * 4
    assert f"gpu         {sent:,} bytes in 40 messages" in printed
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert {event["pid"] for event in trace["traceEvents"]} == set(range(5))


def test_the_excerpt_in_the_readme_is_what_is_printed():
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
    command = re.search(r"^    mercury (explain .*)$", readme, re.MULTILINE)[1]
    excerpt = readme.split(command)[1].split("\n`--trace")[0].strip().splitlines()
    printed = [re.sub(" +", " ", line) for line in mercury(*command.split()).splitlines()]
    for line in excerpt:
        assert line.strip() == "..." or re.sub(" +", " ", line.strip()) in printed


def test_explain_takes_a_schedule_from_a_file(tmp_path):
    (tmp_path / "ring.txt").write_text("parallelize(i, gpu); shift(k, by=i)")
    printed = mercury(
        *("explain", "matmul", "--schedule", str(tmp_path / "ring.txt"), "--mesh", "gpu=2"),
        *("--set", "m=4,n=4,depth=6"),
    )
    assert "send B[k 0:3] -> 1, receive B <- 1" in printed
    assert "gpu         96 bytes in 2 messages" in printed


def test_explain_tells_who_broadcasts_and_who_receives():
    printed = mercury(
        *("explain", "matmul", "--strategy", "summa", "--mesh", "row=2,col=2", "--ranks", "0"),
        *("--set", "m=4,n=4,depth=4"),
    )
    assert "A is broadcast panel by panel, under the work, over col" in printed
    words = " ".join(re.sub("[│┃]", " ", printed).split())
    start, first = "broadcast A[i 0:2, k 0:2] over col", "receive A <- 1, receive B <- 2"
    assert f"start {start}, broadcast B[k 0:2, j 0:2] over row wait A, B" in words
    assert f"0 {first} matmul A[i 0:2, k 0:2] x B[k 0:2, j 0:2] wait A, B" in words
    assert "1 matmul A[i 0:2, k 2:4] x B[k 2:4, j 0:2]" in words
    assert "col 64 bytes in 4 messages" in words


def test_explain_shows_the_ranks_asked_for_and_speaks_json():
    printed = mercury(*RING, "--ranks", "4,1")
    assert "rank 4" in printed
    assert "rank 0" not in printed
    said = json.loads(mercury(*RING, "--ranks", "4", "--json", "--set", "sq=50,sk=50,h=2,d=8"))
    assert said["traffic"]["gpu"]["messages"] == 40
    assert {event["rank"] for event in said["events"]} == {4}
    assert said["buffers"][1]["outside"] == [
        {"axis": "sk", "factors": ["gpu"], "layout": said["buffers"][1]["outside"][0]["layout"]}
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["explain", "attention"], 2, "give one of --strategy, --schedule and --recipe"),
        ([*RING, "--ranks", "5"], 1, "the mesh has ranks 0 to 4, --ranks names 5"),
        ([*RING, "--ranks", "0-3"], 2, "expected --ranks such as 0,3, got '0-3'"),
        ([*RING, "--trace", "no/such/folder/t.json"], 2, "there is no folder 'no/such/folder'"),
        (["explain", "attend", "--strategy", "ring"], 1, "no program 'attend'"),
    ],
)
def test_bad_options_say_what_is_wrong(arguments, code, message):
    printed = mercury(*arguments, code=code)
    assert message in printed
    assert "Traceback" not in printed


DOCUMENTS = (0, 3, 11, 24)


def packed(layout, ranks):
    program = mc.programs.attention(
        h=2,
        sq=24,
        sk=24,
        d=4,
        dtype="f32",
        mask=mc.causal().packed(DOCUMENTS),
        layout={"sq": layout, "sk": layout},
    )
    return mc.strategies.get("ring").schedule(mc.Mesh(gpu=ranks), program).compile()


@pytest.mark.parametrize("ranks", [1, 3, 4, 5])
@pytest.mark.parametrize("layout", ["block", "zigzag", "striped(2)"])
def test_documents_of_a_rank_are_cut_where_its_positions_change_document(layout, ranks):
    plan = packed(layout, ranks)
    for name, axis in (("Q", "sq"), ("K", "sk"), ("O", "sq"), ("LSE", "sq")):
        found = plan.layout(name)
        for rank in range(ranks):
            held = found.positions(rank, axis).tolist()
            own = [sum(x >= start for start in DOCUMENTS[:-1]) for x in held]
            want = [0]
            for document in sorted(set(own)):
                want.append(want[-1] + own.count(document))
            assert found.documents(rank).tolist() == want
            assert found.documents(rank, axis).tolist() == want


def test_zigzag_joins_the_two_parts_of_a_document():
    layout = packed("zigzag", 2).layout("Q")
    # Rank 0 holds 0..5 and 18..23, rank 1 holds 6..17.
    assert layout.documents(0).tolist() == [0, 3, 6, 12]
    assert layout.documents(1).tolist() == [0, 5, 12]


def test_documents_need_a_mask_and_an_axis_that_has_them():
    plan = compile_plan("ring", "gpu=3")
    with pytest.raises(mc.RunError, match="no masks of packed documents"):
        plan.layout("Q").documents(0)
    with pytest.raises(mc.RunError, match="has no axis 'sk'"):
        packed("block", 3).layout("Q").documents(0, "sk")


@pytest.mark.parametrize("layout", ["block", "zigzag", "striped(2)"])
def test_a_layout_says_who_owns_what(layout):
    found = packed(layout, 3).layout("Q")
    whole = np.arange(24)
    order = found.permutation("sq")
    shards = [found.positions(rank, "sq") for rank in range(3)]
    np.testing.assert_array_equal(whole[order], np.concatenate(shards))
    np.testing.assert_array_equal(whole[order][found.inverse("sq")], whole)
    for rank, held in enumerate(shards):
        np.testing.assert_array_equal(found.indices(rank)[1], held)
