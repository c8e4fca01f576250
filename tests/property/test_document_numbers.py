"""The numbers of a document are exactly the estimators', under the user's own labels."""

from typing import Any

import numpy as np
import pytest

from ldpstream.agents.config.query.queries import parse_range
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.projection import known_totals, project_simplex
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.mechanisms.domains.queries import range_values
from tests.property.documents import BLOCKS, LABELS, LINE, answer, collection, totals


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
