"""`l1-geometric` realises its channel exactly: its draws are enumerated with scripted words.

A word matters only by the side of a limit that it is on. Every script of such sides is followed,
with its exact probability, until the report is known. Two things are left out, and what they leave
out is known: a cell that starts over forgets all before, so following only scripts in which none
does, and dividing by their total, gives the same probabilities; and words that equal a limit whose
expansion goes on (probability 2^-64 each) are tested on their own.
"""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.exact.geometric import Powers, PowerTable, TwoSidedGeometric
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.enumeration import Scripted
from tests.exact.geometric_reference import as_specified
from tests.seeded import SeededEntropy

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
