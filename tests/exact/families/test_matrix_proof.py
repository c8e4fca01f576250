"""Certificates of `matrix` by structure: the ratios of the enumeration, and what they refute."""

from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.matrix.noise import worst_ratios
from ldpstream.mechanisms.families.matrix.pairs import ProtectedPairs
from ldpstream.mechanisms.families.matrix.strategy import STRATEGIES
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy
from tests.exact.specs import built, classical, line


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("policy", [line(9.0, 2), classical(60.0, 3)], ids=["line", "classical"])
def test_structure_finds_the_ratios_of_the_enumeration(policy: Policy, name: str):
    mechanism = built(name, policy)
    certificate = mechanism.certify()
    assert certificate.proof == "enumeration"
    enumerated = {loss.budget: loss.ratio for loss in certificate.losses}
    assert worst_ratios(mechanism.rows, mechanism.pairs) == enumerated


def test_long_ratios_are_rounded_up_and_still_prove_the_policy():
    """Prefixes of 100 values under classical LDP: products of 99 alphas, 6,336 bits each."""
    mechanism = built("prefix", classical(1.0, 100))
    certificate = mechanism.certify()
    (loss,) = certificate.losses
    exact = Fraction(WORD, mechanism.rows.thresholds[0]) ** 99
    assert certificate.passed
    assert exact <= loss.ratio <= exact * (1 + Fraction(1, 1 << 500))
    assert len(certificate.to_json()["losses"][0]["ratio"]) < 1000


def test_structure_refutes_a_smaller_policy():
    mechanism = built("haar", classical(1.0, 70))
    pairs = ProtectedPairs.of(classical(1.0 - 1e-12, 70))
    (budget, ratio), *_ = worst_ratios(mechanism.rows, pairs).items()
    assert ratio > exp_bounds(budget)[1]


def test_groups_that_distinguish_protected_values_are_refuted():
    """Blocks of 10 values, three of one block put into another."""
    mechanism = built("prefix", BlockPolicy(1.0, Blocks(np.arange(70) // 10)))
    assert mechanism.certify().passed
    group = mechanism._realised.group
    group[11:14] = (group[11:14] + 1) % 7
    certificate = mechanism.certify()
    assert not certificate.passed
    assert certificate.violation == "values 10 and 11: reports disclose which of them it is"
