"""The estimate document: the contract's fields, the estimators' numbers, null where undefined."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.config.query.queries import parse_range
from ldpstream.agents.document.build import (
    DocumentKeywords,
    build_document,
    final_content,
    write_document,
)
from ldpstream.agents.document.entries import Part
from ldpstream.agents.document.estimates import largest
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.projection import known_totals, project_simplex
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.mechanisms.domains.queries import Linear, range_values
from tests.property.documents import BLOCKS, LABELS, LINE, answer, collection, totals, written

IDENTIFICATION = ["collection", "fingerprint", "window", "n", "final", "withheld"]
FIELDS = [
    *IDENTIFICATION,
    *("late", "rejected", "estimand", "confidence", "method", "simultaneous", "projection"),
    *("distribution", "ranges", "quantiles", "influence", "forged"),
]
METHODS = ("padded", "exact", "normal", "bernstein", "anytime")
ESTIMANDS = ("respondents", "population", "active")
NUMBERS = ["share", "count", "se", "low", "high", "influence", "forged", "bound"]


def test_the_fields_are_the_contract():
    config = collection(BLOCKS, publish={"top": 2, "ranges": {"low": [0, 9]}, "quantiles": [0.5]})
    document = written(build_document(config, totals(config, 500), window=(0, 60_000), final=False))
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


def test_published_means_equal_requested_ones():
    weights = [value % 7 for value in range(40)]
    config = collection(BLOCKS, publish={"linear": {"sevenths": weights}})
    given = totals(config, 500)
    document = written(build_document(config, given, window=None, final=False))
    assert list(document) == [*FIELDS[:-2], "linear", *FIELDS[-2:]]
    asked = read_options(
        EstimateOptions(), config.spec, {"linear": [f"sevenths:{str(weights)[1:-1]}"]}
    )
    plain = collection(BLOCKS)
    assert build_document(plain, given, window=None, final=False, options=asked).linear == (
        build_document(config, given, window=None, final=False).linear
    )
    assert document["linear"][0]["name"] == "sevenths"


def test_a_withheld_document_holds_only_n_and_identification():
    config = collection(BLOCKS, minimum=501)
    document = written(build_document(config, totals(config, 500), window=None, final=True))
    assert list(document) == IDENTIFICATION
    assert (document["withheld"], document["n"], document["window"]) == (True, 500, None)
    enough = collection(BLOCKS, minimum=500)
    assert (
        list(written(build_document(enough, totals(enough, 500), window=None, final=True)))
        == FIELDS
    )


@pytest.mark.grid
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(
    ("method", "estimand", "project"),
    [
        *product(METHODS, ESTIMANDS, ("none",)),
        *product(("padded",), ("respondents",), ("simplex", "blocks")),
    ],
)
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
    document = written(build_document(config, given, window=None, final=True, options=options))
    entries = document["distribution"] + document["ranges"]
    assert len(entries) == 4
    if n == 0:
        assert all(entry[name] is None for entry in entries for name in NUMBERS)
        assert document["quantiles"] == [{"p": 0.5, "value": None, "low": None, "high": None}]


def test_anytime_documents_say_where_they_are_sharpest():
    config = collection(LINE, method="anytime", sharpest=700)
    given = totals(config, 500)
    document = written(build_document(config, given, window=None, final=False))
    assert (document["method"], document["sharpest"]) == ("anytime", 700)
    plain = replace(config.options, method="normal")
    other = written(build_document(config, given, window=None, final=False, options=plain))
    assert "sharpest" not in other
    expected = estimate_values(
        config.spec.mechanism,
        given.statistic,
        500,
        method="anytime",
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
    assert build_document(config, given, window=span, final=True).to_json() == content
    assert json.loads(content)["window"]["start"] == "2026-11-21T10:00:00Z"


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (LABELS, {"top": None}),
        (BLOCKS, {"areas": True, "linear": (Linear("index", np.arange(40.0)),)}),
        (LINE, {"quantiles": (0.1, 0.5), "project": "simplex", "method": "anytime"}),
        (LINE, {"top": 0}),
    ],
)
@pytest.mark.parametrize("n", [0, 500])
def test_a_document_is_written_as_its_model_writes_it(
    table: dict[str, Any], options: dict[str, Any], n: int
):
    config = collection(table)
    about: DocumentKeywords = {"window": None, "final": True, "options": EstimateOptions(**options)}
    content = write_document(config, totals(config, n), **about)
    assert content == build_document(config, totals(config, n), **about).to_json()
    assert content == EstimateDocument.model_validate_json(content).to_json()


def test_a_document_is_written_without_a_model(monkeypatch: pytest.MonkeyPatch):
    """A list may have 100,000 entries: what is sent is neither validated nor parsed."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a model is made of a document that is sent")

    config = collection(LINE, publish={"ranges": {"r": [1, 5]}, "quantiles": [0.25]})
    given = totals(config, 700)
    span, content = (given.start_ms, given.end_ms), final_content(config)(given)
    for method in ("__init__", "model_validate", "model_validate_json", "model_construct"):
        monkeypatch.setattr(Part, method, refuse)
    assert write_document(config, given, window=span, final=True) == content


def test_shares_that_projection_made_equal_are_listed_by_their_estimates():
    config = collection(BLOCKS)
    given = totals(config, 200)
    document = answer(config, given, top=39, project="simplex")
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
        document = answer(config, given, top=None, simultaneous=simultaneous, method="bernstein")
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
def test_a_post_selected_list_is_simultaneous_over_the_whole_domain(top: int, chosen: bool):
    config = collection(BLOCKS)
    given = totals(config, 400)
    document = answer(config, given, top=top)
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
        document = answer(config, given, top=5, ranges=ranges, simultaneous=simultaneous)
        sets = [range_values(config.spec.domain.shape, asked.bounds) for asked in ranges]
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
    document = answer(config, given, top=0, quantiles=(0.1, 0.5))
    found = estimate_quantiles(config.spec.mechanism, given.statistic, 4_000, [0.1, 0.5])
    label = config.spec.domain.label
    for i, entry in enumerate(document["quantiles"]):
        assert entry["value"] == label(int(found.value[i]))
        assert entry["low"] == label(int(found.low[i]))
        assert entry["high"] == label(int(found.high[i]))
    assert document["distribution"] == []
    assert document["influence"] is None


def test_projection_keeps_the_bounds_and_errors_of_the_unbiased_estimate():
    config = collection(BLOCKS)
    given = totals(config, 200)
    ranges = (parse_range("3..20", config.spec.domain),)
    raw, simplex, blocks = (
        answer(config, given, top=None, project=project, ranges=ranges)
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
            kept = ("low", "high", "bound", "se", "influence", "forged")
            assert [entry[key] for key in kept] == [plain[key] for key in kept]
            assert 0.0 <= entry["low"] <= entry["high"] <= 1.0
        assert projected["influence"] == raw["influence"]
        assert projected["forged"] == raw["forged"]
    assert blocks["projection"] == "blocks"


TIED = st.sampled_from([-1.0, -0.0, 0.0, 0.25, 0.5, float("nan")])


@given(st.lists(st.tuples(TIED, TIED), min_size=1, max_size=30), st.integers(0, 35))
def test_a_list_is_the_beginning_of_all_sorted(pairs: list[tuple[float, float]], number: int):
    first, then = np.array(pairs).T
    assert largest(first, then, number).tolist() == np.lexsort((-then, -first))[:number].tolist()
