"""Records of several attributes, and pairs of these, against enumeration: losses and draws."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.domains.attributes import Columns, Pair
from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.ledger import Ledger
from ldpstream.mechanisms.policies.policy import BlockPolicy
from tests.exact.enumeration import accumulated
from tests.exact.specs import channel_of, sampled
from tests.seeded import SeededEntropy

SMALL = {
    "colour": {"values": ["red", "green"], "mechanism": "randomized-response", "epsilon": 0.5},
    "level": {"size": 3, "mechanism": "l1-geometric", "epsilon": 0.75},
    "place": {"size": 4, "blocks": 2},
}


def spec_of(attributes: Any = None, **keys: Any) -> CollectionSpec:
    """Return the spec of a collection of records, small by default."""
    table = {
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"attributes": attributes or SMALL},
    }
    return CollectionSpec.from_mapping("survey", table | keys, base=Path())


def joint_entry(
    mechanism: Sampled, record: tuple[int, ...], other: tuple[int, ...]
) -> Fraction | None:
    """Return the largest entry of the attributes of two records; None if one is unbounded."""
    parts = mechanism.parts[: len(record)]
    entries = [
        part.policy.entry(x, z) for part, x, z in zip(parts, record, other, strict=True) if x != z
    ]
    return None if None in entries else max(entries, default=Fraction(0))


def test_every_pair_of_records_at_every_output_loses_the_largest_of_its_attributes():
    """The whole channel of records, with the draw, in exact rationals: 24 x 24 pairs."""
    domain, mechanism = sampled(spec_of())
    rows = [part.channel().rows for part in mechanism.parts]
    records = list(product(*(range(own.size) for own in domain.domains)))
    channel = channel_of(mechanism, records)
    worst = Fraction(1)
    for record, other in product(records, repeat=2):
        top, below = channel[record], channel[other]
        ratio = None if top.keys() - below.keys() else max(top[y] / below[y] for y in top)
        own = [
            max(row[x][y] / row[z][y] for y in row[x]) if row[x].keys() <= row[z].keys() else None
            for row, x, z in zip(rows, record, other, strict=True)
        ]
        assert ratio == (None if None in own else max(one for one in own if one is not None))
        allowed = joint_entry(mechanism, record, other)
        if allowed is None:
            assert ratio is None
            continue
        assert ratio is not None
        assert ratio <= exp_bounds(allowed)[0]
        worst = max(worst, ratio)
    # Under a metric the certificate lists the loss of one step: that of the second attribute.
    steps = mechanism.parts[1].certify().losses
    assert {loss.ratio for loss in mechanism.certify().losses} >= {steps[0].ratio}
    two_steps = max(rows[1][0][y] / rows[1][2][y] for y in rows[1][0])
    assert worst == max(two_steps, *(loss.ratio for loss in mechanism.certify().losses))


def test_the_certificate_is_that_of_the_least_hidden_attribute_however_many_differ():
    attributes = {"a": {"size": 3, "epsilon": 0.5}, "b": {"size": 5, "epsilon": 2.0}}
    certificate = spec_of(attributes).mechanism.certify()
    assert certificate.passed
    assert certificate.loss_high == 2.0
    assert certificate.attributes is not None
    assert [one.loss_high for one in certificate.attributes.values()] == [0.5, 2.0]
    document: dict[str, Any] = certificate.to_json()
    assert document["attributes"]["a"]["loss"]["high"] == 0.5


def test_a_broken_attribute_fails_the_certificate_by_name():
    class Broken(RandomizedResponse):
        @property
        def policy(self) -> BlockPolicy:
            return BlockPolicy(0.1, self.blocks)

    _, mechanism = sampled(spec_of())
    first = mechanism.parts[0]
    assert isinstance(first, RandomizedResponse)
    broken = Broken(first.epsilon, first.blocks)
    whole = Sampled(mechanism.names, (broken, *mechanism.parts[1:]), mechanism.probabilities)
    certificate = whole.certify()
    assert not certificate.passed
    assert certificate.violation is not None
    assert certificate.violation.startswith("colour: ")


def test_losses_of_several_reports_add_up_at_the_largest_budget(tmp_path: Path):
    attributes = {"a": {"size": 3, "epsilon": 0.5}, "b": {"size": 5, "epsilon": 1.5}}
    spec, entropy = spec_of(attributes), SeededEntropy(1)
    with Ledger(tmp_path / "ledger", specs=[(spec, 1000)], budget=3.0) as ledger:
        for window in range(2):
            time_ms = 1_700_000_000_000 + 1000 * window
            ledger.release(spec, {"a": 1, "b": 2}, time_ms=time_ms, entropy=entropy)
        assert ledger.spent().total == 3
        # A record is refused for any attribute, so that a refusal tells nothing of the draw.
        for record in ({"a": 3, "b": 0}, {"a": 0, "b": 5}, {"a": 0}):
            with pytest.raises(ValueOutsideDomainError):
                ledger.release(spec, record, time_ms=1_700_000_009_000)


def test_by_default_attributes_have_the_same_largest_error():
    attributes = {"coin": {"size": 2}, "dice": {"size": 6}, "fine": {"size": 100, "epsilon": 0.5}}
    _, mechanism = sampled(spec_of(attributes))
    shares = [units / WORD for units in mechanism.probabilities]
    errors = [
        (part.decoder.noise_extremes()[1].max() + 0.25) / share
        for part, share in zip(mechanism.parts, shares, strict=True)
    ]
    assert max(errors) / min(errors) < 1.01
    assert shares[0] == shares[1] < shares[2]


@pytest.mark.parametrize("form", ["records", "columns", "text"])
def test_a_record_is_placed_at_its_value_of_the_drawn_attribute(form: str):
    domain, mechanism = sampled(spec_of())
    n, rng = 4000, np.random.default_rng(2)
    values = [rng.integers(0, own.size, n) for own in domain.domains]
    labels = [own.labels(one) for own, one in zip(domain.domains, values, strict=True)]
    records = [dict(zip(domain.names, row, strict=True)) for row in zip(*labels, strict=True)]
    entropy = SeededEntropy(3)
    if form == "records":
        placed = domain.place(records, entropy=entropy)
    elif form == "columns":
        columns = dict(zip(domain.names, labels, strict=True))
        placed = domain.place(Columns(columns), entropy=entropy)
    else:
        rows = [[str(label) for label in row] for row in zip(*labels, strict=True)]
        placed = domain.place_columns(rows, entropy=entropy)
    words = SeededEntropy(3).words(n)
    ends = np.cumsum([*mechanism.probabilities[:-1]], dtype=object)
    for number, index in enumerate(placed.tolist()):
        drawn = sum(int(words[number]) >= int(end) for end in ends)
        assert domain.attribute_of(index) == drawn
        assert index - domain.starts[drawn] == values[drawn][number]
    assert np.array_equal(domain.index(domain.labels(placed)), placed)


def test_the_first_bad_record_is_named_with_its_attribute_and_without_its_value():
    domain, _ = sampled(spec_of())
    good = {"colour": "red", "level": 0, "place": 3}
    records = [good, good | {"place": 77}, good | {"colour": "blue"}, good]
    for take in (domain.check, lambda some: domain.place(some, entropy=SeededEntropy(1))):
        with pytest.raises(ValueOutsideDomainError) as caught:
            take(records)
        assert caught.value.position == 1
        assert str(caught.value) == "value at position 1: expected as place an integer in 0..3"
    with pytest.raises(ValueOutsideDomainError, match=r"position 1.* 3 columns, colour, level, pl"):
        domain.place_columns([["red", "0", "3"], ["red"]], entropy=SeededEntropy(1))


def test_few_reports_and_weighted_ones_add_up_the_same():
    _, mechanism = sampled(spec_of())
    values = np.random.default_rng(1).integers(0, mechanism.size, 12)
    reports = mechanism.privatize(values, entropy=SeededEntropy(1))
    whole, weighed = mechanism.empty(), mechanism.empty()
    mechanism.accumulate(whole, reports)
    found = mechanism.sparse_counts(reports)
    assert found is not None
    few = mechanism.empty()
    for place, count in found:
        few[place] += count
    assert np.array_equal(few, whole)
    mechanism.accumulate_times(weighed, reports, np.arange(12))
    repeated = accumulated(mechanism, np.repeat(reports, np.arange(12), axis=0))
    assert np.array_equal(weighed, repeated)
    assert sum(mechanism.counts(whole)) == mechanism.count(whole) == 12


THREE = {"size": 3}


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"a": THREE}, ": expected 2 to 256 tables"),
        ({"a": THREE, "pairs": [["a", "b"]]}, ".pairs: expected a table; pairs of attributes are"),
        ({"a": THREE, "b": 3}, ".b: expected a table"),
        ({"a": THREE, "b c": THREE}, "a name of at most 64 letters"),
        ({"a": THREE, "b": {**THREE, "epsilon": -1}}, ".b.epsilon: expected a finite number above"),
        ({"a": THREE, "b": {**THREE, "sise": 3}}, ".b.sise: expected one of the keys"),
        (
            {"a": THREE, "b": {**THREE, "probability": 0.5}},
            ".a.probability: expected a number above 0 and below 1 for each",
        ),
        (
            {"a": {**THREE, "probability": 0.5}, "b": {**THREE, "probability": 0.4}},
            "probabilities with sum 1, got 0.9",
        ),
        ({"a": {"attributes": {}}, "b": THREE}, "no attributes inside an attribute"),
        (
            {"a": {**THREE, "mechanism": "sampled"}, "b": THREE},
            ".a.mechanism: expected a mechanism of this attribute's own",
        ),
        (
            {"a": {"size": 2, "mechanism": "lip", "epsilon": 1.0, "prior": [0.5, 0.5]}, "b": THREE},
            ".a",
        ),
    ],
)
def test_impossible_attributes_are_refused_by_their_key(attributes: Any, said: str):
    with pytest.raises(SpecError, match=r"collection\.survey\.domain\.attributes") as caught:
        spec_of(attributes)
    assert said in str(caught.value)


def test_sampled_needs_attributes_alone():
    with pytest.raises(SpecError, match=r"survey\.domain\.size: expected"):
        spec_of(domain={"attributes": {"a": THREE, "b": THREE}, "size": 3})
    with pytest.raises(SpecError, match=r"survey\.domain: expected attributes"):
        spec_of(mechanism="sampled", domain={"size": 3})


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


def spec_of_pairs(
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
    _, whole = sampled(spec_of_pairs(attributes, mechanism=mechanism))
    assert whole.names == ("a", "b", "c", "a:b", "c:b")
    records = [(a, b, c, 3 * a + b, 3 * c + b) for a, b, c in product(range(3), repeat=3)]
    channel = channel_of(whole, records)
    certificate, worst = whole.certify(), Fraction(1)
    for record, other in product(records, repeat=2):
        joint = joint_entry(whole, record, other)
        assert joint == joint_entry(whole, record[:3], other[:3])  # whatever pairs there are
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
    _, whole = sampled(spec_of_pairs(IN_BLOCKS, mechanism="tree"))
    first, second = whole.parts[3:]
    assert (first.id, block_policy(first).epsilon) == ("projective-geometry", 0.5)
    assert (second.id, block_policy(second).epsilon) == ("projective-geometry", 1.5)
    blocks = block_policy(first).blocks.of_value.reshape(3, 3)
    assert blocks.tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 0]]


def test_a_record_holds_attributes_alone_and_is_placed_in_pairs_by_them():
    domain, whole = sampled(spec_of_pairs())
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
        spec_of_pairs(
            {"place": {"grid": [2, 2]}, "said": {"values": ["no", "yes"]}}, [["place", "said"]]
        )
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
    _, whole = sampled(spec_of_pairs(attributes))
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
        spec_of_pairs(attributes, pairs)
    assert said in str(caught.value)


def test_pairs_need_attributes():
    table = {"mechanism": "tree", "epsilon": 1.0, "domain": {"size": 3, "pairs": PAIRS}}
    with pytest.raises(SpecError, match=r"domain\.pairs: expected pairs with attributes, and only"):
        CollectionSpec.from_mapping("survey", table, base=Path())
