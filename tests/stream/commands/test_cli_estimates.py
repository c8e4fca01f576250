"""Values to reports to estimates on the command line: the truth is within the bounds."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.stream.cli import configured, invoke


def test_estimates_recover_the_truth_within_their_bounds(tmp_path: Path):
    """Bernstein bounds hold all together at every n: this fails with probability below 1e-9."""
    file = configured(tmp_path)
    rng = np.random.default_rng(7)
    cells = rng.choice(6, 20_000, p=[0.4, 0.05, 0.2, 0.1, 0.05, 0.2])
    truth = np.bincount(cells, minlength=6) / 20_000
    lines = "".join(f"{cell // 3},{cell % 3}\n" for cell in cells.tolist())
    reports = invoke("privatize", "-c", file, "places", stdin=lines)
    asked = ["--method", "bernstein", "--simultaneous", "--confidence", "0.9999999999"]
    asked += ["--top", "all", "--range", "0..0,0..2", "--range", "0..1,0..0"]
    result = invoke("estimate", "--json", "-c", file, *asked, "places", stdin=reports.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert (document["n"], document["window"], document["final"]) == (20_000, None, True)
    assert (document["late"], document["rejected"]) == (0, 0)
    for entry, share in zip(document["distribution"], truth, strict=True):
        assert entry["low"] <= share <= entry["high"]
        assert entry["high"] - entry["low"] < 0.12
    ranges = {entry["name"]: entry for entry in document["ranges"]}
    row = ranges["0..0,0..2"]
    assert row["low"] <= truth[:3].sum() <= row["high"]
    # A whole block is known exactly.
    assert ranges["0..1,0..0"]["low"] == pytest.approx(truth[[0, 3]].sum(), abs=1e-12)
    assert ranges["0..1,0..0"]["high"] == pytest.approx(truth[[0, 3]].sum(), abs=1e-12)


def test_quantiles_and_projections_can_be_asked_for(tmp_path: Path):
    file = configured(tmp_path)
    ages = "".join(f"{age}\n" for age in range(101)) * 5
    reports = invoke("privatize", "-c", file, "ages", stdin=ages).stdout
    asked = ["--quantile", "0.5", "--project", "simplex", "--top", "all"]
    document = json.loads(
        invoke("estimate", "--json", "-c", file, *asked, "ages", stdin=reports).stdout
    )
    shares = [entry["share"] for entry in document["distribution"]]
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= 0.0
    assert document["projection"] == "simplex"
    assert [entry["p"] for entry in document["quantiles"]] == [0.5]
    low, high = document["quantiles"][0]["value"]
    assert high - low == pytest.approx(10.0)


def test_estimates_are_printed_as_windows_are(tmp_path: Path):
    file = configured(tmp_path)
    reports = invoke("privatize", "-c", file, "modes", stdin="bus\n" * 150 + "train\n" * 50).stdout
    asked = ["estimate", "-c", file, "--top", "all", "modes"]
    document = json.loads(invoke(*asked, "--json", stdin=reports).stdout)
    table = invoke(*asked, stdin=reports).stdout
    rows = list(csv.DictReader(io.StringIO(invoke(*asked, "--csv", stdin=reports).stdout)))
    assert table.startswith("modes, all reports, final, 200 reports")
    for entry, row in zip(document["distribution"], rows, strict=True):
        share = f"{100 * entry['share']:.2f}%"
        assert share in table
        assert (row["name"], float(row["value"])) == (entry["value"], entry["share"])
    assert "low" in table
