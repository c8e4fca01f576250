"""A `matrix` collection from values to documents, certificates and finals, without a broker."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.view import totals
from tests.replicas import stored_final
from tests.stream.cli import configured, invoke, refused
from tests.stream.serving import MINUTE_MS, START_MS, Served, serve_collections

WAVES: dict[str, Any] = {
    "mechanism": "matrix",
    "strategy": "haar",
    "epsilon": 1.0,
    "policy": {"blocks": 8},
    "domain": {"size": 16},
    "partitions": 2,
    "minimum": 10,
    "window": {"size": "1m", "idle": "off", "future": "1m", "retention": "1h"},
    "publish": {"top": 3, "ranges": {"upper": [8, 15], "middle": [3, 9]}, "quantiles": [0.5]},
}
TOML = """
[collection.ages]
mechanism = "matrix"
strategy = "best"
workload = "ranges"
epsilon = 1.0
domain = { size = 24 }
minimum = 1

[collection.modes]
mechanism = "matrix"
strategy = { file = "strategy.csv" }
policy = { metric = "graph", file = "edges.csv" }
domain = { values = ["bus", "train", "walk"] }
minimum = 1
"""


def labels(partition: int) -> list[int]:
    """Return values in the upper halves, for which most wavelets are -1."""
    return (15 - np.random.default_rng(partition).binomial(12, 0.2, 900)).tolist()


@pytest.fixture
def served() -> Served:
    one = serve_collections({"waves": WAVES}).collections["waves"]
    for partition in range(2):
        one.report(partition, labels(partition), times_ms=[START_MS] * 900, seed=partition)
    return one


def test_disclosed_groups_are_estimated_exactly(served: Served):
    """Bounds of 4.9 standard errors are left with probability below 1e-6."""
    span = START_MS, START_MS + MINUTE_MS
    document = build_document(
        served.config, totals(served.context, served.replicas, *span), window=span, final=False
    )
    truth = np.bincount(labels(0) + labels(1), minlength=16) / 1800
    ranges = {entry.name: entry for entry in document.ranges}
    upper, middle = ranges["upper"], ranges["middle"]
    assert upper.low == upper.share == upper.high == pytest.approx(truth[8:].sum())
    assert middle.se is not None
    assert 0.0 < middle.se < 0.2
    assert abs(middle.share - truth[3:10].sum()) < 4.9 * middle.se
    served.close(START_MS + MINUTE_MS)
    stored = stored_final(served.context, served.replicas, START_MS)
    assert stored is not None
    assert json.loads(stored)["n"] == 1800


def test_estimates_of_a_matrix_hold_the_truth_within_their_bounds(tmp_path: Path):
    """Bernstein bounds hold together at every n: left with probability below 1e-9."""
    (tmp_path / "strategy.csv").write_text("1,0,0\n0,2,1\n", "utf-8")
    (tmp_path / "edges.csv").write_text("bus,train,1.0\ntrain,walk,0.5\n", "utf-8")
    file = configured(tmp_path, TOML)
    values = np.random.default_rng(1).binomial(23, 0.3, 5000)
    lines = "".join(f"{value}\n" for value in values)
    reports = invoke("privatize", "-c", file, "ages", stdin=lines)
    assert (reports.exit_code, reports.stderr) == (0, "")
    asked = ["--range", "3..9", "--range", "0..23", "--quantile", "0.5", "--confidence"]
    asked += ["0.9999999999", "--method", "bernstein", "--simultaneous"]
    result = invoke("estimate", "--json", "-c", file, *asked, "ages", stdin=reports.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    ranges = {entry["name"]: entry for entry in document["ranges"]}
    truth = float(((values >= 3) & (values <= 9)).mean())
    assert ranges["3..9"]["low"] <= truth <= ranges["3..9"]["high"]
    whole = ranges["0..23"]
    assert (whole["low"], whole["share"], whole["high"]) == (1.0, 1.0, 1.0)
    assert abs(document["quantiles"][0]["value"] - np.median(values)) <= 2
    words = "bus\ntrain\nwalk\n" * 100
    reports = invoke("privatize", "-c", file, "modes", stdin=words)
    result = invoke("estimate", "--json", "-c", file, "modes", stdin=reports.stdout)
    assert json.loads(result.stdout)["n"] == 300
    outside = refused(invoke("privatize", "-c", file, "ages", stdin="3\n24\n"))
    assert "line 2: expected an integer in 0..23" in outside


def test_policies_and_strategies_of_files_are_certified(tmp_path: Path):
    (tmp_path / "strategy.csv").write_text("1,0,0\n0,2,1\n", "utf-8")
    (tmp_path / "edges.csv").write_text("bus,train,1.0\ntrain,walk,0.5\n", "utf-8")
    file = configured(tmp_path, TOML)
    result = invoke("certify", "-c", file)
    assert (result.exit_code, result.stderr) == (0, "")
    found = {c["collection"]: c for c in json.loads(result.stdout)["collections"]}
    assert found["ages"]["pass"]
    assert found["modes"]["pass"]
    assert found["modes"]["policy"]["metric"] == "graph"
    assert [loss["budget"] for loss in found["modes"]["losses"]] == [0.5, 1.0]
    (tmp_path / "strategy.csv").write_text("1,0,0\n2,0,0\n", "utf-8")
    assert "modes" in {c["collection"] for c in json.loads(result.stdout)["collections"]}


RANKS = """
[collection.hours]
mechanism = "matrix"
strategy = { file = "strategy.csv" }
policy = { metric = "l1" }
epsilon = 0.5
domain = { size = 6 }
minimum = 1
[collection.hours.publish]
ranges = { night = [0, 1], evening = [4, 5] }
linear = { rest = [1, 1, -1, -1, 3, 3] }
"""
NO_VALUES = (
    "queries that the strategy's rows answer; for single values they do not separate the shares"
)


def configured_ranks(folder: Path, **publish: str) -> str:
    (folder / "strategy.csv").write_text("1,1,0,0,0,0\n1,1,1,1,0,0\n0,0,1,1,0,0\n", "utf-8")
    text = RANKS
    for key, written in publish.items():
        text = text.replace("hours.publish]", f"hours.publish]\n{key} = {written}")
    return configured(folder, text)


def test_a_strategy_of_low_rank_answers_what_its_rows_span(tmp_path: Path):
    file = configured_ranks(tmp_path)
    values = np.random.default_rng(3).integers(0, 6, 20_000)
    reports = tmp_path / "reports.jsonl"
    lines = "\n".join(map(str, values.tolist()))
    reports.write_text(invoke("privatize", "-c", file, "hours", stdin=lines).stdout)
    result = invoke("estimate", "--json", "-c", file, "hours", str(reports))
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["distribution"] == []
    for entry, inside in zip(document["ranges"], (values < 2, values > 3), strict=True):
        assert abs(entry["share"] - inside.mean()) < 6 * entry["se"]  # fails below 1e-8
    (mean,) = document["linear"]
    true = np.array([1, 1, -1, -1, 3, 3])[values].mean()
    assert abs(mean["mean"] - true) < 6 * mean["se"]
    ask = ("estimate", "-c", file, "hours", str(reports))
    for word, text, expected in (
        ("--range", "0..0", "range: expected queries that the strategy's rows answer; for '0..0' "),
        ("--linear", "0,1,2,3,4,5", "linear: expected queries that the strategy's rows answer"),
        ("--top", "3", f"top: expected {NO_VALUES}"),
        ("--quantile", "0.5", f"quantile: expected {NO_VALUES}"),
        ("--areas", None, f"areas: expected {NO_VALUES}"),
        ("--project", "simplex", f"project: expected {NO_VALUES}"),
    ):
        refusal = " ".join(refused(invoke(*ask, *filter(None, (word, text)))).split())
        assert expected in refusal
        assert "the shares of 0 and 1" in refusal
    planned = invoke("plan", "-c", file, "hours", "--respondents", "1000", "--search", "0")
    assert planned.exit_code == 0, planned.output
    assert invoke("certify", "-c", file).exit_code == 0


def test_a_configured_query_that_the_rows_do_not_answer_is_named(tmp_path: Path):
    for publish, key in (
        ({"top": "2"}, "publish.top"),
        ({"quantiles": "[0.5]"}, "publish.quantiles"),
    ):
        said = refused(invoke("certify", "-c", configured_ranks(tmp_path, **publish)))
        assert f"collection.hours.{key}: expected {NO_VALUES} of 0 and 1" in said
    text = RANKS.replace("night = [0, 1]", "night = [0, 2]")
    said = refused(invoke("certify", "-c", configured(tmp_path, text)))
    assert "collection.hours.publish.ranges.night: expected queries that" in said
    assert "for 'night' they do not separate the shares of 2 and 3" in said


def test_records_need_every_value_of_an_attribute(tmp_path: Path):
    configured_ranks(tmp_path)
    text = (
        RANKS[: RANKS.index("policy")]
        + """
epsilon = 1.0
domain = { attributes = { hour = { size = 6 }, mode = { size = 3, mechanism = "binary" } } }
"""
    )
    said = refused(invoke("certify", "-c", configured(tmp_path, text)))
    assert "attributes.hour.strategy: expected rows that answer every single value" in said
