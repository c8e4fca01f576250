"""Private weights: labels, refusals, exact margins, and sums of weights without bias."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.planning.predictions import predicted_linear_variances
from ldpstream.estimators.weights import estimate_weights
from ldpstream.mechanisms import CollectionSpec, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from tests.exact.enumeration import accumulated, counted
from tests.exact.specs import IDS
from tests.seeded import SeededEntropy

LARGEST = 4
KINDS = pytest.mark.parametrize("kind", [L1Bits, L1Geometric])


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


@KINDS
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


@KINDS
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
