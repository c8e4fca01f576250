"""Weights in commands and windows: sums next to shares, refusals by line."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.stream.cli import configured, invoke, refused

SHOP = """
[collection.shop]
mechanism = "MECHANISM"
epsilon = 1.0
domain = { sizes = [4, 5] }
weights = { private = 10 }
minimum = 1
publish = { top = 3, ranges = { left = [[0, 1], [0, 4]], all = [[0, 3], [0, 4]] } }

[collection.plain]
mechanism = "MECHANISM"
epsilon = 1.0
domain = { sizes = [4, 5] }
minimum = 1
publish = { top = 3, ranges = { left = [[0, 1], [0, 4]] } }

[collection.line]
mechanism = "MECHANISM"
epsilon = 1.0
domain = { size = 20 }
weights = { private = 3 }
minimum = 1
publish = { top = 20, quantiles = [0.5] }
"""
KINDS = pytest.mark.parametrize("mechanism", ["l1-bits", "l1-geometric"])
WEIGHTS = pytest.mark.parametrize("weights", ["private", "public"])


def written(folder: Path, mechanism: str, weights: str = "private") -> str:
    text = SHOP.replace("MECHANISM", mechanism).replace("{ private", f"{{ {weights}")
    return configured(folder, text)


def estimate(file: str, name: str, values: np.ndarray) -> dict:
    lines = "".join(",".join(map(str, row)) + "\n" for row in values.tolist())
    reports = invoke("privatize", "-c", file, name, stdin=lines)
    assert (reports.exit_code, reports.stderr) == (0, "")
    asked = ["--method", "bernstein", "--confidence", "0.999999999999"]
    result = invoke("estimate", "--json", "-c", file, *asked, name, stdin=reports.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


@pytest.mark.grid
@KINDS
@WEIGHTS
def test_documents_sum_weights(tmp_path: Path, mechanism: str, weights: str):
    """Bernstein bounds hold at every n: each of some 300 fails with probability below 1e-12."""
    file = written(tmp_path, mechanism, weights)
    rng = np.random.default_rng(4)
    values = np.stack([rng.integers(0, m, 10_000) for m in (4, 5, 11)], axis=1)
    document = estimate(file, "shop", values)
    left, whole = document["ranges"]
    truth = values[values[:, 0] <= 1, 2].sum()
    assert left["weight"]["low"] <= truth <= left["weight"]["high"]
    assert whole["weight"]["low"] <= values[:, 2].sum() <= whole["weight"]["high"]
    # Public weights are sent in the clear, so their sum is exact.
    exact = whole["weight"]["se"] == 0.0 and whole["weight"]["total"] == values[:, 2].sum()
    assert exact == (weights == "public")
    assert left["low"] <= (values[:, 0] <= 1).mean() <= left["high"]
    assert (whole["low"], whole["share"], whole["high"]) == (1.0, 1.0, 1.0)
    for entry in document["distribution"]:
        inside = (values[:, :2] == entry["value"]).all(axis=1)
        assert entry["weight"]["low"] <= values[inside, 2].sum() <= entry["weight"]["high"]
    line = np.stack([rng.binomial(19, 0.5, 10_000), rng.integers(0, 4, 10_000)], axis=1)
    document = estimate(file, "line", line)
    (median,) = document["quantiles"]
    assert median["low"] <= np.median(line[:, 0]) <= median["high"]
    for entry in document["distribution"]:
        truth = line[line[:, 0] == entry["value"], 1].sum()
        assert entry["weight"]["low"] <= truth <= entry["weight"]["high"]
    assert len(document["distribution"]) == 20


@KINDS
def test_collections_without_weights_do_not_mention_them(tmp_path: Path, mechanism: str):
    file = written(tmp_path, mechanism)
    document = estimate(file, "plain", np.array([[0, 1], [3, 4]] * 50))
    entries = document["distribution"] + document["ranges"]
    assert len(entries) == 4
    assert all("weight" not in entry for entry in entries)


@KINDS
@WEIGHTS
def test_weights_out_of_range_are_refused_by_line_and_never_repeated(
    tmp_path: Path, mechanism: str, weights: str
):
    file = written(tmp_path, mechanism, weights)
    message = refused(invoke("privatize", "-c", file, "shop", stdin="0,0,3\n1,1,7777\n"))
    expected = "expected a weight, a whole number in 0..10, after the value"
    assert message == f"stdin: line 2: {expected}"
    message = refused(invoke("privatize", "-c", file, "shop", stdin="0,0\n"))
    assert "line 1" in message


@pytest.mark.slow
@KINDS
def test_certificates_and_plans_are_about_the_values(tmp_path: Path, mechanism: str):
    file = written(tmp_path, mechanism, "public")
    result = invoke("certify", "-c", file, "shop")
    assert result.exit_code == 0
    (certificate,) = json.loads(result.stdout)["collections"]
    assert certificate["disclosed"][0] == "the weight"
    assert certificate["policy"]["largest_weight"] == 10
    plans = []
    for name in ("shop", "plain"):
        asked = ["-c", file, name, "--respondents", "1000", "--search", "0", "--workload", "values"]
        result = invoke("plan", "--json", *asked)
        assert (result.exit_code, result.stderr) == (0, "")
        plans.append(json.loads(result.stdout))
    weighted, plain = plans
    assert weighted["policy"] == plain["policy"]
    assert weighted["fingerprint"] == certificate["fingerprint"] != plain["fingerprint"]
    errors = [[one["error"] for one in found["mechanisms"]] for found in plans]
    assert errors[0] == errors[1]
