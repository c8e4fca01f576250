"""Public weights: bytes, refusals, certificates, exact sums, and their noise by enumeration."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.weights import estimate_public_weights, weight_sums
from ldpstream.mechanisms import CollectionSpec, SeededEntropy, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.frame import decode_frame
from ldpstream.mechanisms.l1_bits import L1Bits
from ldpstream.mechanisms.l1_geometric import L1Geometric
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.public_weights import (
    LARGEST_PUBLIC_WEIGHT,
    L1BitsPublicWeights,
    L1GeometricPublicWeights,
    PublicWeights,
)

IDS = pytest.mark.parametrize("mechanism_id", ["l1-bits", "l1-geometric"])
KINDS = pytest.mark.parametrize("kind", [L1BitsPublicWeights, L1GeometricPublicWeights])
PLAIN = {L1BitsPublicWeights: L1Bits, L1GeometricPublicWeights: L1Geometric}
SETS = [np.array([1]), np.array([0, 1]), np.array([1, 2, 3]), np.arange(4)]


def weighted(kind: type[PublicWeights], shape: tuple[int, ...], largest: int) -> PublicWeights:
    return kind(PLAIN[kind](1.0, shape), largest)


def spec_of(mechanism_id: str, weights: object, **keys: object) -> CollectionSpec:
    table: dict[str, Any] = {"mechanism": mechanism_id, "epsilon": 1.0, "domain": {"size": 6}}
    return CollectionSpec.from_mapping("shop", table | {"weights": weights} | keys, base=Path())


def absorbed(mechanism: Mechanism, reports: np.ndarray) -> np.ndarray:
    statistic = mechanism.empty()
    mechanism.absorb(statistic, reports)
    return statistic


def some_statistic(mechanism: Mechanism, n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of value and weight, and the statistic of their reports."""
    values = np.random.default_rng(seed).integers(0, mechanism.size, n)
    reports = mechanism.privatize(values, entropy=SeededEntropy(seed))
    return values, absorbed(mechanism, reports)


@IDS
@pytest.mark.parametrize(("largest", "weight_bytes"), [(1, 1), (255, 1), (256, 2), (4095, 2)])
def test_a_report_ends_with_the_weight_itself(mechanism_id: str, largest: int, weight_bytes: int):
    spec = spec_of(mechanism_id, {"public": largest})
    plain = PLAIN[type(spec.mechanism)](1.0, (6,))
    given = [[x % 6, x * 31 % (largest + 1)] for x in range(40)] + [[5, largest]]
    reports = spec.privatize(given, entropy=SeededEntropy(1))
    assert reports.shape == (41, plain.report_bytes + weight_bytes)
    ends = [int.from_bytes(row[-weight_bytes:].tobytes(), "little") for row in reports]
    assert ends == [weight for _, weight in given]
    own = plain.privatize(np.array([x for x, _ in given]), entropy=SeededEntropy(1))
    assert np.array_equal(reports[:, :-weight_bytes], plain.encode(own))
    # Through a frame, in another order.
    data = spec.frame(given, times_ms=[0] * 41, entropy=SeededEntropy(1))
    length = spec.mechanism.report_bytes
    frame = decode_frame(data, fingerprint=spec.fingerprint, report_bytes=length)
    decoded, valid = spec.mechanism.decode(frame.payload)
    assert valid.all()
    assert sorted(map(bytes, decoded)) == sorted(map(bytes, reports))


@IDS
def test_reports_that_nothing_produces_are_refused_alone(mechanism_id: str):
    mechanism = spec_of(mechanism_id, {"public": 300}).mechanism
    payload = np.zeros((4, mechanism.report_bytes), dtype=np.uint8)
    payload[1, -2:] = 300 % 256, 300 // 256
    payload[2, -2:] = 301 % 256, 301 // 256
    payload[3, 0] = 0xFF
    payload.flags.writeable = False
    assert mechanism.decode(payload)[1].tolist() == [True, True, False, False]


@IDS
@pytest.mark.parametrize("bad", [8, -1, 1.5, "many", None, True, 10**30, math.nan])
def test_a_weight_outside_names_its_position_and_never_itself(mechanism_id: str, bad: object):
    spec = spec_of(mechanism_id, {"public": 7})
    with pytest.raises(ValueOutsideDomainError, match="position 1") as caught:
        spec.frame([[0, 0], [1, bad], [99, 0]])
    assert caught.value.expected == "a weight, a whole number in 0..7, after the value"


@pytest.mark.parametrize(
    ("weights", "path"),
    [
        ({"public": 0}, "weights.public"),
        ({"public": 2.0}, "weights.public"),
        ({"public": None}, "weights.public"),
        ({"public": LARGEST_PUBLIC_WEIGHT + 1}, "weights.public"),
        ({"public": 3, "private": 3}, "weights.private"),
    ],
)
@IDS
def test_impossible_weights_are_named(mechanism_id: str, weights: object, path: str):
    with pytest.raises(SpecError) as caught:
        spec_of(mechanism_id, weights)
    assert caught.value.path == f"collection.shop.{path}"


def test_other_mechanisms_take_no_weights():
    with pytest.raises(SpecError, match="no such key with randomized-response") as caught:
        spec_of("randomized-response", {"public": 3})
    assert caught.value.path == "collection.shop.weights"


@IDS
def test_public_private_and_no_weights_are_different_specs(mechanism_id: str):
    specs = [spec_of(mechanism_id, weights) for weights in ({"public": 3}, {"public": 4})]
    specs.append(spec_of(mechanism_id, {"private": 3}))
    assert len({spec.fingerprint for spec in specs}) == 3
    assert b'"weights":{"public":3}' in specs[0].canonical
    # The metric is about the values alone: any that the mechanism keeps will do.
    grid = {"domain": {"grid": [3, 3]}, "policy": {"metric": "l2"}}
    assert spec_of(mechanism_id, {"public": 3}, **grid).mechanism.certify().passed


@KINDS
def test_values_under_one_weight_are_protected_and_weights_are_not(kind: type[PublicWeights]):
    mechanism = weighted(kind, (2, 2), 2)
    matrix = mechanism.policy.matrix().reshape(4, 3, 4, 3)
    own = mechanism.values.policy.matrix()
    for weight in range(3):
        for other in range(3):
            expected = own if weight == other else np.full((4, 4), np.inf)
            assert np.array_equal(matrix[:, weight, :, other], expected)
    certificate, large = mechanism.certify(), weighted(kind, (2, 2), 4000).certify()
    assert (certificate.proof, large.proof) == ("enumeration", "structure")
    assert certificate.losses == large.losses
    for found in (certificate, large):
        assert found.passed
        assert found.disclosed == ("the weight",)
        assert found.unprotected == "values with different weights: a report reveals the weight"
    assert large.unprotected_pairs == 16 * 4001 * 4000


@KINDS
def test_the_largest_sums_are_exact(kind: type[PublicWeights]):
    """Every product of the report's statistic by the weight and by its square, as integers."""
    mechanism = weighted(kind, (3, 5), LARGEST_PUBLIC_WEIGHT)
    weights = LARGEST_PUBLIC_WEIGHT - np.arange(3000) % 5
    values = np.random.default_rng(2).integers(0, 15, 3000) * mechanism.weights + weights
    reports = mechanism.privatize(values, entropy=SeededEntropy(2))
    own, _ = mechanism.values.decode(reports[:, : mechanism.values.report_bytes])
    expected = [[0] * 15 for _ in range(3)]
    for place, weight in enumerate(weights.tolist()):
        single = absorbed(mechanism.values, own[place : place + 1]).tolist()
        for power, sums in enumerate(expected):
            sums[:] = [s + weight**power * y for s, y in zip(sums, single, strict=True)]
    assert mechanism.powers(absorbed(mechanism, reports)).tolist() == expected
    assert LARGEST_PUBLIC_WEIGHT**2 << 39 < 1 << 63


@KINDS
def test_repetitions_are_added_as_if_written_out(kind: type[PublicWeights]):
    values = weighted(kind, (4, 3), 1).values
    reports = values.privatize(np.arange(12).repeat(3), entropy=SeededEntropy(3))
    times = np.random.default_rng(3).integers(0, 9, 36)
    found, general = values.empty(), values.empty()
    values.absorb_times(found, reports, times)
    Mechanism.absorb_times(values, general, reports, times)
    assert np.array_equal(found, general)


@KINDS
@pytest.mark.parametrize("shape", [(6,), (3, 4)])
def test_the_values_alone_are_those_of_their_own_mechanism(kind: type[PublicWeights], shape: tuple):
    mechanism = weighted(kind, shape, 100)
    values = np.random.default_rng(1).integers(0, mechanism.size, 400)
    reports = mechanism.privatize(values, entropy=SeededEntropy(1))
    alone, statistic = mechanism.marginal(absorbed(mechanism, reports))
    assert alone == PLAIN[kind](1.0, shape)
    own = alone.privatize(values // 101, entropy=SeededEntropy(1))
    assert np.array_equal(statistic, absorbed(alone, own))


@KINDS
@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_sums_and_their_noise_have_no_bias(kind: type[PublicWeights], shape: tuple[int, ...]):
    """Over the exact channel: means w 1{x in the set}, w 1{x} again; squared errors w^2 v(x)."""
    mechanism = weighted(kind, shape, 3)
    rows, reports = mechanism.channel().rows, mechanism.possible_reports()
    singles = [absorbed(mechanism, reports[y : y + 1]) for y in range(len(reports))]
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
    own = mechanism.values.decoder().noise(np.array([0.0, 1.0, 0.0, 0.0]))
    np.testing.assert_allclose(errors[:, 0], weights**2 * own[values], atol=1e-10)
    # The whole domain has none, and the worst and least noise of any data lie around the others.
    assert np.abs(errors[:, 3]).max() <= 1e-12
    for pair, weight in enumerate(weights.tolist()):
        for y in rows[pair]:
            assert (found[y].floor <= errors[pair] + 1e-10).all(), weight
            assert (found[y].ceiling >= errors[pair] - 1e-10).all(), weight
    decoded = totals[:, :3]
    assert (found[0].least[:3] <= decoded.min(axis=0) + 1e-9).all()
    assert (found[0].largest[:3] >= decoded.max(axis=0) - 1e-9).all()


@KINDS
def test_sums_are_those_of_pairs_where_these_are_told_apart(kind: type[PublicWeights]):
    mechanism = weighted(kind, (4,), 2)
    _, statistic = some_statistic(mechanism, 300)
    decoder = mechanism.decoder()
    sums = weight_sums(mechanism, statistic, None, "respondents")
    for value in range(4):
        query = np.zeros((4, 3))
        query[value] = [0.0, 1.0, 2.0]
        assert decoder.total(query.ravel(), statistic) == pytest.approx(sums.total[value])
    with pytest.raises(ValueError, match="4 weights"):
        weighted(kind, (4,), 3).decoder()


@KINDS
@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("method", ["normal", "bernstein"])
def test_equal_weights_give_the_shares_times_the_weight(
    kind: type[PublicWeights], estimand: str, method: str
):
    """All weights the largest: estimates and bounds are those of shares, times the weight."""
    mechanism = weighted(kind, (5,), 7)
    pairs = np.random.default_rng(5).integers(0, 5, 500) * 8 + 7
    statistic = absorbed(mechanism, mechanism.privatize(pairs, entropy=SeededEntropy(5)))
    alone, plain = mechanism.marginal(statistic)
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
def test_what_the_reports_tell_exactly(kind: type[PublicWeights]):
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
    nothing = absorbed(mechanism, mechanism.privatize(values, entropy=SeededEntropy(1)))
    found = estimate_public_weights(mechanism, nothing, 200)
    assert not np.stack([found.value, found.se, found.low, found.high]).any()
    drawn = estimate_public_weights(mechanism, nothing, 200, whole, estimand="population")
    assert drawn.se[0] == 9 / 200


@KINDS
def test_a_population_may_have_heavier_weights(kind: type[PublicWeights]):
    """All respondents have the weight 1: the worst noise of others is that of the largest."""
    mechanism = weighted(kind, (4,), 9)
    pairs = np.arange(60) % 4 * 10 + 1
    statistic = absorbed(mechanism, mechanism.privatize(pairs, entropy=SeededEntropy(1)))
    own = weight_sums(mechanism, statistic, SETS, "respondents")
    drawn = weight_sums(mechanism, statistic, SETS, "population")
    assert own.heaviest is None
    worst = np.array([mechanism.values.decoder().noise(np.isin(range(4), s) + 0.0) for s in SETS])
    np.testing.assert_allclose(own.ceiling, 60 * worst.max(axis=1), atol=1e-9)
    np.testing.assert_allclose(own.noisy[:3], 60 / 81)
    if kind is L1BitsPublicWeights:
        np.testing.assert_allclose(drawn.heaviest, 81 * worst.max(axis=1), atol=1e-9)
        for method in ("bernstein", "anytime"):
            options: dict[str, Any] = {"method": method}
            known = estimate_public_weights(mechanism, statistic, 60, SETS[:1], **options)
            options["estimand"] = "population"
            unknown = estimate_public_weights(mechanism, statistic, 60, SETS[:1], **options)
            assert unknown.high - unknown.low > 2 * (known.high - known.low)


@KINDS
def test_a_statistic_of_another_number_is_refused(kind: type[PublicWeights]):
    mechanism = weighted(kind, (4,), 9)
    _, statistic = some_statistic(mechanism, 200)
    with pytest.raises(ValueError, match="the 200 reports"):
        estimate_public_weights(mechanism, statistic, 201)
    with pytest.raises(ValueError, match=r"0\.\.3"):
        estimate_public_weights(mechanism, statistic, 200, [np.array([4])])
    empty = estimate_public_weights(mechanism, mechanism.empty(), 0)
    assert np.isnan(empty.value).all()
