"""Pairs of attributes against enumeration: what records lose with them, and what is refused."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.domains.attributes import Pair
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.policy import BlockPolicy
from tests.exact.specs import channel_of, sampled
from tests.seeded import SeededEntropy

PAIRS = [["a", "b"], ["c", "b"]]
PLAIN = {"a": {"size": 3}, "b": {"size": 3, "epsilon": 2.0}, "c": {"size": 3}}
IN_BLOCKS = {
    "a": {"size": 3, "blocks": [[0, 2], [1]], "epsilon": 0.5},
    "b": {"size": 3, "epsilon": 1.5},
    "c": {"size": 3, "blocks": [[0], [1, 2]], "mechanism": "block-hadamard", "epsilon": 3.0},
}


def block_policy(mechanism: Mechanism) -> BlockPolicy:
    """Return the policy of an attribute or a pair that protects its values in blocks."""
    assert isinstance(mechanism.policy, BlockPolicy)
    return mechanism.policy


def spec_of(
    attributes: Any = None, pairs: Any = PAIRS, mechanism: str = "randomized-response"
) -> CollectionSpec:
    domain = {"attributes": PLAIN if attributes is None else attributes, "pairs": pairs}
    table = {"mechanism": mechanism, "epsilon": 1.0, "domain": domain}
    return CollectionSpec.from_mapping("survey", table, base=Path())


@pytest.mark.parametrize(
    ("attributes", "mechanism"),
    [(PLAIN, "randomized-response"), (IN_BLOCKS, "projective-geometry")],
)
def test_records_lose_with_pairs_what_they_lose_without(attributes: Any, mechanism: str):
    """Every two of 27 records at every output, in exact rationals: d = 3 attributes of k = 3."""
    _, whole = sampled(spec_of(attributes, mechanism=mechanism))
    assert whole.names == ("a", "b", "c", "a:b", "c:b")
    records = [(a, b, c, 3 * a + b, 3 * c + b) for a, b, c in product(range(3), repeat=3)]
    channel = channel_of(whole, records)
    policy, certificate, worst = whole.policy, whole.certify(), Fraction(1)
    for record, other in product(records, repeat=2):
        entries = [
            part.policy.entry(x, z)
            for part, x, z in zip(whole.parts[:3], record[:3], other[:3], strict=True)
        ]
        known = [entry for entry in entries if entry is not None]
        joint = max(known) if len(known) == 3 else None
        assert policy.records(record, other) == joint  # whatever pairs there are
        top, below = channel[record], channel[other]
        if joint is None:
            assert top.keys() - below.keys()
            continue
        ratio = max(top[output] / below[output] for output in top)
        assert ratio <= exp_bounds(joint)[0]
        worst = max(worst, ratio)
    assert certificate.passed
    assert max(loss.ratio for loss in certificate.losses) == worst
    assert certificate.loss_high == max(block_policy(part).epsilon for part in whole.parts)
    assert certificate.attributes is not None
    assert list(certificate.attributes) == list(whole.names)


def test_a_pair_keeps_the_smaller_epsilon_within_the_blocks_of_both():
    _, whole = sampled(spec_of(IN_BLOCKS, mechanism="tree"))
    first, second = whole.parts[3:]
    assert (first.id, block_policy(first).epsilon) == ("projective-geometry", 0.5)
    assert (second.id, block_policy(second).epsilon) == ("projective-geometry", 1.5)
    blocks = block_policy(first).blocks.of_value.reshape(3, 3)
    assert blocks.tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 0]]


def test_a_record_holds_attributes_alone_and_is_placed_in_pairs_by_them():
    domain, whole = sampled(spec_of())
    n, rng = 2000, np.random.default_rng(2)
    values = rng.integers(0, 3, (n, 3))
    records = [dict(zip("abc", row, strict=True)) for row in values.tolist()]
    placed = domain.place(records, entropy=SeededEntropy(3))
    rows = [[str(value) for value in row] for row in values]
    assert domain.column_names == ("a", "b", "c")
    assert np.array_equal(placed, domain.place_columns(rows, entropy=SeededEntropy(3)))
    seen = set()
    for index, (a, b, c) in zip(placed.tolist(), values.tolist(), strict=True):
        known = {"a": a, "b": b, "c": c, "a:b": [a, b], "c:b": [c, b]}
        labelled = domain.label(index)
        assert isinstance(labelled, dict)
        ((name, label),) = labelled.items()
        assert label == known[name]
        seen.add(name)
    assert seen == set(whole.names)
    assert np.array_equal(domain.index(domain.labels(placed)), placed)
    with pytest.raises(ValueOutsideDomainError, match="a record with a value for each of a, b, c"):
        domain.check([{"a:b": [0, 0], "c": 1}])


def test_labels_of_a_pair_are_those_of_both():
    domain, _ = sampled(
        spec_of({"place": {"grid": [2, 2]}, "said": {"values": ["no", "yes"]}}, [["place", "said"]])
    )
    pair = domain.domains[2]
    assert isinstance(pair, Pair)
    assert pair.labels(np.arange(8))[5] == [[1, 0], "yes"]
    assert pair.index(pair.labels(np.arange(8))).tolist() == list(range(8))
    assert pair.parse_columns([["1", "0", "yes"], ["0", "1", "no"]]).tolist() == [5, 2]
    for bad in ([[0, 0], "maybe"], [[0, 0]], "yes"):
        with pytest.raises(ValueOutsideDomainError, match="position 1"):
            pair.index([[[0, 0], "no"], bad])


def test_probabilities_of_attributes_leave_the_rest_to_pairs():
    attributes = {name: one | {"probability": 0.2} for name, one in PLAIN.items()}
    _, whole = sampled(spec_of(attributes))
    shares = [units / WORD for units in whole.probabilities]
    assert shares[:3] == pytest.approx([0.2] * 3)
    assert shares[3] == pytest.approx(shares[4])
    assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize(
    ("attributes", "pairs", "said"),
    [
        (PLAIN, [], "domain.pairs: expected a list of pairs [NAME, NAME]"),
        (PLAIN, ["a", "b"], "domain.pairs[0]: expected two of the attributes a, b, c, got 'a'"),
        (PLAIN, [["a"]], "domain.pairs[0]: expected two of the attributes a, b, c"),
        (PLAIN, [["a", "b"], ["a", "x"]], "domain.pairs[1]: expected two of the attributes a, b"),
        (PLAIN, [["a", ["b"]]], "domain.pairs[0]: expected two of the attributes a, b, c"),
        (PLAIN, [["a", "a"]], "domain.pairs[0]: expected two different attributes, got a twice"),
        (PLAIN, [["a", "b"], ["b", "a"]], "domain.pairs[1]: expected each pair once, got b:a"),
        (
            PLAIN | {"a": {"size": 3, "mechanism": "l1-geometric", "epsilon": 0.5}}, PAIRS,
            "domain.pairs[0]: expected attributes with one epsilon for any two values",
        ),
        (
            {"a": {"size": 4000}, "b": {"size": 4000}}, [["a", "b"]],
            "domain.pairs[0]: expected 2..10000000 values in the domain, got 16000000",
        ),
        (
            {name: one | {"probability": 1 / 3} for name, one in PLAIN.items()}, PAIRS,
            "domain.attributes.a.probability: expected probabilities with a sum below 1, of which",
        ),
        ({str(n): {"size": 2} for n in range(255)}, [["0", "1"], ["0", "2"]],
         "domain.pairs: expected at most 256 attributes and pairs together, got 257"),
        (PLAIN | {"a": {"size": 3, "pairs": PAIRS}}, PAIRS, "domain.attributes.a.pairs: expected"),
        (PLAIN | {"pairs": PAIRS}, PAIRS, "domain.attributes.pairs: expected a table; pairs of"),
    ],
)  # fmt: skip
def test_impossible_pairs_are_refused_by_their_key(attributes: Any, pairs: Any, said: str):
    with pytest.raises(SpecError, match=r"collection\.survey\.domain") as caught:
        spec_of(attributes, pairs)
    assert said in str(caught.value)


def test_pairs_need_attributes():
    table = {"mechanism": "tree", "epsilon": 1.0, "domain": {"size": 3, "pairs": PAIRS}}
    with pytest.raises(SpecError, match=r"domain\.pairs: expected pairs with attributes, and only"):
        CollectionSpec.from_mapping("survey", table, base=Path())
