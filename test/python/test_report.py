"""The page of a search: it stands alone, and says what was found and how each figure came."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import mercury as mc
import pytest
from click.testing import CliRunner
from mercury.cli.tune import tune as command
from mercury.report import check, page, write
from mercury.report.html import Html, tag
from mercury.report.memory import blocks
from mercury.report.timeline import timeline
from mercury.simulator import Span
from mercury.tuner import SpaceOptions, Style, TuneError
from mercury.tuner.quantity import format_bytes, format_seconds

WHOLE = SpaceOptions(styles=(Style(),), max_levels=1)
TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}
VOID = {"meta", "br", "rect", "circle", "line"}


class Reader(HTMLParser):
    """Reads a page, and checks that what opens is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in VOID or not self.get_starttag_text().endswith("/>"):
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, text):
        if self.open and self.open[-1] != "style":
            self.texts.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, name):
        return [attributes for kind, attributes in self.elements if kind == name]


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def found():
    return mc.tune(
        mc.programs.attention(h=8, group=2, sq=32768, sk=32768, mask="causal"),
        mc.Mesh(gpu=4),
        topology="h100-4x1",
        boundary=TOKENS,
        options=WHOLE,
        cache=False,
    )


def simulate(schedule):
    return mc.simulate(schedule, "h100-4x1")


@pytest.fixture(scope="module")
def text(found):
    return page(found, simulate=simulate, checks=[check(found, found.chosen)])


def test_it_is_one_page_that_loads_and_runs_nothing(text):
    reader = read(text)
    assert text.startswith("<!doctype html>")
    assert reader.all("html") == [{"lang": "en"}]
    kinds = {name for name, _ in reader.elements}
    assert not kinds & {"script", "link", "img", "iframe", "object", "use", "image"}
    for _, attributes in reader.elements:
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    for wanted in ("prefers-color-scheme: dark", "@media print", "max-width: 48rem"):
        assert wanted in style


def test_links_lead_somewhere_and_names_are_given_once(text):
    reader = read(text)
    ids = [a["id"] for _, a in reader.elements if a.get("id")]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in reader.all("a")} <= set(ids)
    headings = [name for name, _ in reader.elements if re.fullmatch("h[1-6]", name)]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
    assert headings.count("h2") == 8


def test_it_contains_what_was_found(found, text):
    said = read(text).text
    for choice in found.plans:
        assert choice.recipe in said
        assert format_bytes(choice.peak_bytes) in said
        assert format_seconds(choice.costs.latency) in said
    for part in (
        f"The fastest plan that fits: {found.chosen.sentence}",
        "transform.commir.parallelize",
        f"{found.counts.seen:,} distinct schedules",
        f"Each rank has {format_bytes(found.chosen.peak_bytes)} of memory free.",
        "272 GB/s",
        "not measured",
        "as predicted",
        "right: error",
        "Arena of rank 0",
    ):
        assert part in said
    for reason in (*found.counts.refused, *found.counts.lacking):
        assert reason in said


def test_what_was_simulated_only_has_its_row_and_its_mark(found):
    left = replace(found.chosen, fingerprint="left", recipe="left()")
    text = page(replace(found, untried=(left,)), simulate=simulate)
    reader = read(text)
    number = len(found.plans) + 1
    assert f"{number}. Pareto set, simulated only" in reader.text
    assert f"plan-{number}" in {a.get("id") for _, a in reader.elements}
    assert any(a.get("href") == f"#plan-{number}" for a in reader.all("a"))
    assert "not run" in reader.text
    assert "not run" not in read(page(found, simulate=simulate)).text


def test_every_column_of_figures_says_how_they_came_about(text):
    for caption in ("Latency", "Exposed", "May be off by", "With half a link"):
        assert re.search(rf'{caption} <span class="badge predicted">predicted</span>', text)
    for caption in ("Latency", "On embedded ranks"):
        assert re.search(rf'{caption} <span class="badge measured">measured</span>', text)
    assert len(re.findall(r'exposed <span class="badge predicted">', text)) == 2


def test_pictures_have_names_tables_and_keys_to_reach_them(found, text):
    reader = read(text)
    for picture in reader.all("svg"):
        assert picture["aria-label"]
        assert picture["role"] in {"img", "group"}
    # A table stands for each timeline and the memory map; the plot's is the ranking.
    assert reader.text.count("The same as a table") == 3
    marks = [a for a in reader.all("a") if "aria-label" in a]
    assert len(marks) == len(found.plans)
    assert all(
        a["tabindex"] == "0"
        for a in reader.all("div")
        if "lane" in a.get("class", "").split() and "role" in a
    )
    # Spans of both plans are on one clock.
    bars = [
        float(a["width"]) + float(a["x"]) for a in reader.all("rect") if a.get("height") == "10"
    ]
    assert max(bars) <= 1001.5
    assert max(bars) > 999


def test_of_many_ranks_some_are_drawn_with_the_latest_of_them():
    spans = [
        Span(
            rank=rank,
            lane="compute",
            name="attention_fwd",
            kind="kernel",
            start_s=0.0,
            end_s=2.0 if rank == 13 else 1.0,
            bytes=0,
            step=0,
        )
        for rank in range(16)
    ]
    found = SimpleNamespace(spans=spans, time_s=2.0, exposed_s=0.0)
    reader = read(timeline("chosen", found, 4.0))
    labels = [a["aria-label"] for a in reader.all("svg")]
    assert [int(label.split()[1].rstrip(",")) for label in labels] == [*range(7), 13]
    assert "8 more ranks are not drawn." in reader.text
    assert reader.text.count("rank 15, compute") == 1  # the table has them all
    assert max(float(a["width"]) for a in reader.all("rect")) == 500.0


def test_a_search_that_measured_says_so(found):
    said = page(replace(found, measured=True))
    assert re.search(r"latency, measured</text>", said)
    assert "not predicted" in said
    assert "No timeline" in said


def test_plans_measured_on_the_machine_stand_beside_their_predictions(found):
    timed = [replace(each, measured_s=0.001 * n) for n, each in enumerate(found.plans, 1)]
    chosen, *others = timed
    said = page(
        replace(
            found,
            measured=True,
            chosen=chosen,
            runner_up=others[0],
            pareto=tuple(timed),
            plain=None,
        )
    )
    reader = read(said)
    assert "1.00 ms measured" in reader.text
    for choice in timed:
        assert format_seconds(choice.measured_s) in reader.text
        assert format_seconds(choice.costs.latency) in reader.text
    assert "not measured" not in reader.text
    assert "not predicted" not in reader.text
    # The plot compares all plans, so it stays with what was predicted for all.
    assert "latency, predicted" in said


def test_failed_candidates_are_listed_with_their_reasons(found):
    counts = replace(
        found.counts, failed={"tile(<b>)": "ValueError: no <curve>"}, too_large=7, pruned=3
    )
    said = page(replace(found, counts=counts))
    assert "ValueError: no &lt;curve&gt;" in said
    assert "tile(&lt;b&gt;)" in said
    assert "<curve>" not in said
    assert "surely slower" in said
    assert f"need more memory than {format_bytes(found.memory)}" in said


def test_memory_is_drawn_as_lives_that_do_not_touch_each_other(found):
    plan = found.schedule_of(
        next(each for each in found.plans if "shift" in each.recipe)
    ).compile()
    events = plan.events(rank=0)
    lives = blocks(events)
    assert {"K", "V"} <= {block.holds for block in lives}
    assert max(block.high for block in lives) <= plan.arena_bytes
    assert all(0 <= block.born <= block.dies < len(events) for block in lives)
    for one in lives:
        for other in lives:
            apart = one.high <= other.low or other.high <= one.low
            before = one.dies < other.born or other.dies < one.born
            assert one is other or apart or before or one.holds == other.holds


def test_a_launch_that_overwrites_begins_a_life_and_one_that_merges_goes_on():
    program = mc.programs.matmul(m=8, n=8, depth=8, dtype="f32")
    plan = mc.Schedule(program, mc.Mesh(gpu=2)).parallelize("k", "gpu").compile()
    launch = next(each for each in plan.events(rank=0) if each.kind == "launch")
    box = replace(launch.outputs[0], memory="arena", owner=0, offset=0)
    merging = replace(launch, outputs=(box,), overwrites=(False,))
    writing = replace(merging, overwrites=(True,))
    lives = blocks([writing, merging, writing, merging, merging])
    assert [(life.born, life.dies) for life in lives] == [(0, 1), (2, 4)]


def test_what_is_no_tag_is_escaped():
    assert tag("p", "<i>", Html("<b>x</b>"), None, ["&"], title='"') == (
        '<p title="&quot;">&lt;i&gt;<b>x</b>&amp;</p>'
    )


def test_from_the_shell(monkeypatch, tmp_path, found):
    monkeypatch.setenv("MERCURY_CACHE_DIR", str(tmp_path))
    file = tmp_path / "out.html"
    arguments = [
        *("matmul", "--topology", "h200-2x1", "--set", "m=64,n=64,depth=64"),
        *("--at", "A.i=gpu", "--max-levels", "1", "--report", str(file)),
    ]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert f"report: {file}" in done.output
    assert "matmul on h200-2x1" in read(file.read_text()).text
    with pytest.raises(TuneError, match="cannot be written"):
        write(tmp_path / "none" / "out.html", found)
