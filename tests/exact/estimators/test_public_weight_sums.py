"""Sums of public weights: exact integers, no bias, their noise by enumeration, their bounds."""

import math
from typing import Any

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.weights import estimate_public_weights, weight_sums
from ldpstream.mechanisms.families.l1.bits import L1Bits
from tests.exact.enumeration import accumulated, some_statistic
from tests.exact.specs import KINDS, PlainKind, weighted
from tests.seeded import SeededEntropy

SETS = [np.array([1]), np.array([0, 1]), np.array([1, 2, 3]), np.arange(4)]


@KINDS
@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_sums_and_their_noise_have_no_bias(kind: PlainKind, shape: tuple[int, ...]):
    """Over the exact channel: means w 1{x in the set}, w 1{x} again; squared errors w^2 v(x)."""
    mechanism = weighted(kind, shape, 3)
    rows, reports = mechanism.channel().rows, mechanism.possible_reports()
    singles = [accumulated(mechanism, reports[y : y + 1]) for y in range(len(reports))]
    found = [weight_sums(mechanism, one, SETS, "respondents") for one in singles]
    totals = np.stack([one.total for one in found])
    noise = np.stack([one.squares - one.offset for one in found])
    channel = np.zeros((mechanism.size, len(reports)))
    for pair, row in enumerate(rows):
        channel[pair, list(row)] = [float(p) for p in row.values()]
    values, weights = np.divmod(np.arange(mechanism.size), 4)
    truth = np.stack([weights * np.isin(values, members) for members in SETS], axis=1)
    np.testing.assert_allclose(channel @ totals, truth, atol=1e-11)
    errors = channel @ totals**2 - truth**2
    np.testing.assert_allclose(channel @ noise, errors, atol=1e-10)
    own = mechanism.values.decoder.noise(np.array([0.0, 1.0, 0.0, 0.0]))
    np.testing.assert_allclose(errors[:, 0], weights**2 * own[values], atol=1e-10)
    # The whole domain has none, and the worst and least noise of any data lie around the others.
    assert np.abs(errors[:, 3]).max() <= 1e-12
    for pair, weight in enumerate(weights.tolist()):
        for y in rows[pair]:
            assert (found[y].noise.floor <= errors[pair] + 1e-10).all(), weight
            assert (found[y].noise.ceiling >= errors[pair] - 1e-10).all(), weight
    decoded = totals[:, :3]
    assert (found[0].limits.least[:3] <= decoded.min(axis=0) + 1e-9).all()
    assert (found[0].limits.largest[:3] >= decoded.max(axis=0) - 1e-9).all()


@KINDS
def test_pairs_of_value_and_weight_have_no_decoder(kind: PlainKind):
    with pytest.raises(ValueError, match="expected queries of values"):
        _ = weighted(kind, (4,), 2).decoder


@KINDS
@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("method", ["normal", "bernstein"])
def test_equal_weights_give_the_shares_times_the_weight(
    kind: PlainKind, estimand: str, method: str
):
    """All weights the largest: estimates and bounds are those of shares, times the weight."""
    mechanism = weighted(kind, (5,), 7)
    pairs = np.random.default_rng(5).integers(0, 5, 500) * 8 + 7
    statistic = accumulated(mechanism, mechanism.privatize(pairs, entropy=SeededEntropy(5)))
    alone, plain = mechanism.marginal, mechanism.marginal_statistic(statistic)
    options: dict[str, Any] = {"estimand": estimand, "method": method}
    found = estimate_public_weights(mechanism, statistic, 500, **options)
    shares = estimate_values(alone, plain, 500, **options)
    sets = [np.array([0, 1]), np.array([1, 2, 3])]
    in_sets = estimate_public_weights(mechanism, statistic, 500, sets, **options)
    of_sets = estimate_sets(alone, plain, 500, sets, **options)
    for weighed, own in ((found, shares), (in_sets, of_sets)):
        for name in ("value", "se", "low", "high", "influence"):
            expected = 7 * getattr(own, name)
            np.testing.assert_allclose(getattr(weighed, name), expected, rtol=1e-10, err_msg=name)


@KINDS
def test_sums_that_reports_disclose_exactly(kind: PlainKind):
    """The sum of all weights, and that of no weight at all; a population's are not known."""
    mechanism = weighted(kind, (4,), 9)
    pairs, statistic = some_statistic(mechanism, 200)
    whole = [np.arange(4)]
    found = estimate_public_weights(mechanism, statistic, 200, whole, method="bernstein")
    assert found.low[0] == found.value[0] == found.high[0] == (pairs % 10).sum() / 200
    drawn = estimate_public_weights(mechanism, statistic, 200, whole, estimand="population")
    expected = (pairs % 10).std(ddof=1) / math.sqrt(200)
    assert drawn.se[0] == pytest.approx(expected, rel=1e-9)
    values = pairs // 10 * 10
    nothing = accumulated(mechanism, mechanism.privatize(values, entropy=SeededEntropy(1)))
    found = estimate_public_weights(mechanism, nothing, 200)
    assert not np.stack([found.value, found.se, found.low, found.high]).any()
    drawn = estimate_public_weights(mechanism, nothing, 200, whole, estimand="population")
    assert drawn.se[0] == 9 / 200


@KINDS
def test_a_population_may_have_heavier_weights(kind: PlainKind):
    """All respondents have the weight 1: the worst noise of others is that of the largest."""
    mechanism = weighted(kind, (4,), 9)
    pairs = np.arange(60) % 4 * 10 + 1
    statistic = accumulated(mechanism, mechanism.privatize(pairs, entropy=SeededEntropy(1)))
    own = weight_sums(mechanism, statistic, SETS, "respondents")
    drawn = weight_sums(mechanism, statistic, SETS, "population")
    assert own.noise.heaviest is None
    worst = np.array([mechanism.values.decoder.noise(np.isin(range(4), s) + 0.0) for s in SETS])
    np.testing.assert_allclose(own.noise.ceiling, 60 * worst.max(axis=1), atol=1e-9)
    np.testing.assert_allclose(own.noise.reports[:3], 60 / 81)
    if kind is L1Bits:
        np.testing.assert_allclose(drawn.noise.heaviest, 81 * worst.max(axis=1), atol=1e-9)
        for method in ("bernstein", "anytime"):
            options: dict[str, Any] = {"method": method}
            known = estimate_public_weights(mechanism, statistic, 60, SETS[:1], **options)
            options["estimand"] = "population"
            unknown = estimate_public_weights(mechanism, statistic, 60, SETS[:1], **options)
            assert unknown.high - unknown.low > 2 * (known.high - known.low)


@KINDS
def test_a_statistic_of_another_number_is_refused(kind: PlainKind):
    mechanism = weighted(kind, (4,), 9)
    _, statistic = some_statistic(mechanism, 200)
    with pytest.raises(ValueError, match="the 200 reports"):
        estimate_public_weights(mechanism, statistic, 201)
    with pytest.raises(ValueError, match=r"0\.\.3"):
        estimate_public_weights(mechanism, statistic, 200, [np.array([4])])
    empty = estimate_public_weights(mechanism, mechanism.empty(), 0)
    assert np.isnan(empty.value).all()
