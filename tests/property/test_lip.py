"""`lip` as configured and as devices use it: priors and budgets with the value, documents."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ldpstream.agents.cli.terminal.tables import Showing, show_document
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.config.query.queries import parse_range
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.lip.mmse import estimate_mmse
from ldpstream.mechanisms import CollectionSpec, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.policies.lip import interval_around
from tests.exact.enumeration import accumulated
from tests.property.documents import collection
from tests.seeded import SeededEntropy

ILL: dict[str, Any] = {
    "mechanism": "lip",
    "epsilon": 1.0,
    "prior": 0.1,
    "domain": {"values": ["no", "yes"]},
}
LOCAL = ILL | {"prior": {"levels": 16}}
BOTH = LOCAL | {"epsilon": [0.5, 1.0, 2.0]}
OPEN_UNIT = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)


def spec_of(table: dict[str, Any]) -> CollectionSpec:
    return CollectionSpec.from_mapping("c", table, base=Path())


def totals(config: CollectionConfig, labels: list[Any]) -> WindowTotals:
    spec = config.spec
    statistic = accumulated(spec.mechanism, spec.privatize(labels, entropy=SeededEntropy(7)))
    return WindowTotals(0, 60_000, statistic, len(labels), late=0, rejected=0)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    *(
        ({"prior": prior}, "prior", "a number above 0 and below 1")
        for prior in (0, 1, 0.0, 1.0, -0.5, 2, 10**400, math.nan, math.inf, "0.1", True, [0.1])
    ),
    ({"prior": {}}, "prior.levels", "whole number in 1..4096, got nothing"),
    ({"prior": {"levels": 0}}, "prior.levels", "whole number in 1..4096, got 0"),
    ({"prior": {"levels": 5000}}, "prior.levels", "whole number in 1..4096, got 5000"),
    ({"prior": {"levels": 8, "edges": []}}, "prior.edges", "one of the keys levels"),
    ({"prior": {"levels": 4096}, "epsilon": [1.0, 2.0, 3.0]}, "prior.levels", "at most 8192"),
    ({"epsilon": []}, "epsilon", "a list of budgets"),
    ({"epsilon": [1.0, 1.0]}, "epsilon", "each budget once"),
    ({"epsilon": [1.0, -1.0]}, "epsilon[1]", "above 0"),
    ({"epsilon": 0}, "epsilon", "above 0"),
    ({"epsilon": math.inf}, "epsilon", "finite"),
    ({"domain": {"values": ["a", "b", "c"]}}, "domain", "2 values with lip, got 3"),
    ({"domain": {"size": 2, "blocks": 1}}, "domain.blocks", "no blocks with lip"),
    ({"sensitive": ["no"]}, "sensitive", "no such key with lip"),
]


@pytest.mark.parametrize(("keys", "path", "expected"), REFUSED, ids=[str(k) for k, *_ in REFUSED])
def test_impossible_collections_are_refused_by_name(keys: dict[str, Any], path: str, expected: str):
    with pytest.raises(SpecError) as caught:
        spec_of(ILL | keys)
    assert caught.value.path == f"collection.c.{path}"
    assert expected in caught.value.expected


def test_a_missing_prior_is_named():
    with pytest.raises(SpecError, match=r"collection\.c\.prior"):
        spec_of({key: value for key, value in ILL.items() if key != "prior"})


@given(prior=OPEN_UNIT, bit=st.integers(0, 1), place=st.integers(0, 2))
def test_labels_and_columns_find_the_level_that_holds_the_prior(prior: float, bit: int, place: int):
    spec = spec_of(BOTH)
    word, epsilon = ("no", "yes")[bit], (0.5, 1.0, 2.0)[place]
    (index,) = spec.domain.index([[word, prior, epsilon]]).tolist()
    (parsed,) = spec.domain.parse_columns([[word, repr(prior), str(epsilon)]]).tolist()
    assert index == parsed
    assert isinstance(spec.mechanism, Lip)
    level = spec.mechanism.levels[index // 2]
    assert level.low <= prior <= level.high
    assert (float(level.epsilon), index % 2) == (epsilon, bit)
    label, interval, budget = spec.domain.label(index)
    low, high = interval_around(*interval)
    assert low <= prior <= high
    assert (label, budget) == (word, epsilon)
    assert spec.domain.estimated.label(int(spec.domain.estimated_indices[index])) == word


BAD_ROWS = [
    (["yes", 0.0], "a prior above 0 and below 1 with the value"),
    (["yes", 1.0], "a prior above 0 and below 1 with the value"),
    (["yes", -0.25], "a prior above 0 and below 1 with the value"),
    (["yes", 1.25], "a prior above 0 and below 1 with the value"),
    (["yes", math.nan], "a prior above 0 and below 1 with the value"),
    (["yes", "half"], "a prior above 0 and below 1 with the value"),
    (["perhaps", 0.3], "one of the 2 labels of the domain"),
    (["yes"], "with a prior above 0 and below 1"),
    (["yes", 0.3, 1.0], "with a prior above 0 and below 1"),
    ("yes", "with a prior above 0 and below 1"),
    ([], "with a prior above 0 and below 1"),
    (None, "with a prior above 0 and below 1"),
]


@pytest.mark.parametrize(("row", "expected"), BAD_ROWS, ids=[str(row) for row, _ in BAD_ROWS])
def test_a_bad_label_is_refused_by_its_position_and_not_repeated(row: Any, expected: str):
    spec = spec_of(LOCAL)
    with pytest.raises(ValueOutsideDomainError) as caught:
        spec.privatize([["no", 0.2], row, ["perhaps", 7]])
    assert (caught.value.position, expected in caught.value.expected) == (1, True)
    assert "perhaps" not in str(caught.value)
    if isinstance(row, list):
        with pytest.raises(ValueOutsideDomainError) as caught:
            spec.domain.parse_columns([["no", "0.2"], [str(entry) for entry in row], ["x", "7"]])
        assert caught.value.position == 1


def test_an_epsilon_that_is_not_on_offer_is_refused():
    spec = spec_of(ILL | {"epsilon": [0.5, 2.0]})
    assert spec.domain.index([["no", 0.5], ["yes", 2]]).tolist() == [0, 3]
    for bad in (1.0, "0.5", None, math.nan):
        with pytest.raises(ValueOutsideDomainError, match=r"one of the epsilons 0\.5, 2"):
            spec.domain.index([["no", bad]])


def test_offered_epsilons_are_shown_with_all_digits():
    spec = spec_of(ILL | {"epsilon": [0.12345678, 2.0]})
    with pytest.raises(ValueOutsideDomainError, match=r"one of the epsilons 0\.12345678, 2 with"):
        spec.domain.index([["no", 0.123457]])


def test_one_prior_and_one_budget_take_plain_labels():
    spec = spec_of(ILL)
    assert spec.domain.index(["no", "yes"]).tolist() == [0, 1]
    assert spec.domain.estimated is spec.domain
    assert spec.mechanism.disclosed() == []


def test_the_certificate_lists_what_leaves_in_the_clear():
    said = spec_of(BOTH).mechanism.certify().to_json()["disclosed"]
    assert said == [
        "the level of the device's prior, one of 16",
        "the chosen epsilon, one of 3",
    ]


def test_the_fingerprint_distinguishes_priors_levels_and_budgets():
    tables = [ILL, ILL | {"prior": 0.2}, LOCAL, BOTH, ILL | {"epsilon": [1.0, 2.0]}]
    tables += [ILL | {"prior": {"levels": 17}}, ILL | {"domain": {"values": ["yes", "no"]}}]
    assert len({spec_of(table).fingerprint for table in tables}) == len(tables)


@pytest.mark.parametrize(
    ("table", "width"),
    [(ILL | {"prior": 0.66}, 1), (LOCAL, 2), (BOTH, 3)],
    ids=["one", "local", "both"],
)
def test_documents_are_about_the_two_values(table: dict[str, Any], width: int):
    config = collection(table, publish={"top": 5})
    labels = [["yes" if i % 3 else "no", 0.66, (0.5, 1.0)[i % 2]] for i in range(3000)]
    given = [row[:width] if width > 1 else row[0] for row in labels]
    counted = totals(config, given)
    document = build_document(config, counted, window=None, final=True)
    assert sorted(entry.value for entry in document.distribution) == ["no", "yes"]
    mechanism = config.spec.mechanism
    sets = [np.arange(0, mechanism.size, 2), np.arange(1, mechanism.size, 2)]
    found = estimate_sets(mechanism, counted.statistic, 3000, sets)
    shares = {entry.value: entry for entry in document.distribution}
    for place, label in enumerate(("no", "yes")):
        entry = shares[label]
        assert entry.share == pytest.approx(found.value[place], rel=1e-12)
        assert entry.low == pytest.approx(found.low[place], rel=1e-12)
        assert entry.low < (2 / 3 if label == "yes" else 1 / 3) < entry.high
    assert isinstance(mechanism, Lip)
    posterior = estimate_mmse(mechanism, counted.statistic, 3000)
    assert document.mmse is not None
    assert document.mmse.value == "yes"
    assert (document.mmse.share, document.mmse.low) == (posterior.value, posterior.low)
    again = EstimateDocument.model_validate_json(document.to_json())
    assert again.calibration == document.calibration


def test_tops_projections_ranges_and_quantiles_still_work():
    config = collection(LOCAL | {"domain": {"size": 2}})
    counted = totals(config, [[i % 2, 0.1 + 0.2 * (i % 4)] for i in range(400)])
    options = EstimateOptions(
        top=1,
        project="blocks",
        ranges=(parse_range("0..1", config.spec.domain.estimated),),
        quantiles=(0.25,),
        method="bernstein",
    )
    document = build_document(config, counted, window=None, final=True, options=options)
    assert len(document.distribution) == 1
    assert document.simultaneous
    assert document.ranges[0].share == pytest.approx(1.0)
    assert document.quantiles[0].value in (0, 1)
    assert document.mmse is not None
    assert document.mmse.method == "bernstein"


def test_a_wrong_prior_shows_and_a_right_one_does_not():
    config = collection(ILL)
    for shares, wrong in ((10, False), (3, True)):
        counted = totals(config, ["no" if i % shares else "yes" for i in range(20_000)])
        test = build_document(config, counted, window=None, final=True).calibration
        assert test is not None
        assert (test.wrong, test.p_value < 0.001, test.flagged) == (wrong, wrong, int(wrong))
        assert len(test.worst) == int(wrong)
    assert test.worst[0].prior == [0.1, 0.1]
    assert test.worst[0].observed > test.worst[0].expected[1]


def test_tables_say_that_the_estimate_is_withheld():
    config = collection(ILL)
    counted = totals(config, ["no" if i % 3 else "yes" for i in range(20_000)])
    console = Console(record=True, width=200, file=io.StringIO())
    document = build_document(config, counted, window=None, final=True)
    show_document(document, console, Showing(minimum=0, together=False))
    lines = console.export_text().splitlines()
    (said,) = (line for line in lines if line.startswith("with the priors"))
    assert "with the priors, yes: withheld: the reports contradict the priors, which are" in said
    assert any(line.startswith("calibration: priors are too low, p = ") for line in lines)


def test_documents_of_other_mechanisms_say_nothing_of_priors():
    config = collection({"mechanism": "binary", "epsilon": [1.0, 1.0], "domain": {"size": 2}})
    document = build_document(config, totals(config, [0, 1]), window=None, final=True)
    assert b"mmse" not in document.to_json()
    assert b"calibration" not in document.to_json()


def test_a_document_of_no_reports_has_no_numbers():
    config = collection(LOCAL)
    document = build_document(config, totals(config, []), window=None, final=True)
    assert document.mmse is not None
    assert (document.mmse.share, document.mmse.low) == (None, None)
    assert document.calibration is not None
    assert (document.calibration.p_value, document.calibration.wrong) == (1.0, False)
