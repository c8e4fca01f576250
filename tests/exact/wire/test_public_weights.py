"""Public weights: bytes, refusals, certificates and exact statistics."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, SpecError
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.weights.public import LARGEST_PUBLIC_WEIGHT
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.frame import decode_frame
from tests.exact.enumeration import accumulated
from tests.exact.specs import IDS, KINDS, PlainKind, weighted
from tests.seeded import SeededEntropy


def spec_of(mechanism_id: str, weights: object, **keys: object) -> CollectionSpec:
    table: dict[str, Any] = {"mechanism": mechanism_id, "epsilon": 1.0, "domain": {"size": 6}}
    return CollectionSpec.from_mapping("shop", table | {"weights": weights} | keys, base=Path())


@IDS
@pytest.mark.parametrize(("largest", "weight_bytes"), [(1, 1), (255, 1), (256, 2), (4095, 2)])
def test_a_report_ends_with_the_weight_itself(mechanism_id: str, largest: int, weight_bytes: int):
    spec = spec_of(mechanism_id, {"public": largest})
    plain = {"l1-bits": L1Bits, "l1-geometric": L1Geometric}[mechanism_id](1.0, (6,))
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
def test_impossible_reports_are_refused_alone(mechanism_id: str):
    mechanism = spec_of(mechanism_id, {"public": 300}).mechanism
    payload = np.zeros((4, mechanism.report_bytes), dtype=np.uint8)
    payload[1, -2:] = 300 % 256, 300 // 256
    payload[2, -2:] = 301 % 256, 301 // 256
    payload[3, 0] = 0xFF
    payload.flags.writeable = False
    assert mechanism.decode(payload)[1].tolist() == [True, True, False, False]


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
    with pytest.raises(SpecError, match="no such key with matrix") as caught:
        spec_of("matrix", {"public": 3})
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
def test_values_under_one_weight_are_protected_and_weights_are_not(kind: PlainKind):
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
def test_the_largest_sums_are_exact(kind: PlainKind):
    """Every product of the report's statistic by the weight and by its square, as integers."""
    mechanism = weighted(kind, (3, 5), LARGEST_PUBLIC_WEIGHT)
    weights = LARGEST_PUBLIC_WEIGHT - np.arange(3000) % 5
    values = np.random.default_rng(2).integers(0, 15, 3000) * mechanism.weights + weights
    reports = mechanism.privatize(values, entropy=SeededEntropy(2))
    own, _ = mechanism.values.decode(reports[:, : mechanism.values.report_bytes])
    expected = [[0] * mechanism.values.statistic_size for _ in range(3)]
    for place, weight in enumerate(weights.tolist()):
        single = accumulated(mechanism.values, own[place : place + 1]).tolist()
        for power, sums in enumerate(expected):
            sums[:] = [s + weight**power * y for s, y in zip(sums, single, strict=True)]
    assert mechanism.powers(accumulated(mechanism, reports)).tolist() == expected
    assert LARGEST_PUBLIC_WEIGHT**2 << 39 < 1 << 63


@KINDS
def test_repetitions_are_added_as_if_written_out(kind: PlainKind):
    values = weighted(kind, (4, 3), 1).values
    reports = values.privatize(np.arange(12).repeat(3), entropy=SeededEntropy(3))
    times = np.random.default_rng(3).integers(0, 9, 36)
    found, general = values.empty(), values.empty()
    values.accumulate_times(found, reports, times)
    Mechanism.accumulate_times(values, general, reports, times)
    assert np.array_equal(found, general)


@KINDS
@pytest.mark.parametrize("shape", [(6,), (3, 4)])
def test_the_values_alone_are_those_of_their_own_mechanism(kind: PlainKind, shape: tuple):
    mechanism = weighted(kind, shape, 100)
    values = np.random.default_rng(1).integers(0, mechanism.size, 400)
    reports = mechanism.privatize(values, entropy=SeededEntropy(1))
    alone = mechanism.marginal
    statistic = mechanism.marginal_statistic(accumulated(mechanism, reports))
    assert alone == kind(1.0, shape)
    own = alone.privatize(values // 101, entropy=SeededEntropy(1))
    assert np.array_equal(statistic, accumulated(alone, own))
