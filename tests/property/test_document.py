"""The estimate document: exactly the fields of the contract, null where a number is undefined."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

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
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.estimators.estimate import estimate_values
from ldpstream.mechanisms.domains.queries import Linear
from tests.property.documents import BLOCKS, LABELS, LINE, collection, totals, written

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
