"""The results in the package are records, and the pages quote them as they are."""

from pathlib import Path

import pytest
from mercury import bench
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
