"""`hold`: permanent draws, what follows from them, and what they lose together, all exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, SpecError
from ldpstream.mechanisms.channels.held import epochs_touched, split_windows
from ldpstream.mechanisms.exact.dyadic import exp_floor
from ldpstream.mechanisms.exact.entropy import WORD, bernoulli_rational
from ldpstream.mechanisms.policies.spending import largest_loss
from ldpstream.mechanisms.wire.hold import epoch_offset
from tests.exact.test_vectors import Words, read, spec_of
from tests.seeded import SeededEntropy

VECTOR = read("hold.json")
Rows = list[list[Fraction]]
FAMILIES = {
    "randomized-response": "",
    "block-hadamard": "",
    "projective-geometry": "",
    "high-low": 'sensitive = ["bus", "walk"]\n',
}
BLOCKS = {
    "randomized-response": "domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }",
    "block-hadamard": "domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }",
    "projective-geometry": "domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }",
    "high-low": "domain = { size = 6 }\nsensitive = [1, 4]",
}
THREE = 'domain = { values = ["bus", "train", "walk"] }'


def held(
    mechanism: str = "randomized-response",
    hold: str = "{ windows = 4, epsilon = 2.0 }",
    domain: str = THREE,
) -> CollectionSpec:
    extra = FAMILIES.get(mechanism, "") if domain == THREE else ""
    return spec_of(
        {
            "toml": f'[collection.modes]\nmechanism = "{mechanism}"\nepsilon = 1.0\n{domain}\n'
            f"{extra}hold = {hold}\n"
        }
    )


def matrix(spec: CollectionSpec, *, permanent: bool) -> Rows:
    """Return a realised channel, row by row."""
    mechanism = spec.hold.permanent if permanent else spec.mechanism
    channel = mechanism.channel()
    return [[row.get(y, Fraction(0)) for y in range(channel.outputs)] for row in channel.rows]


def again(spec: CollectionSpec) -> Rows:
    """Return M of a spec: the report again, or a uniform one of its block."""
    chain, outputs = spec.hold.chain, spec.mechanism.channel().outputs
    if chain is None:
        return [[Fraction(int(y == z)) for y in range(outputs)] for z in range(outputs)]
    rows = []
    for z in range(outputs):
        block = max(j for j, start in enumerate(chain.starts.tolist()) if start <= z)
        start, order = int(chain.starts[block]), int(chain.orders[block])
        keep = chain.keep(order)
        row = [Fraction(0)] * outputs
        for y in range(start, start + order):
            row[y] = (1 - keep) / order
        row[z] += keep
        rows.append(row)
    return rows


def of_epoch(first: Rows, second: Rows, reports: int) -> list[dict[tuple[int, ...], Fraction]]:
    """Return the distribution of m reports of one epoch, for each value."""
    outputs = range(len(second))
    sent = {
        z: {
            ys: math.prod((second[z][y] for y in ys), start=Fraction(1))
            for ys in itertools.product(outputs, repeat=reports)
        }
        for z in outputs
    }
    return [
        {
            ys: sum((p * sent[z][ys] for z, p in enumerate(row) if p), Fraction(0))
            for ys in itertools.product(outputs, repeat=reports)
        }
        for row in first
    ]


def ratio(one: dict, other: dict) -> Fraction | None:
    """Return the largest ratio of two distributions; None where it is infinite."""
    pairs = [(p, other[ys]) for ys, p in one.items() if p]
    return None if any(q == 0 for _, q in pairs) else max(p / q for p, q in pairs)


@pytest.mark.parametrize("mechanism", FAMILIES)
@pytest.mark.parametrize("blocks", [False, True])
def test_each_report_alone_is_one_of_the_smaller_budget(mechanism: str, blocks: bool):
    spec = held(mechanism, domain=BLOCKS[mechanism] if blocks else THREE)
    first, second = matrix(spec, permanent=True), again(spec)
    outputs = range(len(second))
    composed = [
        [sum((row[z] * second[z][y] for z in outputs), Fraction(0)) for y in outputs]
        for row in first
    ]
    assert composed == matrix(spec, permanent=False)
    assert spec.hold.permanent.certify().passed
    assert spec.hold.permanent.parameters()["epsilon"] == 2.0


@pytest.mark.parametrize("mechanism", FAMILIES)
def test_reports_of_one_draw_lose_what_is_said_of_them(mechanism: str):
    """Every sequence of outputs, all protected pairs: from epsilon up to that of the draw."""
    spec = held(mechanism)
    first, second = matrix(spec, permanent=True), again(spec)
    known = []
    for reports in range(1, 5 if len(second) < 5 else 4):
        rows = of_epoch(first, second, reports)
        pairs = spec.charged.constraints()
        worst = max(ratio(rows[x], rows[other]) for x, other, _ in pairs)
        assert worst == spec.hold.ratio(reports)
        known.append(worst)
    assert known == sorted(known)
    certificate = spec.mechanism.certify()
    assert known[0] == max(loss.ratio for loss in certificate.losses)
    assert known[-1] < max(loss.ratio for loss in spec.hold.permanent.certify().losses)
    assert known[-1] <= exp_floor(Fraction(2))


def test_losses_of_the_theory():
    """Randomised response, k = 4, 2 to 1: 1, 1.678, 1.984 and 2.000 of 1, 2, 4 and 8 reports."""
    spec = held(domain="domain = { size = 4 }")
    found = [math.log(spec.hold.ratio(reports)) for reports in (1, 2, 4, 8)]
    assert found == pytest.approx([1, 1.678, 1.984, 2.000], abs=6e-4)
    # One report after another of the same permanent one: the step of Hadamard response.
    for size, order, step in ((15, 16, 3.25), (63, 64, 4.60)):
        blend = held("block-hadamard", domain=f"domain = {{ size = {size} }}").hold.chain.blends[
            order
        ]
        assert math.log(1 + order * blend.keep / (1 - blend.keep)) == pytest.approx(step, abs=6e-3)


@pytest.mark.parametrize("mechanism", ["randomized-response", "high-low"])
@pytest.mark.parametrize("hold", ["{ windows = %d, epsilon = 2.0 }", "%d"])
@pytest.mark.parametrize("windows", [2, 3, 4])
def test_no_two_streams_lose_more_and_some_lose_all(mechanism: str, hold: str, windows: int):
    """All 81 streams of 3 values in 4 windows, at every place of the epochs: 6,480 pairs."""
    spec = held(mechanism, hold % windows)
    first, second = matrix(spec, permanent=True), again(spec)
    protected = {(x, other) for x, other, _ in spec.charged.constraints()}
    by_reports = {m: of_epoch(first, second, m) for m in range(1, windows + 1)}
    worst, drawn = Fraction(1), 0
    for offset in range(windows):
        epochs = [(t + offset) // windows for t in range(4)]
        sizes = [epochs.count(epoch) for epoch in dict.fromkeys(epochs)]
        firsts = [epochs.index(epoch) for epoch in dict.fromkeys(epochs)]
        # What a stream sends follows from the first value of each epoch alone.
        losses = {
            pair: [ratio(by_reports[m][pair[0]], by_reports[m][pair[1]]) for m in sizes]
            for pair in protected
        }
        for stream, other in itertools.product(itertools.product(range(3), repeat=4), repeat=2):
            total = Fraction(1)
            for place, (x, z) in enumerate((stream[t], other[t]) for t in firsts):
                if x != z and (x, z) not in protected:
                    break
                total *= losses[x, z][place] if x != z else 1
            else:
                worst = max(worst, total)
        drawn = max(drawn, len(sizes))
    split = spec.hold.worst_split(4)
    said = math.prod((spec.hold.ratio(m) or losses_of(spec)) ** times for m, times in split.items())
    assert worst == said
    assert spec.hold.epochs(4) == drawn
    assert worst <= exp_floor(drawn * (Fraction(2) if spec.hold.chain else Fraction(1)))


def losses_of(spec: CollectionSpec) -> Fraction:
    return max(loss.ratio for loss in spec.mechanism.certify().losses)


def test_independent_epochs_multiply():
    """Two epochs of two windows, every output of the four: as the product of both says."""
    spec = held(hold="{ windows = 2, epsilon = 2.0 }")
    rows = of_epoch(matrix(spec, permanent=True), again(spec), 2)
    four = {
        stream: {
            ys + zs: rows[stream[0]][ys] * rows[stream[1]][zs] for ys in rows[0] for zs in rows[0]
        }
        for stream in itertools.product(range(3), repeat=2)
    }
    worst = max(ratio(four[one], four[other]) for one, other in itertools.permutations(four, 2))
    assert worst == spec.hold.ratio(2) ** 2


def test_epochs_are_counted_at_their_worst_place():
    for windows in range(1, 30):
        for epoch in range(2, 9):
            splits = [
                split_windows(windows, epoch, first) for first in range(1, min(windows, epoch) + 1)
            ]
            assert all(sum(m * times for m, times in split.items()) == windows for split in splits)
            most = max(sum(split.values()) for split in splits)
            assert most == epochs_touched(windows, epoch)


def test_a_long_epoch_loses_what_its_draw_does():
    spec = held(hold="{ windows = 1000, epsilon = 2.0 }")
    assert spec.hold.ratio(1000) == max(x.ratio for x in spec.hold.permanent.certify().losses)
    assert spec.hold.worst_split(365) == {64: 1, 301: 1}
    assert sum(spec.hold.worst_split(5000).values()) == 6


def test_sent_reports_are_drawn_as_said():
    """Each of 3 reports 20,000 times: within 6 standard errors."""
    spec = held(domain="domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }")
    second, n = again(spec), 20_000
    for z, row in enumerate(second):
        found = spec.hold.chain.again(np.full(n, z), SeededEntropy(z))
        counts = np.bincount(found, minlength=len(row))
        for y, p in enumerate(row):
            assert abs(counts[y] - n * float(p)) <= 6 * math.sqrt(n * float(p * (1 - p))) + 1e-9


def test_rational_coins_are_exact():
    """Where a word equals the first digits of the probability the next one decides."""

    class Given:
        def __init__(self, *words: int) -> None:
            self.left = list(words)

        def words(self, n: int) -> np.ndarray:
            found, self.left = self.left[:n], self.left[n:]
            return np.array(found, dtype=np.uint64)

    third = WORD // 3
    for words, said in (([third - 1], True), ([third + 1], False), ([third, 5], True)):
        source = Given(*words)
        assert bernoulli_rational(source, Fraction(1, 3), 1).tolist() == [said]
        assert not source.left
    assert bernoulli_rational(Given(WORD // 2), Fraction(1, 2), 1).tolist() == [False]
    # Those that are equal draw again in order, after all have drawn.
    source = Given(third, 0, third, WORD - 1, 0)
    assert bernoulli_rational(source, Fraction(1, 3), 3).tolist() == [False, True, True]
    assert bernoulli_rational(Given(), Fraction(0), 2).tolist() == [False, False]
    assert bernoulli_rational(Given(), Fraction(1), 2).tolist() == [True, True]


@pytest.mark.parametrize("windows", [2, 3, 5, 7])
def test_epochs_begin_anywhere_alike(windows: int):
    """Of 2,000 secrets: each offset within 6 standard errors."""
    offsets = [epoch_offset(i.to_bytes(32, "big"), bytes(8), windows) for i in range(2_000)]
    counts = np.bincount(offsets, minlength=windows)
    assert counts.size == windows
    deviation = math.sqrt(2_000 * (1 / windows) * (1 - 1 / windows))
    assert (np.abs(counts - 2_000 / windows) < 6 * deviation).all()


def test_averaging_365_reports_finds_no_more_than_one_draw():
    """k = 15, epsilon 1, constant values: right 11% of the time in place of always.

    Whoever adds up fresh reports knows the value; held ones are as good as the permanent draw.
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
        ("{ windows = 4, often = 1 }", "hold.often: expected one of the keys windows, epsilon"),
        ("{ windows = 4, epsilon = 1.0 }", "hold.epsilon: expected more than epsilon"),
        ("{ windows = 4, epsilon = inf }", "hold.epsilon: expected a finite number"),
    ],
)
def test_what_cannot_be_held_is_refused(hold: str, said: str):
    with pytest.raises(SpecError, match=said.replace("(", r"\(")):
        held(hold=hold)


@pytest.mark.parametrize("mechanism", ["subset-selection", "l1-bits", "l1-geometric", "tree"])
def test_mechanisms_without_a_chain_say_what_to_write(mechanism: str):
    domain = "domain = { sizes = [4] }" if mechanism != "subset-selection" else THREE
    with pytest.raises(
        SpecError, match=f"hold.epsilon: expected no such key with {mechanism}.*hold = H"
    ):
        held(mechanism, domain=domain)
    assert held(mechanism, "4", domain).hold.chain is None


def test_priors_are_not_held():
    with pytest.raises(SpecError, match=r"modes\.hold: expected no such key with lip"):
        held("lip", "4", 'domain = { values = ["a", "b"] }\nprior = 0.1')


def test_records_are_not_held():
    with pytest.raises(SpecError, match=r"modes\.hold: expected no such key for a domain of attr"):
        held(hold="4", domain="domain = { attributes = { a = { size = 3 }, b = { size = 4 } } }")


def test_every_binary_chain_is_one():
    """`Q1^-1 Q12` has no negative entry: 200 random pairs of budgets, exactly."""
    draw = np.random.default_rng(5)
    for _ in range(200):
        a, b = (Fraction(int(n), 100) for n in draw.integers(1, 400, size=2))
        less = [Fraction(int(n), 100) for n in draw.integers(1, 100, size=2)]
        (q, r), (q12, r12) = (_binary(*budgets) for budgets in ((a, b), (a * less[0], b * less[0])))
        # Rows (1 - q, q) and (1 - r, r); M's second column solves both.
        low = (q12 * r - r12 * q) / (r - q)
        high = ((1 - q) * r12 - (1 - r) * q12) / (r - q)
        assert 0 <= low <= 1
        assert 0 <= high <= 1


def _binary(a: Fraction, b: Fraction) -> tuple[Fraction, Fraction]:
    """Return q and r of the optimal channel of two values, e^-a and e^-b as near rationals."""
    up, down = Fraction(math.exp(-a)), Fraction(math.exp(-b))
    q = down * (1 - up) / (1 - up * down)
    return q, q / down


def words_of(text: str) -> Words:
    return Words([[text[i : i + 16] for i in range(0, len(text), 16)]])


@pytest.mark.parametrize("vector", VECTOR["devices"], ids=lambda one: one["name"])
def test_the_same_words_draw_and_send_the_same(vector: dict):
    spec = spec_of(vector)
    assert spec.device_document() == vector["document"]
    assert largest_loss(spec.charged) == Fraction(vector["loss"])
    for epoch in vector["epochs"]:
        drawing, permanent = words_of(epoch["words"]), spec.hold.permanent
        place = spec.domain.place([epoch["label"]], entropy=drawing)
        payload = permanent.encode(permanent.randomise(place, drawing))
        assert payload.tobytes().hex() == epoch["permanent"]
        for sent in epoch["sent"]:
            found = spec.hold.sent(payload, words_of(sent["words"]))
            assert found.tobytes().hex() == sent["report"]


def test_epochs_are_those_of_the_vectors():
    for one in VECTOR["offsets"]:
        secret, fingerprint = (bytes.fromhex(one[key]) for key in ("secret", "fingerprint"))
        assert epoch_offset(secret, fingerprint, one["windows"]) == one["offset"]
    for one in VECTOR["epochs"]:
        secret, fingerprint = (bytes.fromhex(one[key]) for key in ("secret", "fingerprint"))
        hold = held(hold=str(one["windows"])).hold
        span = {"start_ms": one["start_ms"], "window_ms": one["window_ms"]}
        assert list(hold.epoch(secret, fingerprint, **span)) == one["epoch"]
