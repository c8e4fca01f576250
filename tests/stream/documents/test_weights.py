"""Weights, negative sums, priors and matrices through commands, cells, documents and metrics."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.cell_encoding import decode_chunk
from ldpstream.agents.state.view import totals
from ldpstream.agents.web import build_http
from tests.seeded import SeededEntropy
from tests.stream.cli import configured, invoke, refused
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, Served, serve_collections

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


HOURS: dict[str, Any] = {
    "mechanism": "l1-bits",
    "epsilon": 1.0,
    "domain": {"sizes": [7, 24]},
    "partitions": 2,
    "minimum": 10,
    "window": {"size": "2m", "hop": "1m", "idle": "off", "future": "1m", "retention": "1h"},
    "publish": {"top": 5, "ranges": {"week": [[0, 4], [8, 17]]}},
}


def late_hours(seed: int, n: int) -> list[list[int]]:
    """Return large values, for which most entries of their bits are -1."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(4, 7, n), rng.integers(15, 24, n)], axis=1).tolist()


@pytest.fixture
def pipeline() -> Pipeline:
    made = serve_collections({"hours": HOURS})
    for partition in range(2):
        for minute in range(3):
            times = [START_MS + minute * MINUTE_MS] * 300
            seed = 10 * partition + minute
            made.collections["hours"].report(
                partition, late_hours(seed, 300), times_ms=times, seed=seed
            )
    return made


def accumulated(served: Served, panes: range) -> np.ndarray:
    """Return the statistic of the same reports, accumulated at once."""
    mechanism = served.config.spec.mechanism
    statistic = mechanism.empty()
    for partition in range(2):
        for minute in panes:
            seed = 10 * partition + minute
            labels = late_hours(seed, 300)
            reports = served.config.spec.privatize(labels, entropy=SeededEntropy(seed))
            mechanism.accumulate(statistic, reports)
    return statistic


def test_panes_add_up_to_the_statistic_of_all_reports(pipeline: Pipeline):
    hours = pipeline.collections["hours"]
    for panes in (range(1), range(1, 3), range(3)):
        start, end = (START_MS + edge * MINUTE_MS for edge in (panes.start, panes.stop))
        found = totals(hours.context, hours.replicas, start, end)
        assert found.n == 600 * len(panes)
        assert np.array_equal(found.statistic, accumulated(hours, panes))
        assert found.statistic.min() < -30 * len(panes)
        assert found.statistic[-1] == found.n
    cells = [
        (name.chunk, replica.value(name))
        for replica in hours.replicas
        for name in replica.cells
        if name.kind == "count"
    ]
    # 168 sums in chunks of 16.
    parts = [decode_chunk(value, 8 if chunk == 10 else 16) for chunk, value in cells]
    assert any(part.sum() < 0 for part in parts)


ILL: dict[str, Any] = {
    "mechanism": "lip",
    "epsilon": [0.5, 2.0],
    "prior": {"levels": 16},
    "domain": {"values": ["well", "ill"]},
    "partitions": 2,
    "minimum": 1,
    "window": {"size": "1m", "idle": "off", "future": "1m", "retention": "1h"},
    "publish": {"top": 2},
    "value_labels": {"ill": "unwell"},
}
TOML = """
[collection.ill]
mechanism = "lip"
epsilon = 1.0
prior = { levels = 64 }
domain = { values = ["well", "ill"] }
minimum = 1
"""


def people(seed: int, n: int, *, off: float = 0.0) -> list[list[Any]]:
    """Return n labels with priors that are `off` below each person's probability of being ill."""
    rng = np.random.default_rng([seed, 3])
    priors = rng.uniform(0.05, 0.5, n)
    ill = rng.random(n) < priors + off
    budgets = rng.choice([0.5, 2.0], n)
    return [
        [("well", "ill")[int(x)], float(prior), float(budget)]
        for x, prior, budget in zip(ill, priors, budgets, strict=True)
    ]


def served(off: float) -> tuple[Served, Sequence[list[Any]]]:
    pipeline = serve_collections({"ill": ILL})
    one = pipeline.collections["ill"]
    labels = [people(seed, 4000, off=off) for seed in range(2)]
    for partition, part in enumerate(labels):
        one.report(partition, part, times_ms=[START_MS] * 4000, seed=90 + partition)
    return one, labels[0] + labels[1]


def document_of(one: Served) -> EstimateDocument:
    span = START_MS, START_MS + MINUTE_MS
    return build_document(
        one.config, totals(one.context, one.replicas, *span), window=span, final=False
    )


@pytest.mark.parametrize("off", [0.0, 0.4])
async def test_http_and_metrics_show_the_calibration(off: float):
    one, _ = served(off)
    document = document_of(one)
    assert document.mmse is not None
    pipeline = Pipeline({"ill": one})
    metrics = pipeline.metrics
    metrics.estimated("ill", START_MS, document.to_json())
    samples = {
        (sample.name, sample.labels.get("query", "")): sample.value
        for family in text_string_to_metric_families(metrics.exposition()[0].decode())
        for sample in family.samples
    }
    prefix = "ldpstream_prior_calibration"
    assert samples[f"{prefix}_p_value", ""] == document.calibration.p_value
    assert samples[f"{prefix}_wrong", ""] == float(off > 0)
    assert samples[f"{prefix}_flagged_levels", ""] == document.calibration.flagged
    assert samples.get(("ldpstream_estimate", "mmse:unwell")) == document.mmse.share
    assert samples.get(("ldpstream_estimate_low", "mmse:unwell")) == document.mmse.low
    assert (document.mmse.share is None) == (off > 0)
    assert ("ldpstream_estimate", "value:unwell") in samples
    async with TestClient(TestServer(build_http(pipeline))) as client:
        path = "/api/collections/ill/estimate"
        answer = await (await client.get(path, params={"top": "all"})).json()
        described = await (await client.get("/api/collections/ill")).json()
    assert answer["calibration"]["wrong"] == (off > 0)
    assert answer["mmse"]["share"] == document.mmse.share
    assert answer["mmse"].get("withheld") == document.mmse.withheld
    assert [entry["value"] for entry in answer["distribution"]] == ["well", "ill"]
    assert described.get("values", 2) == 2


def test_a_line_with_an_impossible_prior_is_named_and_not_repeated(tmp_path: Path):
    file = configured(tmp_path, TOML)
    for prior in ("0", "1", "-0.2", "1.7", "nan", "often", ""):
        result = invoke("privatize", "-c", file, "ill", stdin=f"ill,0.5\nwell,{prior}\n")
        message = refused(result)
        expected = "a prior above 0 and below 1 with the value"
        assert message == f"stdin: line 2: expected {expected}"
    message = refused(invoke("privatize", "-c", file, "ill", stdin="ill\n"))
    assert message == f"stdin: line 1: expected {expected}"


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
