"""Documents by likelihood: what they hold, and what is refused by name."""

from typing import Any

import numpy as np
import pytest

from ldpstream.agents.config import CollectionConfig, ConfigError
from ldpstream.agents.config.query.capabilities import check_support
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.config.query.queries import parse_range
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.base.errors import QueryError
from tests.exact.enumeration import counted
from tests.property import documents
from tests.property.documents import collection, totals

STARTS: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 0.2,
    "domain": {"interval": [0.0, 3.0], "bins": 30},
}
WEIGHTED = {**STARTS, "epsilon": 1.0, "domain": {"size": 20}, "weights": {"private": 3}}
PUBLIC = {**WEIGHTED, "weights": {"public": 3}}


def answer(config: CollectionConfig, given: WindowTotals, **more: Any) -> dict[str, Any]:
    domain = config.spec.domain.estimated
    ends = ["0.0..0.6", "0.6..3.0"] if domain.size == 30 else ["0..5", "6..19"]
    ranges = tuple(parse_range(one, domain) for one in ends)
    asked = {"top": None, "ranges": ranges, "quantiles": (0.1, 0.5, 0.95)}
    return documents.answer(config, given, **{**asked, **more})


@pytest.mark.grid
@pytest.mark.parametrize("table", [STARTS, WEIGHTED, PUBLIC], ids=["line", "private", "public"])
def test_profiles_leave_the_unbiased_numbers(table: dict[str, Any]):
    config = collection(table)
    given = totals(config, 800)
    document, plain = (
        answer(config, given, method=one, estimand="population") for one in ("profile", "padded")
    )
    named = False
    for one, other in zip(
        document["distribution"] + document["ranges"],
        plain["distribution"] + plain["ranges"],
        strict=True,
    ):
        assert {**one, "low": 0, "high": 0, "bound": 0, "forged": 0, "weight": 0} == {
            **other, "low": 0, "high": 0, "bound": 0, "forged": 0, "weight": 0
        }  # fmt: skip
        assert 0.0 <= one["low"] <= one["high"] <= 1.0
        named |= one["bound"] == "profile"
    assert named == (table is STARTS)
    if table is STARTS:
        assert [one["bound"] for one in document["quantiles"]] == ["profile"] * 3
    assert [one["p"] for one in document["quantiles"]] == [0.1, 0.5, 0.95]
    assert all("bound" not in one for one in plain["quantiles"])


def test_weights_are_bounded_as_without_likelihood():
    config = collection(WEIGHTED)
    given = totals(config, 3_000)
    document, plain = (answer(config, given, method=one) for one in ("profile", "padded"))
    assert [one["weight"] for one in document["ranges"]] == [
        one["weight"] for one in plain["ranges"]
    ]


@pytest.mark.grid
@pytest.mark.parametrize("n", [0, 1, 2, 4])
@pytest.mark.parametrize("estimand", ["respondents", "population", "active"])
def test_few_reports_have_wide_bounds(n: int, estimand: Any):
    config = collection(STARTS)
    document = answer(config, totals(config, n), method="profile", estimand=estimand)
    ends = [one[end] for one in document["quantiles"] for end in ("low", "value", "high")]
    if n == 0:
        assert ends == [None] * 9
    else:
        assert None not in ends
        assert [(one["low"], one["high"]) for one in document["ranges"]] == [(0.0, 1.0)] * 2


def test_post_selected_lists_are_not_profiled():
    config = collection(STARTS)
    given = totals(config, 800)
    document = answer(config, given, method="profile", top=3)
    assert document["simultaneous"]
    assert {one["bound"] for one in document["distribution"]} == {"noise"}
    assert {one["bound"] for one in document["ranges"]} == {"profile"}


def test_a_population_is_not_profiled_where_devices_report_several_times():
    config = collection(STARTS, window={"size": "10m", "hop": "5m"}, spread=None)
    given = totals(config, 3_000)
    for estimand, profiled in (("respondents", True), ("population", False)):
        document = answer(config, given, method="profile", estimand=estimand)
        assert ("bound" in document["quantiles"][0]) == profiled


@pytest.mark.parametrize(
    "table",
    [
        {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": {"size": 40}},
        {"mechanism": "randomized-response", "epsilon": 1.0, "domain": {"size": 40}},
        {"mechanism": "projective-geometry", "epsilon": 1.0, "domain": {"size": 40}},
        {"mechanism": "subset-selection", "epsilon": 1.0, "domain": {"size": 40}},
        {"mechanism": "l1-bits", "epsilon": 1.0, "domain": {"size": 40}},
        {"mechanism": "tree", "epsilon": 1.0, "domain": {"size": 40}},
        {**STARTS, "domain": {"grid": [8, 5]}},
        {**STARTS, "domain": {"size": 1_025}},
    ],
    ids=["hadamard", "response", "geometry", "subset", "bits", "tree", "grid", "many"],
)
def test_mechanisms_without_a_likelihood_are_refused_by_name(table: dict[str, Any]):
    said = (
        "expected padded or another, got profile, which is for l1-geometric in one dimension "
        f"of 2 to 1,024 values: this is {table['mechanism']} with "
    )
    with pytest.raises(ConfigError, match=f"collection.c.method: {said}"):
        collection(table, method="profile")
    spec = collection(table).spec
    with pytest.raises(QueryError, match=f"method: {said}"):
        check_support(EstimateOptions(method="profile"), spec)


def test_profiles_find_a_point_among_noise():
    """Where the unbiased bounds say nothing, likelihood has the median within two bins."""
    bins = {"interval": [0.0, 3.0], "bins": 60}
    config = collection({**STARTS, "epsilon": 0.1, "domain": bins})
    statistic = counted(config.spec.mechanism, np.full(5_000, 23), 3)
    given = WindowTotals(0, 60_000, statistic, 5_000, late=0, rejected=0)
    document, plain = (
        documents.answer(config, given, top=0, quantiles=(0.5,), method=method)["quantiles"][0]
        for method in ("profile", "padded")
    )
    assert 23 * 0.05 - 0.11 < document["low"][0] <= 23 * 0.05 + 1e-9
    assert 23 * 0.05 - 1e-9 <= document["high"][0] < 23 * 0.05 + 0.11
    assert plain["high"][0] - plain["low"][0] > 1.0
