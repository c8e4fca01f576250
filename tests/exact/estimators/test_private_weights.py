"""Private and public weights: labels, refusals, and sums without bias, their noise, and bounds."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.planning.predictions import predicted_linear_variances
from ldpstream.estimators.weights import estimate_public_weights, estimate_weights, weight_sums
from ldpstream.mechanisms import CollectionSpec, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from tests.exact.enumeration import accumulated, counted, some_statistic
from tests.exact.specs import IDS, KINDS, PlainKind, weighted
from tests.seeded import SeededEntropy

LARGEST = 4
L1_KINDS = pytest.mark.parametrize("kind", [L1Bits, L1Geometric])


def spec_of(mechanism_id: str, domain: dict[str, Any], **keys: object) -> CollectionSpec:
    table = {"mechanism": mechanism_id, "epsilon": 1.0, "domain": domain}
    weights = {"weights": {"private": LARGEST}}
    return CollectionSpec.from_mapping("shop", table | weights | keys, base=Path())


@IDS
def test_a_label_ends_with_its_weight(mechanism_id: str):
    line = spec_of(mechanism_id, {"size": 6}).domain
    assert isinstance(line, WeightedDomain)
    expected = [5 * 2 + 4, 0]
    assert line.index([[2, 4], [0, 0]]).tolist() == expected
    assert line.index(np.array([[2, 4], [0, 0]])).tolist() == expected
    assert line.parse_columns([["2", "4"], ["0", " 0"]]).tolist() == expected
    assert [line.label(index) for index in expected] == [[2, 4], [0, 0]]
    plane = spec_of(mechanism_id, {"grid": [2, 3]}).domain
    assert plane.index([[1, 2, 3]]).tolist() == [5 * 5 + 3]
    assert plane.index(np.array([[1, 2, 3]])).tolist() == [5 * 5 + 3]
    assert plane.label(5 * 5 + 3) == [1, 2, 3]
    bins = spec_of(mechanism_id, {"interval": [0.0, 1.0], "bins": 2}).domain
    assert bins.index([[0.75, 1]]).tolist() == [5 + 1]
    assert bins.index(np.array([[0.75, 1.0]])).tolist() == [5 + 1]
    rounded = {"interval": [0.0, 1.0], "bins": 2, "rounding": "random"}
    found = spec_of(mechanism_id, rounded).domain.place([[0.5, 2]], entropy=SeededEntropy(1))
    assert found.tolist() == [5 + 2]


@IDS
@pytest.mark.parametrize("bad", [LARGEST + 1, -1, 1.5, "many", None, True, 10**30, math.nan])
def test_a_weight_outside_names_its_position_and_never_itself(mechanism_id: str, bad: object):
    spec = spec_of(mechanism_id, {"size": 6})
    with pytest.raises(ValueOutsideDomainError, match="position 1") as caught:
        spec.frame([[0, 0], [1, bad], [99, 0]])
    assert caught.value.expected == "a weight, a whole number in 0..4, after the value"
    with pytest.raises(ValueOutsideDomainError, match="position 1"):
        spec.domain.parse_columns([["0", "0"], ["1", str(bad)]])
    # The first bad line counts, whatever is wrong with it.
    with pytest.raises(ValueOutsideDomainError, match="position 0") as caught:
        spec.frame([[7, 0], [1, bad]])
    assert caught.value.expected == "an integer in 0..5"


@IDS
@pytest.mark.parametrize("label", [3, [3], [], [1, 2, 3], "3,1", None])
def test_labels_of_another_form_are_refused(mechanism_id: str, label: object):
    with pytest.raises(ValueOutsideDomainError, match="position 0"):
        spec_of(mechanism_id, {"size": 6}).domain.index([label])


@pytest.mark.parametrize(
    ("weights", "path"),
    [
        (3, "weights"),
        ({}, "weights.private"),
        ({"private": 0}, "weights.private"),
        ({"private": 1.5}, "weights.private"),
        ({"private": 10**6}, "weights.private"),
        ({"private": 10, "hidden": 10}, "weights.hidden"),
    ],
)
@IDS
def test_impossible_weights_are_named(mechanism_id: str, weights: object, path: str):
    with pytest.raises(SpecError) as caught:
        spec_of(mechanism_id, {"size": 6}, weights=weights)
    assert caught.value.path == f"collection.shop.{path}"


@IDS
def test_weights_need_the_l1_metric_and_room(mechanism_id: str):
    with pytest.raises(SpecError, match="weights under the L1 metric only"):
        spec_of(mechanism_id, {"grid": [4, 4]}, policy={"metric": "l2"})
    with pytest.raises(SpecError, match=r"pairs of value and weight|values in 2 dimensions"):
        spec_of(mechanism_id, {"size": 30_000}, weights={"private": 60_000})


@IDS
def test_weights_are_a_part_of_the_spec(mechanism_id: str):
    weighted = spec_of(mechanism_id, {"size": 6})
    more = spec_of(mechanism_id, {"size": 6}, weights={"private": 5})
    grid = CollectionSpec.from_mapping(
        "shop",
        {"mechanism": mechanism_id, "epsilon": 1.0, "domain": {"sizes": [6, 5]}},
        base=Path(),
    )
    assert len({spec.fingerprint for spec in (weighted, more, grid)}) == 3
    assert weighted.mechanism.certify().passed


@L1_KINDS
@pytest.mark.parametrize("shape", [(6,), (3, 4)])
def test_the_values_alone_are_estimated_as_their_own_mechanism_does(kind: type, shape: tuple):
    """The margin of the channel and of its decoder, so of every estimate."""
    mechanism = kind(1.0, (*shape, LARGEST + 1), weighted=True)
    values = np.random.default_rng(1).integers(0, mechanism.size, 400)
    statistic = counted(mechanism, values, 1)
    alone, summed = mechanism.marginal, mechanism.marginal_statistic(statistic)
    assert alone == kind(1.0, shape)
    assert alone.marginal is None
    given = np.arange(mechanism.size).reshape(-1, LARGEST + 1)
    as_sets = estimate_sets(mechanism, statistic, 400, list(given))
    found = estimate_values(alone, summed, 400)
    np.testing.assert_allclose(found.value, as_sets.value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.se, as_sets.se, rtol=1e-9)


@L1_KINDS
def test_sums_of_weights_have_no_bias(kind: type):
    """Decoded reports of each pair, over the exact channel: the weight inside the set, else 0."""
    mechanism = kind(1.0, (3, 3), weighted=True)
    rows, reports = mechanism.channel().rows, mechanism.possible_reports()
    means = []
    for members in (np.array([1]), np.array([0, 1, 2])):
        decoded = []
        for y in range(len(reports)):
            statistic = accumulated(mechanism, reports[y : y + 1])
            decoded.append(estimate_weights(mechanism, statistic, 1, [members], largest=2).value[0])
        means.append([sum(float(p) * decoded[y] for y, p in row.items()) for row in rows])
    np.testing.assert_allclose(means[0], [0, 0, 0, 0, 1, 2, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(means[1], [0, 1, 2] * 3, atol=1e-12)


def test_the_sum_of_all_weights_has_the_noise_of_the_theory():
    """`D_w (1/t^2 - 1)/4`, and for a set of values the product with its own noise."""
    mechanism = L1Bits(1.0, (6, LARGEST + 1), weighted=True)
    unit = (1 / math.tanh(0.5) ** 2 - 1) / 4
    weights = np.tile(np.arange(LARGEST + 1.0), 6)
    (found,) = predicted_linear_variances(mechanism, weights[None])
    assert found == pytest.approx(LARGEST * unit, rel=1e-12)
    inside = np.repeat(np.arange(6) <= 2, LARGEST + 1)
    noise = mechanism.decoder.noise(weights * inside)
    # One noisy end: v = unit. (v + 1{in})(v_w + weight^2) - 1{in} weight^2.
    expected = (unit + inside) * (LARGEST * unit + weights**2) - inside * weights**2
    np.testing.assert_allclose(noise, expected, rtol=1e-12)


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
