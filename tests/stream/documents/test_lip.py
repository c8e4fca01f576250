"""A `lip` collection from value lines to documents, HTTP and metrics, without a broker."""

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
from ldpstream.agents.state.view import totals
from ldpstream.agents.web import build_http
from tests.stream.cli import certified, configured, invoke, refused
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, Served, serve_collections

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


@pytest.mark.parametrize(("off", "wrong"), [(0.0, False), (0.4, True)])
def test_partitions_add_up_and_the_priors_are_checked(off: float, wrong: bool):
    one, labels = served(off)
    document = document_of(one)
    assert document.n == 8000
    shares = {entry.value: entry for entry in document.distribution}
    truth = sum(label == "ill" for label, *_ in labels) / 8000
    assert set(shares) == {"well", "ill"}
    # Bounds of 4.9 standard errors: left with probability below 1e-6.
    ill = shares["ill"]
    assert ill.share is not None
    assert ill.se is not None
    assert abs(ill.share - truth) < 4.9 * ill.se
    assert document.calibration is not None
    assert document.calibration.wrong == wrong
    mmse = document.mmse
    assert mmse is not None
    if wrong:
        assert document.calibration.suspicion == "too low"
        assert [mmse.share, mmse.count, mmse.se, mmse.low, mmse.high] == [None] * 5
        assert mmse.withheld is not None
        assert "priors, which are too low (p = " in mmse.withheld
        return
    assert document.calibration.suspicion is None
    assert b'"withheld"' not in mmse.model_dump_json(exclude_unset=True).encode()
    assert mmse.low is not None
    assert mmse.high is not None
    assert mmse.low <= truth <= mmse.high


@pytest.mark.parametrize("off", [0.0, 0.4])
async def test_http_and_metrics_show_the_calibration(off: float):
    one, _ = served(off)
    document = document_of(one)
    assert document.calibration is not None
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


def test_value_lines_with_a_prior_from_the_command_line(tmp_path: Path):
    file = configured(tmp_path, TOML)
    rng = np.random.default_rng(8)
    priors = rng.uniform(0.05, 0.95, 5000)
    ill = rng.random(5000) < priors
    lines = "".join(
        f"{('well', 'ill')[int(x)]},{prior}\n" for x, prior in zip(ill, priors, strict=True)
    )
    reports = invoke("privatize", "-c", file, "ill", stdin=lines)
    assert (reports.exit_code, reports.stderr) == (0, "")
    result = invoke("estimate", "--json", "-c", file, "--top", "all", "ill", stdin=reports.stdout)
    document = json.loads(result.stdout)
    well, sick = document["distribution"]
    assert (well["value"], sick["value"]) == ("well", "ill")
    # Fresh entropy: bounds of 7 standard errors, p-values above 1e-10.
    assert abs(sick["share"] - ill.mean()) < 7 * sick["se"]
    assert document["calibration"]["p_value"] > 1e-10
    certificate = certified(file)[0]
    assert certificate["pass"] is True
    assert "the level of the device's prior, one of 64" in certificate["disclosed"]


def test_a_line_with_an_impossible_prior_is_named_and_not_repeated(tmp_path: Path):
    file = configured(tmp_path, TOML)
    for prior in ("0", "1", "-0.2", "1.7", "nan", "often", ""):
        result = invoke("privatize", "-c", file, "ill", stdin=f"ill,0.5\nwell,{prior}\n")
        message = refused(result)
        expected = "a prior above 0 and below 1 with the value"
        assert message == f"stdin: line 2: expected {expected}"
    message = refused(invoke("privatize", "-c", file, "ill", stdin="ill\n"))
    assert message == f"stdin: line 1: expected {expected}"


@pytest.mark.parametrize("prior", ["0", "1.0", "-0.1", "2"])
def test_an_impossible_prior_of_the_collection_is_refused_by_its_key(tmp_path: Path, prior: str):
    text = TOML.replace("{ levels = 64 }", prior)
    message = refused(invoke("certify", "-c", configured(tmp_path, text)))
    assert "collection.ill.prior: expected a number above 0 and below 1, got" in message
