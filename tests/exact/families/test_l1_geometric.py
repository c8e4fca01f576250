"""`l1-geometric` against its definition: channel, inverse, and the error of ranges.

The realised alpha is a rational, so all of them are enumerated without any rounding; only what the
decoder computes in floating point is compared with a tolerance. Last, what it and `l1-bits` refuse.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.exact.geometric import Powers, PowerTable, TwoSidedGeometric
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.enumeration import Rows, Scripted, boxes
from tests.exact.geometric_reference import as_specified
from tests.seeded import SeededEntropy

CASES = [
    L1Geometric(1.0, (6,)),
    L1Geometric(0.3, (2,)),
    L1Geometric(0.4, (7,)),
    L1Geometric(3.0, (5,)),
    L1Geometric(1.0, (3, 4)),
    L1Geometric(0.5, (3, 1, 2)),
    L1Geometric(2.0, (2, 3, 2)),
]
Kind = type[L1Bits] | type[L1Geometric]
KINDS = pytest.mark.parametrize("kind", [L1Bits, L1Geometric])
EVERY = pytest.mark.parametrize("mechanism", CASES, ids=lambda m: f"{m.epsilon}-{m.shape}")


@EVERY
def test_the_channel_is_the_clamped_difference_of_two_geometrics(mechanism: L1Geometric):
    rows = mechanism.channel().rows
    exact = over_shape(by_definition, mechanism)
    assert [[row[y] for y in range(mechanism.size)] for row in rows] == exact


# Population, uniform shares: mean variance a report over all ranges.
STATED = [(16, 1.0, 0.55803), (64, 1.0, 0.27589), (16, 0.3, 24.465), (24, 0.2, 81.195)]


@pytest.mark.grid
@pytest.mark.parametrize(("m", "epsilon", "stated"), STATED)
def test_all_ranges_of_a_line_have_the_stated_variance(m: int, epsilon: float, stated: float):
    mechanism = L1Geometric(epsilon, (m,))
    ranges = [range_values((m,), bounds) for bounds in boxes((m,))]
    found = predicted_set_variances(mechanism, ranges, estimand="population")
    assert found.mean() == pytest.approx(stated, rel=5e-5)


GAINS = [(16, 1.0, 1, 5.0), (64, 1.0, 1, 19.6), (64, 1.0, 2, 90.0), (64, 1.0, 3, 497.0)]


@pytest.mark.grid
@pytest.mark.parametrize(("m", "epsilon", "dimensions", "gain"), [*GAINS, (64, 0.1, 1, 1 / 2.2)])
def test_the_gain_over_one_bit_a_position(m: int, epsilon: float, dimensions: int, gain: float):
    """The mean over all boxes, respondents, Zipf(1.1): of second moments a power of a line's."""
    shares = np.arange(1.0, m + 1.0) ** -1.1
    shares /= shares.sum()
    decoders = [kind(epsilon, (m,)).decoder for kind in (L1Bits, L1Geometric)]
    sums = np.zeros(3)
    for ((first, last),) in boxes((m,)):
        inside = ((first <= np.arange(m)) & (np.arange(m) <= last)).astype(float)
        sums += [shares @ inside, *(shares @ (one.noise(inside) + inside) for one in decoders)]
    inside, bits, geometric = (sums / (m * (m + 1) / 2)) ** dimensions
    assert (bits - inside) / (geometric - inside) == pytest.approx(gain, rel=0.02)


def test_a_large_domain_is_decoded_without_a_matrix():
    mechanism = L1Geometric(0.01, (1000, 1000))
    weights = np.zeros(mechanism.size)
    weights[range_values((1000, 1000), [(10, 400), (3, 999)])] = 1.0
    decoder = mechanism.decoder
    np.testing.assert_allclose(decoder.expect(decoder.decode(weights)), weights, atol=1e-6)


@pytest.mark.parametrize(("kind", "most"), [(L1Geometric, 3), (L1Bits, 4)])
def test_an_epsilon_whose_channel_says_nothing_is_refused(kind: Kind, most: int):
    with pytest.raises(SpecError, match=r"^epsilon: expected a number of at least 1e-18"):
        kind(1e-20, (4,))
    assert kind(1e-18, (4,)).certify().passed
    said = rf"^epsilon: expected a larger number in {most + 1} dimensions"
    with pytest.raises(SpecError, match=said):
        kind(1e-18, (4,) * (most + 1))


@KINDS
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0, 3), (-2, 3), (2.5,), (10**4, 10**4)])
def test_an_impossible_shape_is_refused_by_name(kind: Kind, shape: tuple[int, ...]):
    with pytest.raises(SpecError, match=r"^shape"):
        kind(1.0, shape)


@pytest.mark.parametrize(
    ("kind", "epsilon", "variance"),
    [
        (L1Geometric, 0.3, 14.7511),
        (L1Bits, 0.3, 11.0282),
        (L1Geometric, 1.0, 0.2206),
        (L1Bits, 1.0, 0.9207),
    ],
)
def test_two_prefixes_of_sixteen_values_are_those_of_the_theory(
    kind: Kind, epsilon: float, variance: float
):
    prefixes = np.tri(16)[[4, 7]]
    found = np.mean([kind(epsilon, (16,)).decoder.noise(row) for row in prefixes])
    assert found == pytest.approx(variance, abs=6e-5)


HALF = Fraction(1, 2)


class UndecidedError(Exception):
    """The script ends before the report is known."""


class RestartError(Exception):
    """A cell starts over: its probability is spread over the other outcomes."""


class ScriptedNoise(TwoSidedGeometric):
    """Follows a script of coins and trials instead of words; `weight` is its probability."""

    def follow(self, script: tuple[bool, ...]) -> None:
        state = {"script": list(script), "weight": Fraction(1), "powers": self, "successes": []}
        vars(self).update(state)

    def take(self, chance: Fraction) -> bool:
        if not self.script:
            raise UndecidedError
        success = self.script.pop(0)
        vars(self)["weight"] *= chance if success else 1 - chance
        return success

    def bernoulli(self, entropy: object, levels: np.ndarray) -> np.ndarray:
        alpha = Fraction(self.thresholds[0], WORD)
        if entropy == "trials":
            # Beyond the largest number no trial changes the report.
            if len(self.successes) << self.low_digits >= self.largest:
                return np.array([False])
            if self.take(alpha ** (1 << self.low_digits)):
                self.successes.append(True)
                return np.array([True])
            return np.array([False])
        drawn = [self.take(alpha ** (1 << int(level))) for level in levels]
        if not all(drawn):
            raise RestartError
        return np.array(drawn, dtype=np.bool_)

    def move_one(self, value: int, last: int) -> int:
        def coins(_: object, n: int) -> np.ndarray:
            return np.array([self.take(HALF) for _ in range(n)])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ldpstream.mechanisms.exact.geometric.fair_coins", coins)
            drawn = self._odds("signs and digits", np.zeros(1, dtype=np.int64))
            patch.setattr(TwoSidedGeometric, "_odds", lambda *_: drawn)
            return int(self.move("trials", np.array([value]), np.array([last]))[0])


def scripts(noise: ScriptedNoise, value: int, last: int) -> Iterator[tuple[int, Fraction]]:
    waiting: list[tuple[bool, ...]] = [()]
    while waiting:
        script = waiting.pop()
        noise.follow(script)
        try:
            report = noise.move_one(value, last)
        except UndecidedError:
            waiting += [(*script, False), (*script, True)]
        except RestartError:
            continue
        else:
            assert not noise.script
            yield report, noise.weight


@pytest.mark.parametrize(
    ("epsilon", "m", "digits"),
    [(3.0, 5, 0), (1.0, 4, 0), (0.5, 2, 1), (0.4, 7, 1), (0.2, 6, 2), (0.01, 5, 3), (1e-6, 3, 2)],
)
def test_the_draws_have_exactly_the_probabilities_of_the_channel(
    epsilon: float, m: int, digits: int
):
    mechanism = L1Geometric(epsilon, (m,))
    noise = ScriptedNoise((mechanism.threshold,), m)
    assert noise.low_digits == digits
    for value, row in enumerate(mechanism.channel().rows):
        realised: Counter[int] = Counter()
        for report, weight in scripts(noise, value, m - 1):
            realised[report] += weight
        total = sum(realised.values())
        assert {report: weight / total for report, weight in realised.items()} == dict(row)


def test_the_digits_of_a_high_power_cost_no_high_power():
    assert 0 < Powers(WORD - 1, 1).digits(60, 2) < WORD**2


def test_a_trial_compares_digit_by_digit():
    powers = Powers(0xBB26A7AEAD15E6CA, 3)
    first, second, third, fourth = (powers.digits(2, words) % WORD for words in (1, 2, 3, 4))
    level = np.array([2])
    for words, success in [
        ((first - 1,), True),
        ((first + 1,), False),
        ((first, second - 1), True),
        ((first, second + 1), False),
        ((first, second, third - 1), True),
        ((first, second, third, fourth - 1), True),
        # All 256 binary digits are equal: not below.
        ((first, second, third, fourth), False),
    ]:
        entropy = Scripted(words)
        assert PowerTable((powers,)).bernoulli(entropy, level).tolist() == [success]
        assert not entropy.left
    entropy = Scripted([0xBB26A7AEAD15E6CA])
    assert PowerTable((powers,)).bernoulli(entropy, np.array([0])).tolist() == [False]
    assert not entropy.left


def test_equal_digits_take_further_words_after_the_batch():
    powers = Powers(0xBB26A7AEAD15E6CA, 2)
    first, second = powers.digits(1, 1), powers.digits(1, 2) % WORD
    entropy = Scripted([first, 0, first, WORD - 1, second - 1, second])
    assert PowerTable((powers,)).bernoulli(entropy, np.ones(4, dtype=np.int64)).tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert not entropy.left


@pytest.mark.parametrize(
    "mechanism",
    [
        L1Geometric(1.0, (100,)),
        L1Geometric(0.1, (4, 1, 30)),
        L1Geometric(1e-9, (3, 5)),
        L1Geometric(6.0, (9, 2)),
    ],
    ids=lambda m: f"{m.epsilon}-{m.shape}",
)
def test_the_draws_follow_the_specification(mechanism: L1Geometric):
    values = np.random.default_rng(1).integers(0, mechanism.size, 200)
    found = mechanism.privatize(values, entropy=SeededEntropy(2))
    assert found.tolist() == as_specified(mechanism, values.tolist(), SeededEntropy(2))
    assert mechanism.privatize(values[:1], entropy=SeededEntropy(5)).tolist() == as_specified(
        mechanism, values[:1].tolist(), SeededEntropy(5)
    )


def alpha_of(mechanism: L1Geometric) -> Fraction:
    return Fraction(mechanism.threshold, WORD)


def by_definition(alpha: Fraction, m: int) -> Rows:
    """clamp(x + G - G') of two geometrics: `P(D = d) = sum_g P(g + d) P(g)`, summed exactly."""

    def difference(d: int) -> Fraction:
        return (1 - alpha) ** 2 * alpha ** abs(d) / (1 - alpha**2)

    def beyond(d: int) -> Fraction:
        return difference(d) / (1 - alpha)  # P(D >= d), d >= 0

    rows = []
    for x in range(m):
        inner = [difference(y - x) for y in range(1, m - 1)]
        rows.append([beyond(x), *inner, beyond(m - 1 - x)] if m > 1 else [Fraction(1)])
    return rows


def kron(first: Rows, second: Rows) -> Rows:
    return [[a * b for a in row for b in other] for row in first for other in second]


def over_shape(build: Callable[[Fraction, int], Rows], mechanism: L1Geometric) -> Rows:
    out: Rows = [[Fraction(1)]]
    for length in mechanism.shape:
        out = kron(out, build(alpha_of(mechanism), length))
    return out
