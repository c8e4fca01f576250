"""The estimate document: exactly the contract's fields, and exactly the estimators' numbers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from ldpstream.agents.config import CollectionConfig, read_config
from ldpstream.agents.document import EstimateDocument, EstimateOptions, compose, final_content
from ldpstream.agents.options import parse_range
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.groups import known_totals
from ldpstream.estimators.projection import project_simplex
from ldpstream.estimators.quantiles import estimate_quantiles
from ldpstream.mechanisms.entropy import SeededEntropy

IDENTIFICATION = ["collection", "fingerprint", "window", "n", "final", "withheld"]
FIELDS = [
    *IDENTIFICATION,
    *("late", "rejected", "estimand", "confidence", "method", "simultaneous", "projection"),
    *("distribution", "ranges", "quantiles", "influence", "forged"),
]
NUMBERS = ["share", "count", "se", "low", "high", "influence", "forged"]
LABELS = {
    "mechanism": "high-low",
    "epsilon": 1.0,
    "domain": {"values": ["a", "ä", 3]},
    "sensitive": ["ä"],
}
BLOCKS = {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": {"size": 40, "blocks": 8}}
LINE = {
    "mechanism": "block-hadamard",
    "epsilon": 2.0,
    "domain": {"interval": [0.0, 10.0], "bins": 20},
}


def collection(table: dict[str, Any], **more: Any) -> CollectionConfig:
    tables = {"collection": {"c": {**table, "minimum": 0, **more}}}
    return read_config(tables, base=Path(), environment={}).collections["c"]


def totals(config: CollectionConfig, n: int, seed: int = 1) -> WindowTotals:
    mechanism = config.spec.mechanism
    values = np.random.default_rng(seed).binomial(mechanism.size - 1, 0.3, n)
    statistic = mechanism.empty()
    mechanism.absorb(statistic, mechanism.privatize(values, entropy=SeededEntropy(seed)))
    return WindowTotals(1_795_255_200_000, 1_795_258_800_000, statistic, n, late=3, rejected=5)


def written(document: EstimateDocument) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads(document.to_json(), parse_constant=refuse)
    jsonschema.validate(content, EstimateDocument.model_json_schema())
    return dict(content)


def test_the_fields_are_the_contract():
    config = collection(BLOCKS, publish={"top": 2, "ranges": {"low": [0, 9]}, "quantiles": [0.5]})
    document = written(compose(config, totals(config, 500), window=(0, 60_000), final=False))
    assert list(document) == FIELDS
    assert document["window"] == {"start": "1970-01-01T00:00:00Z", "end": "1970-01-01T00:01:00Z"}
    assert document["fingerprint"] == config.spec.fingerprint.hex()
    assert (document["n"], document["late"], document["rejected"]) == (500, 3, 5)
    assert (document["final"], document["withheld"]) == (False, False)
    assert [list(entry) for entry in document["distribution"]] == [["value", *NUMBERS]] * 2
    assert [list(entry) for entry in document["ranges"]] == [["name", *NUMBERS]]
    assert [list(entry) for entry in document["quantiles"]] == [["p", "value", "low", "high"]]
    entries = document["distribution"] + document["ranges"]
    assert document["influence"] == max(entry["influence"] for entry in entries)


def test_a_withheld_document_holds_only_n_and_identification():
    config = collection(BLOCKS, minimum=501)
    document = written(compose(config, totals(config, 500), window=None, final=True))
    assert list(document) == IDENTIFICATION
    assert (document["withheld"], document["n"], document["window"]) == (True, 500, None)
    enough = collection(BLOCKS, minimum=500)
    assert list(written(compose(enough, totals(enough, 500), window=None, final=True))) == FIELDS


def test_shares_that_projection_made_equal_are_listed_by_their_estimates():
    config = collection(BLOCKS)
    given = totals(config, 200)
    options = EstimateOptions(top=39, project="simplex")
    document = written(compose(config, given, window=None, final=True, options=options))
    estimate = estimate_values(config.spec.mechanism, given.statistic, 200)
    listed = np.array([entry["value"] for entry in document["distribution"]])
    shares = np.array([entry["share"] for entry in document["distribution"]])
    tied = estimate.value[listed[shares == 0]]
    assert tied.size > 5
    assert (np.diff(tied) <= 0).all()
    assert (np.diff(tied) < 0).any()


def test_all_values_are_in_their_own_order_and_pointwise_unless_asked():
    config = collection(LABELS)
    given = totals(config, 300)
    for simultaneous in (False, True):
        options = EstimateOptions(top=None, simultaneous=simultaneous, method="bernstein")
        document = written(compose(config, given, window=None, final=True, options=options))
        estimate = estimate_values(
            config.spec.mechanism,
            given.statistic,
            300,
            method="bernstein",
            simultaneous=simultaneous,
        )
        assert document["simultaneous"] is simultaneous
        assert [entry["value"] for entry in document["distribution"]] == ["a", "ä", 3]
        for name in ("se", "low", "high", "influence"):
            found = [entry[name] for entry in document["distribution"]]
            assert found == getattr(estimate, name).tolist()
        assert [entry["share"] for entry in document["distribution"]] == estimate.value.tolist()
        assert [e["count"] for e in document["distribution"]] == (estimate.value * 300).tolist()


@pytest.mark.parametrize(("top", "chosen"), [(1, True), (39, True), (40, False), (90, False)])
def test_a_list_chosen_by_looking_is_simultaneous_over_the_whole_domain(top: int, chosen: bool):
    config = collection(BLOCKS)
    given = totals(config, 400)
    options = EstimateOptions(top=top)
    document = written(compose(config, given, window=None, final=True, options=options))
    estimate = estimate_values(
        config.spec.mechanism, given.statistic, 400, simultaneous=chosen, family=40
    )
    assert document["simultaneous"] is chosen
    assert len(document["distribution"]) == min(top, 40)
    shares = [entry["share"] for entry in document["distribution"]]
    assert shares == sorted(estimate.value.tolist(), reverse=True)[:top]
    for entry in document["distribution"]:
        assert entry["low"] == estimate.low[entry["value"]]
        assert entry["high"] == estimate.high[entry["value"]]


def test_ranges_are_the_estimators_and_pointwise_unless_asked():
    config = collection(BLOCKS)
    given = totals(config, 400)
    ranges = tuple(parse_range(text, config.spec.domain) for text in ("3..9", "0..7", "0..39"))
    for simultaneous in (False, True):
        options = EstimateOptions(top=5, ranges=ranges, simultaneous=simultaneous)
        document = written(compose(config, given, window=None, final=True, options=options))
        sets = [asked.values(config.spec.domain) for asked in ranges]
        estimate = estimate_sets(
            config.spec.mechanism, given.statistic, 400, sets, simultaneous=simultaneous
        )
        assert [entry["name"] for entry in document["ranges"]] == ["3..9", "0..7", "0..39"]
        assert [entry["low"] for entry in document["ranges"]] == estimate.low.tolist()
        assert [entry["high"] for entry in document["ranges"]] == estimate.high.tolist()
        assert document["ranges"][2]["share"] == 1.0


@pytest.mark.parametrize("table", [LINE, BLOCKS])
def test_quantiles_are_the_users_labels(table: dict[str, Any]):
    config = collection(table)
    given = totals(config, 4_000)
    options = EstimateOptions(top=0, quantiles=(0.1, 0.5))
    document = written(compose(config, given, window=None, final=True, options=options))
    found = estimate_quantiles(config.spec.mechanism, given.statistic, 4_000, [0.1, 0.5])
    label = config.spec.domain.label
    for i, entry in enumerate(document["quantiles"]):
        assert entry["value"] == label(int(found.value[i]))
        assert entry["low"] == label(int(found.low[i]))
        assert entry["high"] == label(int(found.high[i]))
    assert document["distribution"] == []
    assert document["influence"] is None


def test_projection_is_a_named_step_that_keeps_the_bounds_and_drops_what_is_not_its_own():
    config = collection(BLOCKS)
    given = totals(config, 200)
    ranges = (parse_range("3..20", config.spec.domain),)
    raw, simplex, blocks = (
        written(
            compose(
                config,
                given,
                window=None,
                final=True,
                options=EstimateOptions(top=None, project=project, ranges=ranges),
            )
        )
        for project in ("none", "simplex", "blocks")
    )
    assert min(entry["share"] for entry in raw["distribution"]) < 0
    shares = np.array([entry["share"] for entry in simplex["distribution"]])
    unprojected = np.array([entry["share"] for entry in raw["distribution"]])
    np.testing.assert_array_equal(shares, project_simplex(unprojected))
    groups, known = known_totals(config.spec.mechanism, given.statistic, 200)
    by_block = np.bincount(groups, [entry["share"] for entry in blocks["distribution"]])
    np.testing.assert_allclose(by_block, known, atol=1e-12)
    for projected in (simplex, blocks):
        shares = np.array([entry["share"] for entry in projected["distribution"]])
        assert shares.min() >= 0
        assert projected["ranges"][0]["share"] == pytest.approx(shares[3:21].sum(), abs=1e-12)
        for entry, plain in zip(projected["distribution"], raw["distribution"], strict=True):
            assert (entry["low"], entry["high"]) == (plain["low"], plain["high"])
            assert (entry["se"], entry["influence"]) == (None, None)
        assert projected["influence"] is None
    assert [d["projection"] for d in (raw, simplex, blocks)] == ["none", "simplex", "blocks"]


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("method", ["normal", "bernstein", "anytime", "anytime-exact"])
@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("project", ["none", "simplex", "blocks"])
def test_what_is_undefined_is_null(n: int, method: Any, estimand: Any, project: Any):
    config = collection(LINE)
    options = EstimateOptions(
        top=3,
        method=method,
        estimand=estimand,
        project=project,
        ranges=(parse_range("1..2", config.spec.domain),),
        quantiles=(0.5,),
    )
    given = totals(config, n)
    document = written(compose(config, given, window=None, final=True, options=options))
    entries = document["distribution"] + document["ranges"]
    assert len(entries) == 4
    if n == 0:
        assert all(entry[name] is None for entry in entries for name in NUMBERS)
        assert document["quantiles"] == [{"p": 0.5, "value": None, "low": None, "high": None}]


@pytest.mark.parametrize("method", ["anytime", "anytime-exact"])
def test_anytime_documents_say_where_they_are_sharpest(method: Any):
    config = collection(LINE, method=method, sharpest=700)
    given = totals(config, 500)
    document = written(compose(config, given, window=None, final=False))
    assert (document["method"], document["sharpest"]) == (method, 700)
    plain = replace(config.options, method="normal")
    other = written(compose(config, given, window=None, final=False, options=plain))
    assert "sharpest" not in other
    expected = estimate_values(
        config.spec.mechanism,
        given.statistic,
        500,
        method=method,
        simultaneous=other["simultaneous"],
        sharpest=700,
    )
    for entry in document["distribution"]:
        value = round(2 * entry["value"][0])  # bins of 0.5
        ends = (expected.low[value], expected.high[value])
        assert (entry["low"], entry["high"]) == pytest.approx(ends)


def test_the_same_totals_give_the_same_bytes():
    publish = {"ranges": {"r": [1, 5]}, "quantiles": [0.25]}
    config, other = (collection(BLOCKS, publish=publish) for _ in range(2))
    given = totals(config, 700)
    content = final_content(config)(given)
    copied = replace(given, statistic=given.statistic.copy())
    assert final_content(other)(copied) == content
    span = (given.start_ms, given.end_ms)
    assert compose(config, given, window=span, final=True).to_json() == content
    assert json.loads(content)["window"]["start"] == "2026-11-21T10:00:00Z"


def test_late_and_rejected_can_be_told_apart_from_the_totals():
    config = collection(BLOCKS)
    given = totals(config, 10)
    document = compose(config, given, window=None, final=False, late=7, rejected=8)
    assert (document.late, document.rejected) == (7, 8)
