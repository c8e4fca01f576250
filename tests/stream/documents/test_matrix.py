"""A `matrix` collection from values to documents, certificates and finals, without a broker."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.view import totals
from ldpstream.mechanisms.wire.frame import decode_frame, encode_frame
from tests.replicas import stored_final
from tests.seeded import SeededEntropy
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


def test_sums_of_groups_add_up_and_may_be_negative(served: Served):
    mechanism = served.config.spec.mechanism
    expected = mechanism.empty()
    for partition in range(2):
        reports = served.config.spec.privatize(labels(partition), entropy=SeededEntropy(partition))
        mechanism.accumulate(expected, reports)
    found = totals(served.context, served.replicas, START_MS, START_MS + MINUTE_MS)
    assert np.array_equal(found.statistic, expected)
    assert found.n == mechanism.count(found.statistic) == 1800
    assert found.statistic.min() < -100


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


def test_a_report_out_of_range_is_rejected_alone(served: Served):
    spec = served.config.spec
    open_ms = START_MS + MINUTE_MS
    size = spec.mechanism.report_bytes
    frame = decode_frame(
        spec.frame(labels(3)[:5], times_ms=[open_ms] * 5),
        fingerprint=spec.fingerprint,
        report_bytes=size,
    )
    payload = frame.payload.copy()
    payload[2] = 0xFF
    served.deliver(0, encode_frame(spec.fingerprint, np.full(5, open_ms), payload), now_ms=open_ms)
    after = totals(served.context, served.replicas, open_ms, open_ms + MINUTE_MS)
    assert (after.n, after.rejected) == (4, 1)


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
    assert "modes.strategy: expected rows that answer every query" in refused(
        invoke("certify", "-c", file)
    )
