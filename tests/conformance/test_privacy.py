"""The guarantee of every mechanism, in exact arithmetic at every output of every pair."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import Channel
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import INSTANCES, LISTED
from tests.conformance.instances import certificate as certificate_of
from tests.ratios import in_units, is_within

EVERY = pytest.mark.parametrize("mechanism", INSTANCES.values(), ids=INSTANCES.keys())
SMALL = {name: m for name, m in LISTED.items() if m.size <= 64}
EVERY_SMALL = pytest.mark.parametrize("mechanism", SMALL.values(), ids=SMALL.keys())
SATURATED = 40.0
"""Below 64 log 2, the largest loss that probabilities in units of 2^-64 can realise."""


@EVERY_SMALL
def test_every_pair_at_every_output(mechanism: Mechanism):
    channel, policy = mechanism.channel(), mechanism.policy
    rows = in_units(channel.rows)
    floors: dict[Fraction, Fraction] = {}
    for x, row in enumerate(rows):
        assert sum(channel.rows[x].values()) == 1
        for other in range(mechanism.size):
            entry = policy.entry(x, other)
            if entry is None:
                assert not row.keys() <= rows[other].keys(), "a pair called unprotected is not"
                continue
            if entry not in floors:
                floors[entry] = exp_bounds(min(entry, Fraction(1000)))[0]
            assert is_within(row, rows[other], floors[entry]), (x, other)


@EVERY_SMALL
def test_the_policy_matrix_agrees_with_its_entries(mechanism: Mechanism):
    policy = mechanism.policy
    matrix = policy.matrix()
    assert matrix.shape == (mechanism.size, mechanism.size)
    assert not np.diag(matrix).any()
    assert np.isinf(matrix).sum() == policy.unprotected_pairs
    assert (policy.unprotected is None) == (policy.unprotected_pairs == 0)


@EVERY
def test_the_certificate_passes_and_is_tight(mechanism: Mechanism):
    certificate = certificate_of(mechanism)
    assert certificate.passed
    assert certificate.violation is None
    assert certificate.mechanism == mechanism.id
    listed = mechanism.size <= 64 and mechanism in LISTED.values()
    assert certificate.proof == ("enumeration" if listed else "structure")
    assert certificate.unprotected_pairs == mechanism.policy.unprotected_pairs
    assert certificate.losses
    for loss in certificate.losses:
        assert exp_bounds(Fraction(loss.low))[0] <= loss.ratio <= exp_bounds(Fraction(loss.high))[1]
        assert loss.high - loss.low <= 4 * math.ulp(loss.high)
        assert loss.high <= float(loss.budget)
        reachable = min(float(loss.budget), SATURATED)
        assert loss.low >= reachable * (1 - 1e-12) - 1e-17


@EVERY
def test_the_certificate_is_a_json_document(mechanism: Mechanism):
    certificate = certificate_of(mechanism)
    document = json.loads(json.dumps(certificate.to_json(), allow_nan=False))
    assert document["pass"] is True
    assert document["loss"]["low"] <= document["loss"]["high"]
    assert Fraction(document["losses"][-1]["ratio"]) == certificate.losses[-1].ratio
    assert document["policy"]["size"] == mechanism.size


@EVERY_SMALL
def test_an_output_that_one_value_cannot_produce_fails_and_is_named(mechanism: Mechanism):
    channel, policy = mechanism.channel(), mechanism.policy
    pairs = ((x, z) for x in range(mechanism.size) for z in range(mechanism.size) if x != z)
    value, other = next(pair for pair in pairs if policy.entry(*pair) is not None)
    rows = [dict(row) for row in channel.rows]
    output = max(set(rows[value]) & set(rows[other]))
    spare = next(y for y in rows[other] if y != output)
    rows[other][spare] += rows[other].pop(output)
    violation = Channel(tuple(rows), channel.outputs).satisfies(policy)
    assert violation is not None
    assert (violation.other, violation.output, violation.ratio) == (other, output, None)
    assert policy.entry(violation.value, other) is not None
    assert f"values {violation.value} and {other} at output {output}" in str(violation)
