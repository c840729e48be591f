"""The results in the package are records, and the pages quote them as they are."""

import json
from pathlib import Path

import pytest
from mercury import bench
from mercury.bench.forecast import Forecast, forecast_table
from mercury.bench.wall import Wall, wall_table
from mercury.topology import load

RESULTS = Path(bench.__file__).parent / "results"
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "measuring.md"


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.json")), ids=lambda file: file.stem)
def test_results_read_and_are_quoted(file):
    records = bench.read_records(file)
    assert records
    assert all(record.floor_ms > 0 and record.rounds >= 5 for record in records)
    for record in records:
        assert record.error is None or record.failed or record.error <= record.allowed_error
    chosen = [record.workload for record in records if record.chosen]
    assert sorted(chosen) == sorted({record.workload for record in records})
    page = PAGE.read_text(encoding="utf-8")
    assert bench.table(records) in page, f"mercury bench table {file.name} gives another table"


def test_readme_quotes_two_gpus():
    records = bench.read_records(RESULTS / "h200x2.json")
    quoted = (ROOT / "README.md").read_text(encoding="utf-8")
    assert bench.brief_table(records) in quoted, "mercury bench table --brief gives another one"


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.toml")), ids=lambda file: file.stem)
def test_probed_topologies_read(file):
    assert load(file).sources


@pytest.mark.parametrize("ranks", [4, 8])
def test_predictions_read_and_are_quoted(ranks):
    predicted = RESULTS / "predicted"
    found = [
        Forecast(**each) for each in json.loads((predicted / f"h200x{ranks}.json").read_text())
    ]
    walls = [
        Wall(**each) for each in json.loads((predicted / f"h200x{ranks}-wall.json").read_text())
    ]
    assert {each.ranks for each in (*found, *walls)} == {ranks}
    assert {each.workload for each in found} == set(bench.MANY_GPUS)
    assert all(each.predicted_ms > 0 < each.floor_ms for each in found)
    assert all(each.stated_bytes <= each.limit_bytes == 40 << 30 for each in walls)
    assert all(each.measured_rows is None for each in walls)
    page = PAGE.read_text(encoding="utf-8")
    if ranks == 8:
        assert forecast_table(found) in page, "mercury bench forecast gives another table"
        assert wall_table(walls) in page, "mercury bench wall gives another table"
