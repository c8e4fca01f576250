"""Two values, two budgets: the optimal channel of [CA] Theorem 2 (docs/theory.md section 1).

`epsilon = [a, b]` protects the first value against the second by a, and the second against the
first by b. `a = b` is Warner's randomised response, `a = inf` is Mangat's. The paper's closed form
is rounded to multiples of 2^-64 that keep both constraints exactly.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.canonical import json_number
from ldpstream.mechanisms.base.checks import describe, read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.certificate import Certificate, certify_by_enumeration
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, binary_thresholds, budget
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.interface.chain import MixtureChain
from ldpstream.mechanisms.interface.mechanism import Json, Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import CountDecoder, DenseDecoder, SymbolMechanism
from ldpstream.mechanisms.policies.policy import BinaryPolicy


@dataclass(frozen=True)
class Binary(SymbolMechanism):
    """The channel of two values with `E[0, 1] = first`, `E[1, 0] = second`.

    One of the two may be infinite: a report may then reveal that value.

    Raises:
        SpecError: if a budget is not a number above 0, both are infinite, or they are so small that
            the realised channel carries no information.
    """

    id: ClassVar[str] = "binary"
    first: float
    second: float

    def __post_init__(self) -> None:
        for place, epsilon in enumerate((self.first, self.second)):
            read_epsilon(epsilon, f"epsilon[{place}]", infinite=True)
        if math.isinf(self.first) and math.isinf(self.second):
            raise SpecError("epsilon", "at most one infinite budget, got two: no protection at all")
        if self.thresholds[0] >= self.thresholds[1]:
            raise SpecError("epsilon", f"budgets of at least {SMALLEST_EPSILON}")

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        settings.only(cls.id, "epsilon")
        path = f"{settings.path}.epsilon"
        if settings.domain.size != 2:
            raise SpecError(
                f"{settings.path}.domain", f"2 values with binary, got {settings.domain.size}"
            )
        first, second = _read_two(settings.keys.get("epsilon"), path)
        with within(settings.path):
            return cls(first, second)

    @property
    def size(self) -> int:
        return 2

    @property
    def outputs(self) -> int:
        return 2

    @property
    def policy(self) -> BinaryPolicy:
        return BinaryPolicy(self.first, self.second)

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Probabilities of report 1 for the values 0 and 1, in units of 2^-64."""
        first, second = (None if math.isinf(e) else budget(e) for e in (self.first, self.second))
        return binary_thresholds(first, second)

    def parameters(self) -> Mapping[str, Json]:
        budgets: list[Json] = [json_number(self.first), json_number(self.second)]
        return {"epsilon": budgets, "thresholds": [hex(t) for t in self.thresholds]}

    def channel(self) -> Channel:
        rows = tuple(
            {
                output: Fraction(weight, WORD)
                for output, weight in enumerate((WORD - threshold, threshold))
                if weight
            }
            for threshold in self.thresholds
        )
        return Channel(rows=rows, outputs=2)

    def certify(self) -> Certificate:
        return certify_by_enumeration(self.id, self.policy, self.channel(), self.disclosed())

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..1`, into reports of shape `(n,)`.

        Takes one word for each value: the report is 1 if the word is below the value's threshold.
        """
        words = entropy.words(len(values))
        # A threshold of 2^64 does not fit a word: compare with the largest word that gives a 1.
        last = np.array([max(t - 1, 0) for t in self.thresholds], dtype=np.uint64)
        ones = (words <= last[values]) & (np.array(self.thresholds, dtype=object) > 0)[values]
        return ones.astype(np.int64)

    def chain(self, epsilon: object) -> tuple[Self, MixtureChain]:
        """Return the mechanism of a permanent draw, and the chain from it to reports.

        `M = Q1^-1 Q`: a channel of two values with smaller budgets is a garbling of the one that is
        optimal for larger budgets (Blackwell). With two rows, M is a mixture: a report stays with
        probability `M[1, 1] - M[0, 1]`, and otherwise does not depend on the permanent one.
        """
        key = "hold.epsilon"
        permanent = type(self)(*_read_two(epsilon, key))
        budgets = [(self.first, permanent.first), (self.second, permanent.second)]
        for place, (single, larger) in enumerate(budgets):
            if larger < single:
                raise SpecError(
                    f"{key}[{place}]", f"at least epsilon[{place}], which is {single:g}"
                )
            if math.isinf(larger) and not math.isinf(single):
                raise SpecError(f"{key}[{place}]", "a finite number, as epsilon has")
        if all(single == larger for single, larger in budgets):
            raise SpecError(
                key,
                f"one budget above epsilon's, the other no less: {self.first:g}, {self.second:g}",
            )
        (q, r), (q1, r1) = self.thresholds, permanent.thresholds
        keep = Fraction(r - q, r1 - q1)
        likely = Fraction(q * r1 - r * q1, WORD * (r1 - q1))
        rest = (1 - keep - likely, likely)
        if min(rest) < 0 or keep >= 1:
            raise SpecError(key, "both further above epsilon: at 64 bits they are equal to it")
        rows = permanent.channel().rows
        extremes = [
            (y, rows[x].get(y, Fraction(0)), rows[z].get(y, Fraction(0)))
            for x, z, _ in permanent.policy.constraints()
            for y in (0, 1)
        ]
        largest = tuple(max(row.get(y, Fraction(0)) for row in rows) for y in (0, 1))
        different = tuple(e for e in extremes if e[1] > e[2])
        return permanent, MixtureChain(keep, rest, different, largest)

    @locked_cached_property
    def decoder(self) -> CountDecoder:
        """The decoder `h_1(y) = (1{y = 1} - q) / (r - q)`, `h_0 = 1 - h_1`."""
        q, r = self.thresholds
        gap = r - q
        # Each entry is a correctly rounded quotient of two integers.
        h = np.array([[r / gap, (r - WORD) / gap], [-q / gap, (WORD - q) / gap]])
        return DenseDecoder(h, np.array([[(WORD - t) / WORD, t / WORD] for t in (q, r)]))

    def disclosed(self) -> list[str]:
        unprotected = self.policy.unprotected
        return [] if unprotected is None else [unprotected]


def _read_two(raw: object, path: str) -> tuple[float, float]:
    if not isinstance(raw, list) or len(raw) != 2:
        raise SpecError(path, f"a list of two numbers above 0, got {describe(raw)}")
    first, second = (
        read_epsilon(value, f"{path}[{place}]", infinite=True) for place, value in enumerate(raw)
    )
    return first, second
