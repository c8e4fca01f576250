"""What every mechanism promises by its interface, on every instance."""

import dataclasses
import json
import os
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import MECHANISMS, CollectionSpec, SystemEntropy, ValueOutsideDomainError
from ldpstream.mechanisms.base.canonical import canonical_json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.dyadic import log_bounds
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.groups.mechanism import Groups
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.interface.symbols import SymbolMechanism
from ldpstream.mechanisms.policies.prior import PriorPolicy
from tests.conformance.instances import INSTANCES, LISTED, SYMBOLS, certificate, is_listed
from tests.seeded import SYSTEM_WORDS, SeededEntropy

EVERY = pytest.mark.parametrize("mechanism", INSTANCES.values(), ids=INSTANCES.keys())
EVERY_LISTED = pytest.mark.parametrize("mechanism", LISTED.values(), ids=LISTED.keys())
EVERY_SYMBOL = pytest.mark.parametrize("mechanism", SYMBOLS.values(), ids=SYMBOLS.keys())


def test_every_registered_mechanism_has_instances():
    assert {m.id for m in INSTANCES.values()} == set(MECHANISMS)
    assert all(kind.id == name for name, kind in MECHANISMS.items())


@EVERY
def test_a_mechanism_is_frozen_and_equal_by_content(mechanism: Mechanism):
    twin = dataclasses.replace(mechanism)
    assert twin == mechanism
    assert hash(twin) == hash(mechanism)
    name = dataclasses.fields(mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, name, 1.0)


@EVERY
def test_a_mechanism_in_use_can_be_sent_to_another_process(mechanism: Mechanism):
    mechanism.policy.entry(0, 1)
    (mechanism.marginal or mechanism).decoder.groups()
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_parameters_tell_all_instances_apart():
    seen = {canonical_json([m.id, dict(m.parameters())]) for m in INSTANCES.values()}
    assert len(seen) == len(INSTANCES)


@EVERY_LISTED
def test_the_channel_has_the_declared_shape(mechanism: Mechanism):
    channel = mechanism.channel()
    assert channel.size == mechanism.size == mechanism.policy.size
    assert channel.outputs == len(mechanism.possible_reports())
    reachable = set().union(*(row.keys() for row in channel.rows))
    assert reachable == set(range(channel.outputs))


@EVERY_LISTED
def test_reports_have_one_length_and_survive_encoding(mechanism: Mechanism):
    reports = mechanism.possible_reports()
    payload = mechanism.encode(reports)
    assert payload.shape == (len(reports), mechanism.report_bytes)
    assert payload.dtype == np.uint8
    assert len(np.unique(payload, axis=0)) == len(reports)
    decoded, valid = mechanism.decode(payload)
    assert valid.all()
    assert decoded.dtype == reports.dtype
    assert np.array_equal(decoded, reports)


@EVERY_LISTED
def test_only_possible_reports_are_privatized(mechanism: Mechanism):
    values = np.tile(np.arange(mechanism.size), 5)
    payload = mechanism.encode(mechanism.privatize(values, entropy=SeededEntropy(3)))
    possible = {row.tobytes() for row in mechanism.encode(mechanism.possible_reports())}
    assert {row.tobytes() for row in payload} <= possible


@EVERY_SYMBOL
def test_symbols_are_little_endian_and_shortest(mechanism: SymbolMechanism):
    reports = mechanism.possible_reports()
    assert np.array_equal(reports, np.arange(mechanism.outputs))
    payload = mechanism.encode(reports)
    assert 256 ** (mechanism.report_bytes - 1) < max(mechanism.outputs, 2)
    assert mechanism.outputs <= 256**mechanism.report_bytes
    little = reports[:, None] >> (8 * np.arange(mechanism.report_bytes)) & 0xFF
    assert np.array_equal(payload, little)


@EVERY_SYMBOL
def test_a_symbol_that_no_value_can_produce_is_marked(mechanism: SymbolMechanism):
    largest = 256**mechanism.report_bytes - 1
    numbers = np.unique(np.array([0, mechanism.outputs - 1, mechanism.outputs, largest]))
    payload = (numbers[:, None] >> (8 * np.arange(mechanism.report_bytes)) & 0xFF).astype(np.uint8)
    payload.flags.writeable = False
    decoded, valid = mechanism.decode(payload)
    assert np.array_equal(valid, numbers < mechanism.outputs)
    assert np.array_equal(decoded, np.where(valid, numbers, 0))


@EVERY
def test_no_reports_at_all_are_fine(mechanism: Mechanism):
    nothing = np.zeros(0, dtype=np.int64)
    reports = mechanism.privatize(nothing)
    assert len(reports) == 0
    assert mechanism.encode(reports).shape == (0, mechanism.report_bytes)
    decoded, valid = mechanism.decode(np.zeros((0, mechanism.report_bytes), dtype=np.uint8))
    assert len(decoded) == len(valid) == 0
    statistic = mechanism.empty()
    mechanism.accumulate(statistic, reports)
    assert statistic.shape == (mechanism.statistic_size,)
    assert not statistic.any()


@EVERY
def test_statistics_merge_exactly_in_any_order(mechanism: Mechanism):
    rng = np.random.default_rng(5)
    values = rng.integers(0, mechanism.size, 500)
    reports = mechanism.privatize(values, entropy=SeededEntropy(5))
    whole, backward, parts = mechanism.empty(), mechanism.empty(), mechanism.empty()
    mechanism.accumulate(whole, reports)
    mechanism.accumulate(backward, reports[::-1].copy())
    for part in np.split(reports, [3, 77, 400]):
        shard = mechanism.empty()
        mechanism.accumulate(shard, part)
        parts += shard
    assert whole.dtype == np.int64
    assert np.array_equal(whole, backward)
    assert np.array_equal(whole, parts)


@EVERY
def test_a_seed_repeats_its_draws_and_the_system_does_not(mechanism: Mechanism):
    values = np.tile(np.arange(mechanism.size), 4)
    seeded = [mechanism.privatize(values, entropy=SeededEntropy(9)) for _ in range(2)]
    assert np.array_equal(*seeded)
    # Reports too many to be listed are noisy.
    rows = mechanism.channel().rows if is_listed(mechanism) else ({0: Fraction(1, 2)},)
    noisy = [
        x
        for x, row in enumerate(rows)
        if any(Fraction(1, 10) < p < Fraction(9, 10) for p in row.values())
    ]
    if noisy:
        # Equal with probability below 1e-30: each of 400 users repeats with at most 0.82.
        values = np.full(400, noisy[0])
        assert not np.array_equal(mechanism.privatize(values), mechanism.privatize(values))


@EVERY
def test_a_value_outside_names_its_position_and_never_itself(mechanism: Mechanism):
    for value in (-1, mechanism.size, 2**40):
        with pytest.raises(ValueOutsideDomainError) as caught:
            mechanism.privatize(np.array([0, 1, value, -7]))
        assert caught.value.position == 2
        assert f"0..{mechanism.size - 1}" in caught.value.expected
        message = str(caught.value).replace(caught.value.expected, "")
        assert str(value) not in message.replace("position 2", "")
    for values in (np.array([0.0, 1.0]), np.array([True, False]), np.array([[0, 1]])):
        with pytest.raises(ValueOutsideDomainError):
            mechanism.privatize(values)


@EVERY
def test_what_is_disclosed_is_stated(mechanism: Mechanism):
    phrases = mechanism.disclosed()
    assert all(isinstance(phrase, str) and phrase for phrase in phrases)
    assert bool(phrases) == (mechanism.policy.unprotected_pairs > 0)
    assert json.dumps(certificate(mechanism).to_json()["disclosed"]) == json.dumps(phrases)


@pytest.fixture
def urandom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system's generator return the words of a seed, in order."""
    seeded = SeededEntropy(17)
    monkeypatch.setattr(os, "urandom", lambda size: seeded.words(size // 8).tobytes())
    monkeypatch.setattr(SystemEntropy, "words", SYSTEM_WORDS)


@EVERY
@pytest.mark.usefixtures("urandom")
def test_every_draw_is_from_the_system(mechanism: Mechanism):
    values = np.arange(20) % mechanism.size
    found = mechanism.privatize(values)
    assert np.array_equal(found, mechanism.privatize(values, entropy=SeededEntropy(17)))


@pytest.mark.usefixtures("urandom")
def test_the_systems_source_keeps_nothing_between_calls():
    entropy = SystemEntropy()
    entropy.words(4)
    assert not vars(entropy)


@pytest.mark.usefixtures("urandom")
def test_random_rounding_draws_from_the_system_too(tmp_path: Path):
    domain = {"interval": [0.0, 1.0], "bins": 4, "rounding": "random"}
    table = {"mechanism": "l1-geometric", "epsilon": 1.0, "domain": domain}
    spec = CollectionSpec.from_mapping("numbers", table, base=tmp_path)
    numbers = np.linspace(0.0, 1.0, 40)
    found = spec.privatize(numbers)
    assert np.array_equal(found, spec.privatize(numbers, entropy=SeededEntropy(17)))


CHAINED = {
    "binary",
    "block-hadamard",
    "groups",
    "high-low",
    "l1-bits",
    "l1-geometric",
    "optimal",
    "projective-geometry",
    "randomized-response",
    "subset-selection",
    "tree",
}


def larger(mechanism: Mechanism) -> object:
    if isinstance(mechanism, Binary):
        return [1.5 * mechanism.first, 1.5 * mechanism.second]
    if isinstance(mechanism, Optimal):
        return 1.5 * float(mechanism.policy.largest_loss())
    if isinstance(mechanism, Groups):
        return 1.5 * float(mechanism.policy.largest_loss())
    return 1.5 * getattr(mechanism, "epsilon", 1.0)


@pytest.mark.parametrize("name", INSTANCES)
def test_a_permanent_draw_has_the_form_of_the_reports_made_from_it(name: str):
    mechanism = INSTANCES[name]
    # Mechanisms with weights in the clear and those with priors have no chain.
    none = isinstance(mechanism, PublicWeights) or isinstance(mechanism.policy, PriorPolicy)
    if mechanism.id not in CHAINED or none:
        with pytest.raises(SpecError, match=r"hold\.epsilon: expected no such key.*hold = H"):
            mechanism.chain(larger(mechanism))
        return
    # Probabilities in units of 2^-64 leave no room for a larger budget.
    if ":huge" in name and mechanism.policy.largest_loss() > 44:
        with pytest.raises(SpecError, match=r"hold\.epsilon: expected .*further"):
            mechanism.chain(larger(mechanism))
        return
    permanent, chain = mechanism.chain(larger(mechanism))
    assert permanent.report_bytes == mechanism.report_bytes
    assert permanent.size == mechanism.size
    assert permanent.certify().passed
    canonical_json(list(chain.canonical()))
    values = np.arange(200, dtype=np.int64) % mechanism.size
    drawn = permanent.privatize(values, entropy=SeededEntropy(3))
    before = drawn.copy()
    sent = chain.again(drawn, SeededEntropy(4))
    assert np.array_equal(drawn, before)
    assert (sent.shape, sent.dtype) == (drawn.shape, drawn.dtype)
    read, valid = mechanism.decode(mechanism.encode(sent))
    assert valid.all()
    assert np.array_equal(read, sent)
    ratios = [chain.ratio(reports) for reports in (1, 2, 5, 64, 65)]
    assert ratios == sorted(ratios)
    # One report loses what the certificate says; of neighbours in a graph, a step alone loses less.
    once = max(loss.ratio for loss in certificate(mechanism).losses)
    apart = isinstance(mechanism, Optimal) or chain.steps > 1
    assert ratios[0] ** chain.steps >= once if apart else ratios[0] == once
    epoch = log_bounds(ratios[-1])[0] * chain.steps
    assert epoch <= float(permanent.policy.largest_loss()) * (1 + 1e-12)
