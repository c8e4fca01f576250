"""The guarantee of `l1-bits`: both proofs, other L^p distances, and what breaks them."""

import dataclasses
import math
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest

from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1 import bits as l1_bits
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.wire.spec import CollectionSpec

CASES = [
    L1Bits(0.7, (9,)),
    L1Bits(0.7, (3, 4)),
    L1Bits(1.0, (4, 5), p=2),
    L1Bits(2.0, (3, 1, 3), p=3),
    L1Bits(0.5, (3, 4), p=math.inf),
]
EVERY = pytest.mark.parametrize("mechanism", CASES, ids=lambda m: f"{m.shape}-l{m.p}")


@pytest.mark.grid
@EVERY
def test_every_pair_at_every_report_is_within_its_budget(mechanism: L1Bits):
    rows = mechanism.channel().rows
    for x, z in permutations(range(mechanism.size), 2):
        ratio = max(p / rows[z][y] for y, p in rows[x].items())
        assert ratio <= exp_bounds(mechanism.policy.entry(x, z))[0]


@EVERY
def test_both_proofs_pass_with_the_same_losses(mechanism: L1Bits, monkeypatch: pytest.MonkeyPatch):
    enumerated = mechanism.certify()
    monkeypatch.setattr(l1_bits, "ENUMERATION_LIMIT", 0)
    structured = mechanism.certify()
    assert (enumerated.proof, structured.proof) == ("enumeration", "structure")
    assert enumerated.passed
    assert structured.passed
    assert set(structured.losses) <= set(enumerated.losses)
    assert structured.losses[-1].low == pytest.approx(float(structured.losses[-1].budget))


@EVERY
def test_one_unit_more_of_the_threshold_fails(mechanism: L1Bits, monkeypatch: pytest.MonkeyPatch):
    broken = dataclasses.replace(mechanism)
    vars(broken)["threshold"] = mechanism.threshold + 1
    certificate = broken.certify()
    assert not certificate.passed
    assert certificate.violation is not None
    assert "at output" in certificate.violation
    monkeypatch.setattr(l1_bits, "ENUMERATION_LIMIT", 0)
    assert not broken.certify().passed


def test_the_last_entry_is_never_sent_because_it_is_the_same_for_all():
    """Reports would be longer with it, and losses the same: it is +1 for every value."""
    mechanism = L1Bits(1.0, (4, 3))
    assert mechanism.report_bits == 3 + 2
    t = Fraction(mechanism.threshold, WORD - mechanism.threshold)
    assert mechanism.channel().worst_ratios(mechanism.policy) == {Fraction(1): t}


def test_other_distances_are_configured_by_a_policy(tmp_path: Path):
    keys = {"mechanism": "l1-bits", "epsilon": 1.0, "domain": {"grid": [64, 64]}}
    one = CollectionSpec.from_mapping("a", keys, base=tmp_path).mechanism
    two = CollectionSpec.from_mapping(
        "a", keys | {"policy": {"metric": "l2"}}, base=tmp_path
    ).mechanism
    assert "p" not in one.parameters()
    assert two.parameters()["p"] == 2
    assert isinstance(two, L1Bits)
    assert two.policy.step == pytest.approx(1 / math.sqrt(2))
    document = two.certify().to_json()
    assert (document["pass"], document["policy"]["metric"]) == (True, "l2")
