"""Two values under localized information privacy ([LIP]; docs/theory.md section 7).

A report holds the level, of prior and epsilon, in the clear, and one bit sent through the level's
channel: the best one that keeps eps-LIP at every prior of the level, rounded to multiples of 2^-64.
[LIP] Theorem 2 gives another channel, `q0 = P/e^eps`, `q1 = (1 - P)/e^eps`, which violates the
bound for most priors (P = 0.01 with epsilon 1 loses 4.15; `policies.lip` says for which). Where it
keeps the bound, both are equal.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_structure,
)
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, exp_floor, log_estimate
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.families.lip.domain import (
    MAX_CHANNELS,
    Prior,
    PriorDomain,
    read_epsilons,
    read_prior,
)
from ldpstream.mechanisms.interface.decoder import Decoded, Statistic
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import CountDecoder, SymbolMechanism
from ldpstream.mechanisms.policies.lip import Level, LipPolicy, largest_lift, level_thresholds


@dataclass(frozen=True)
class Lip(SymbolMechanism):
    """The mechanism `lip`: one prior or levels of priors, and one budget or several to choose from.

    Values and reports are (level, bit), numbered `2 * level + bit`. The level is
    `prior level * len(epsilons) + place of the budget`, and P(bit = 1) is the prior.

    Raises:
        SpecError: if a budget is not a finite number above 0, is given twice or is so small that
            reports carry no information, or there are more than 8,192 levels.
    """

    id: ClassVar[str] = "lip"
    prior: Prior
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        read_epsilons(list(self.epsilons), "epsilon")
        if self.size > 2 * MAX_CHANNELS:
            raise SpecError("prior.levels", f"at most {MAX_CHANNELS} levels times budgets")
        if min(self.epsilons) < SMALLEST_EPSILON or any(r <= q for q, r in self.thresholds):
            raise SpecError("epsilon", f"a number of at least {SMALLEST_EPSILON}")

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        settings.only(cls.id, "epsilon", "prior")
        if settings.domain.size != 2:
            raise SpecError(
                f"{settings.path}.domain", f"2 values with {cls.id}, got {settings.domain.size}"
            )
        epsilons = read_epsilons(settings.keys.get("epsilon"), f"{settings.path}.epsilon")
        prior = read_prior(settings.keys.get("prior"), f"{settings.path}.prior")
        with within(settings.path):
            return cls(prior, epsilons)

    def report_domain(self, domain: Domain) -> Domain:
        if not self.prior.local and len(self.epsilons) == 1:
            return domain
        return PriorDomain(domain, self.prior, self.epsilons)

    @property
    def size(self) -> int:
        return 2 * (len(self.prior.edges) - 1) * len(self.epsilons)

    @property
    def outputs(self) -> int:
        return self.size

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The interval of priors and the budget of every level."""
        return self.prior.channels(self.epsilons)

    @cached_property
    def thresholds(self) -> tuple[tuple[int, int], ...]:
        """Probabilities of bit 1 for the bits 0 and 1, in units of 2^-64, of every level."""
        return tuple(level_thresholds(level) for level in self.levels)

    @property
    def policy(self) -> LipPolicy:
        """Eps-LIP inside each level; levels are disclosed."""
        return LipPolicy(self.levels, self.thresholds)

    def parameters(self) -> Mapping[str, Json]:
        prior: Json = self.prior.value
        if self.prior.local:
            prior = {"edges": list(self.prior.edges)}
        return {
            "prior": prior,
            "epsilon": [float(epsilon) for epsilon in self.epsilons],
            "thresholds": [[hex(q), hex(r)] for q, r in self.thresholds],
        }

    def channel(self) -> Channel:
        rows = tuple(
            {2 * level: Fraction(WORD - t, WORD), 2 * level + 1: Fraction(t, WORD)}
            for level, pair in enumerate(self.thresholds)
            for t in pair
        )
        return Channel(rows, self.outputs)

    def certify(self) -> Certificate:
        """Prove or refute `e^-eps <= P(X = x | y)/P(X = x) <= e^eps`, exactly.

        Checks both values and both reports of every level, for every prior of its interval; the two
        ends that `largest_lift` computes suffice. `losses` holds the largest ratio (or inverse) for
        each budget. The certificate names the violation with the largest excess.
        """
        worst: dict[Fraction, Fraction] = {}
        floors = {epsilon: exp_floor(epsilon) for epsilon in {each.epsilon for each in self.levels}}
        violation, worst_excess = None, -math.inf
        for number, (level, thresholds) in enumerate(
            zip(self.levels, self.thresholds, strict=True)
        ):
            budget = level.epsilon
            lift = largest_lift(level, thresholds)
            worst[budget] = max(worst.get(budget, Fraction(1)), lift.ratio)
            if lift.ratio <= floors[budget]:
                continue
            loss = log_estimate(lift.ratio)
            if loss - float(budget) > worst_excess:
                worst_excess = loss - float(budget)
                violation = (
                    f"level {number} ({level}) at output {lift.output}: "
                    f"loss {loss:.6g} above the budget {float(budget):.6g}"
                )
        enumerated = self.size <= ENUMERATION_LIMIT
        return certify_by_structure(
            self.id,
            self.policy,
            worst,
            self.disclosed(),
            violation=violation,
            proof="enumeration" if enumerated else "structure",
        )

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        """The threshold of each value; all are above 0 and below 2^64."""
        return np.array([t for pair in self.thresholds for t in pair], dtype=np.uint64)

    def randomise(self, values: Integers, entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        Takes one word for each value: the bit is 1 if it is below the value's threshold. The level
        stays.
        """
        words = entropy.words(len(values))
        ones = words < self._table[values]
        return (values & -2) | ones

    @locked_cached_property
    def decoder(self) -> "LipDecoder":
        """The decoder of linear queries: unbiased whatever the priors are."""
        return LipDecoder(self.thresholds)

    def disclosed(self) -> list[str]:
        texts = []
        if self.prior.local and len(self.prior.edges) > 2:
            texts.append(f"the level of the device's prior, one of {len(self.prior.edges) - 1}")
        if len(self.epsilons) > 1:
            texts.append(f"the chosen epsilon, one of {len(self.epsilons)}")
        return texts


class LipDecoder(CountDecoder):
    """A binary channel for each level; h is 0 at reports of other levels.

    `h_1(y) = (1{y = 1} - q)/(r - q)` and `h_0 = 1 - h_1` at reports of the level.

    Estimates are unbiased over the channel whatever the priors are. Values and outputs are numbered
    `2 * level + bit`. `thresholds` are the realised `(q, r)` in units of 2^-64.
    """

    def __init__(self, thresholds: Sequence[tuple[int, int]]) -> None:
        # Each entry is one correctly rounded quotient of integers; axes: level, bit, report.
        self._h = np.array(
            [
                [[r / (r - q), (r - WORD) / (r - q)], [-q / (r - q), (WORD - q) / (r - q)]]
                for q, r in thresholds
            ]
        )
        self.channel = np.array(
            [[[(WORD - t) / WORD, t / WORD] for t in pair] for pair in thresholds]
        )
        """`P(y | x)` of every level, value and report, all above 0: float64 `(levels, 2, 2)`."""
        # h is affine in the report, so that its variance is a Bernoulli one over the squared gap.
        noise = np.array([[t * (WORD - t) / (r - q) ** 2 for t in (q, r)] for q, r in thresholds])
        self._quietest, self._noisiest = noise.min(axis=1), noise.max(axis=1)

    def totals(self, statistic: Statistic) -> Floats:
        return self._sum(self._h, statistic)

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        return self._sum(self._h**2, decoded.statistic)[at]

    def _sum(self, table: Floats, reports: Floats | Statistic) -> Floats:
        columns = np.asarray(reports, dtype=np.float64).reshape(-1, 1, 2)
        sums: Floats = (table * columns).sum(axis=2).ravel()
        return sums

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of each value's decoder, which is 0 at reports of other levels."""
        least, largest = self._h.min(axis=2).ravel(), self._h.max(axis=2).ravel()
        if len(self._h) > 1:
            return np.minimum(least, 0.0), np.maximum(largest, 0.0)
        return least, largest

    def decode(self, weights: Floats) -> Floats:
        rows = np.asarray(weights, dtype=np.float64).reshape(-1, 2, 1)
        decoded: Floats = (self._h * rows).sum(axis=1).ravel()
        return decoded

    def expect(self, function: Floats) -> Floats:
        return self._sum(self.channel, function)

    def groups(self) -> Integers | None:
        """Return the level of each value, which reports disclose; None if there is one."""
        if len(self._h) == 1:
            return None
        return np.arange(2 * len(self._h)) // 2

    def output_groups(self) -> Integers | None:
        """Return the level of each output; None if there is one."""
        return self.groups()

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return `p(1 - p)/(r - q)^2` for the quieter and the noisier p of q and r."""
        return np.repeat(self._quietest, 2), np.repeat(self._noisiest, 2)
