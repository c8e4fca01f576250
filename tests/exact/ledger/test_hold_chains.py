"""`hold`: what follows from a permanent draw, as documented, and from the words of the vectors."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.exact.entropy import WORD, bernoulli_rational, choose_rational
from ldpstream.mechanisms.wire.hold import epoch_offset
from tests.exact.enumeration import Scripted, words_in
from tests.exact.held import THREE, again, held
from tests.exact.wire.test_vectors import read, spec_of
from tests.seeded import SeededEntropy

VECTOR = read("hold.json")


BLOCKS = "domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }"


@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [
        ("randomized-response", BLOCKS),
        ("subset-selection", BLOCKS),
        ("binary", None),
        ("optimal", None),
        ("l1-bits", "domain = { sizes = [3, 2] }"),
        ("l1-geometric", "domain = { sizes = [4, 2] }"),
    ],
)
def test_sent_reports_are_drawn_as_documented(mechanism: str, domain: str | None):
    """Each report 20,000 times: within 6 standard errors."""
    spec = held(mechanism, domain=domain)
    second, n, reports = again(spec), 20_000, spec.mechanism.possible_reports()
    number = {report.tobytes(): y for y, report in enumerate(reports)}
    for z, row in enumerate(second):
        found = spec.hold.chain.again(np.repeat(reports[z : z + 1], n, axis=0), SeededEntropy(z))
        places = [number[report.tobytes()] for report in found]
        counts = np.bincount(places, minlength=len(row))
        for y, p in enumerate(row):
            assert abs(counts[y] - n * float(p)) <= 6 * math.sqrt(n * float(p * (1 - p))) + 1e-9


def test_rational_coins_are_exact():
    """Where a word equals the first digits of the probability the next one decides."""
    third = WORD // 3
    for words, said in (([third - 1], True), ([third + 1], False), ([third, 5], True)):
        source = Scripted(words)
        assert bernoulli_rational(source, Fraction(1, 3), 1).tolist() == [said]
        assert not source.left
    assert bernoulli_rational(Scripted([WORD // 2]), Fraction(1, 2), 1).tolist() == [False]
    # Those that are equal draw again in order, after all have drawn.
    source = Scripted([third, 0, third, WORD - 1, 0])
    assert bernoulli_rational(source, Fraction(1, 3), 3).tolist() == [False, True, True]
    # Of several ends: those at 0 lie below every number, those at 1 above.
    near = Fraction(third, WORD) + Fraction(1, WORD**2)
    source = Scripted([third - 1, third, third + 1, third, 7, WORD - 1])
    ends = [Fraction(0), near, Fraction(1, 3), Fraction(1)]
    assert choose_rational(source, ends, 4).tolist() == [1, 2, 3, 3]
    assert not source.left
    assert bernoulli_rational(Scripted(), Fraction(0), 2).tolist() == [False, False]
    assert bernoulli_rational(Scripted(), Fraction(1), 2).tolist() == [True, True]


@pytest.mark.parametrize("windows", [2, 3, 5, 7])
def test_epochs_begin_at_all_offsets_alike(windows: int):
    """Of 2,000 secrets: each offset within 6 standard errors."""
    offsets = [epoch_offset(i.to_bytes(32, "big"), bytes(8), windows) for i in range(2_000)]
    counts = np.bincount(offsets, minlength=windows)
    assert counts.size == windows
    deviation = math.sqrt(2_000 * (1 / windows) * (1 - 1 / windows))
    assert (np.abs(counts - 2_000 / windows) < 6 * deviation).all()


def test_averaging_365_reports_finds_no_more_than_one_draw():
    """k = 15, epsilon 1, constant values: right 11% of the time instead of always.

    Fresh reports, added up, disclose the value; held ones disclose as much as the permanent draw.
    """
    spec = held("block-hadamard", "{ windows = 365, epsilon = 2.0 }", "domain = { size = 15 }")
    mechanism, users, windows = spec.mechanism, 600, 365
    entropy = SeededEntropy(17)
    values = np.arange(users) % 15
    signs = np.array(
        [[1 - 2 * ((v + 1 & y).bit_count() % 2) for y in range(16)] for v in range(15)]
    )

    def right(reports: np.ndarray) -> float:
        counts = np.stack([np.bincount(row, minlength=16) for row in reports])
        return float(((counts @ signs.T).argmax(axis=1) == values).mean())

    fresh = mechanism.privatize(np.repeat(values, windows), entropy=entropy)
    permanent = spec.hold.permanent.privatize(values, entropy=entropy)
    sent = spec.hold.chain.again(np.repeat(permanent, windows), entropy)
    assert right(fresh.reshape(users, windows)) > 0.99
    # At best the limit of the theory, 2 T / 16 = 0.11 of 15 values (0.067 by guessing).
    limit = 2 * spec.hold.permanent.threshold / WORD / 16
    assert abs(right(sent.reshape(users, windows)) - limit) < 6 * math.sqrt(limit / users)


@pytest.mark.parametrize("vector", VECTOR["devices"], ids=lambda one: one["name"])
def test_the_same_words_draw_and_send_the_same(vector: dict):
    spec = spec_of(vector)
    assert spec.device_document() == vector["document"]
    assert spec.charged.largest_loss() == Fraction(vector["loss"])
    for epoch in vector["epochs"]:
        drawing, permanent = Scripted(words_in(epoch["words"])), spec.hold.permanent
        place = spec.domain.place([epoch["label"]], entropy=drawing)
        payload = permanent.encode(permanent.randomise(place, drawing))
        assert payload.tobytes().hex() == epoch["permanent"]
        for sent in epoch["sent"]:
            words = Scripted(words_in(sent["words"]))
            found = spec.hold.sent(payload, words)
            assert found.tobytes().hex() == sent["report"]
            assert not words.left


def test_epochs_are_those_of_the_vectors():
    for one in VECTOR["offsets"]:
        secret, fingerprint = (bytes.fromhex(one[key]) for key in ("secret", "fingerprint"))
        assert epoch_offset(secret, fingerprint, one["windows"]) == one["offset"]
    for one in VECTOR["epochs"]:
        secret, fingerprint = (bytes.fromhex(one[key]) for key in ("secret", "fingerprint"))
        hold = held(hold=str(one["windows"])).hold
        span = {"start_ms": one["start_ms"], "window_ms": one["window_ms"]}
        assert list(hold.epoch(secret, fingerprint, **span)) == one["epoch"]


def test_the_fingerprint_says_what_is_held():
    plain = spec_of(
        {"toml": '[collection.modes]\nmechanism = "randomized-response"\nepsilon = 1.0\n' + THREE}
    )
    seen = {
        plain.fingerprint,
        held(hold="4").fingerprint,
        held(hold="5").fingerprint,
        held().fingerprint,
    }
    assert len(seen) == 4
    assert held(hold="{ windows = 4 }").fingerprint == held(hold="4").fingerprint
    assert held() == held() != held(hold="4")
    assert b'"version":3' in held().canonical
    assert "epoch of 4 windows" in " ".join(held().disclosed())


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        (
            "1",
            "collection.modes.hold: expected a whole number of windows from 2 to 1,000,000, got 1",
        ),
        ("true", "got true"),
        ("{ epsilon = 2.0 }", "hold.windows: expected a whole number"),
        ("{ windows = 4, often = 1 }", "hold.often: expected one of the keys epsilon, windows"),
        ("{ windows = 4, epsilon = 1.0 }", "hold.epsilon: expected more than epsilon"),
        ("{ windows = 4, epsilon = inf }", "hold.epsilon: expected a finite number"),
    ],
)
def test_what_cannot_be_held_is_refused(hold: str, said: str):
    with pytest.raises(SpecError, match=said.replace("(", r"\(")):
        held(hold=hold)


LINE = "domain = { sizes = [4] }"


@pytest.mark.parametrize(
    ("mechanism", "domain", "said"),
    [
        ("matrix", f'{LINE}\nstrategy = "prefix"\npolicy = {{ metric = "l1" }}', "matrix"),
        ("l1-bits", f"{LINE}\nweights = {{ public = 3 }}", "public weights"),
        ("l1-geometric", f"{LINE}\nweights = {{ public = 3 }}", "public weights"),
        ("optimal", 'domain = { size = 4 }\nchannel = "channels/lip.json"', "a channel for priors"),
    ],
)
def test_mechanisms_without_a_chain_say_what_to_write(mechanism: str, domain: str, said: str):
    with pytest.raises(
        SpecError, match=f"hold.epsilon: expected no such key with {said}.*hold = H"
    ):
        held(mechanism, domain=domain)
    assert held(mechanism, "4", domain).hold.chain is None


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "said"),
    [
        ("binary", "2.00", r"hold\.epsilon: expected a list of two numbers above 0"),
        (
            "binary",
            "[1.0, 0.6]",
            r"hold\.epsilon: expected one budget above epsilon's, the other no less: 1, 0\.6",
        ),
        (
            "binary",
            "[2.0, 0.5]",
            r"hold\.epsilon\[1\]: expected at least epsilon\[1\], which is 0\.6",
        ),
        ("binary", "[inf, 0.6]", r"hold\.epsilon\[0\]: expected a finite number, as epsilon has"),
        ("binary", "[1.0, 2.0]", "expected both further above epsilon"),
        ("l1-bits", "1.0", "expected more than epsilon"),
        ("l1-geometric", "0.9", "expected more than epsilon"),
        ("optimal", "1.0", "expected more than epsilon"),
        ("subset-selection", "0.5", "expected more than epsilon"),
    ],
)
def test_draws_that_disclose_no_more_than_a_report_are_refused(
    mechanism: str, epsilon: str, said: str
):
    with pytest.raises(SpecError, match=said):
        held(mechanism, f"{{ windows = 4, epsilon = {epsilon} }}")


def test_priors_are_not_held():
    with pytest.raises(SpecError, match=r"modes\.hold: expected no such key with lip"):
        held("lip", "4", 'domain = { values = ["a", "b"] }\nprior = 0.1')


def test_records_are_not_held():
    with pytest.raises(SpecError, match=r"modes\.hold: expected no such key for a domain of attr"):
        held(hold="4", domain="domain = { attributes = { a = { size = 3 }, b = { size = 4 } } }")
