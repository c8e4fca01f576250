"""Localized information privacy of k values under one prior ([LIP] Definition 3)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import read_epsilon
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import check_size
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy


@dataclass(frozen=True)
class KnownPrior:
    """What a collection knows of its values before any report, besides its mechanism.

    `shares` are exact, above 0 with sum 1; None if nothing is known. `policy` is the localized
    information privacy that the mechanism was asked to keep, which it may do by a stricter policy.
    """

    shares: tuple[Fraction, ...] | None = None
    policy: "PriorPolicy | None" = None


NOTHING_KNOWN: Final = KnownPrior()


@dataclass(frozen=True)
class PriorPolicy(Policy):
    """`e^-eps <= P(X = x | y) / prior[x] <= e^eps` for every value x and every report y.

    `prior` holds exact shares above 0 with sum 1. The entries are what this implies for pairs:
    `Q[x, y] <= e^(2 eps) Q[x', y]`, since both rows are within `e^+-eps` of the report's
    probability. The policy itself is stronger, because it bounds the odds against the prior.

    Raises:
        SpecError: if epsilon is not a finite number above 0, or the prior is not a distribution
            above 0.
    """

    epsilon: float
    prior: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        read_epsilon(self.epsilon, "epsilon")
        check_size(len(self.prior), "prior")
        if min(self.prior) <= 0 or sum(self.prior) != 1:
            raise SpecError("prior", "shares above 0 with sum 1")

    @property
    def size(self) -> int:
        return len(self.prior)

    @property
    def budget(self) -> Fraction:
        """Epsilon as an exact rational (`dyadic.budget`)."""
        return budget(self.epsilon)

    @property
    def known_shares(self) -> tuple[Fraction, ...]:
        return self.prior

    def entry(self, value: int, other: int) -> Fraction:
        """Return the implied `E[value, other]`: twice epsilon; 0 on the diagonal."""
        return Fraction(0) if value == other else 2 * self.budget

    @property
    def unprotected_pairs(self) -> int:
        return 0

    @property
    def unprotected(self) -> None:
        return

    def least_budgets(self) -> Iterator[Fraction]:
        yield self.budget

    def largest_loss(self) -> Fraction:
        return self.entry(0, 1)

    def by_entries(self) -> Policy:
        return BlockPolicy(self.epsilon, Blocks.one(self.size))

    def worst_ratio(self, column: Sequence[int]) -> tuple[Fraction | None, int]:
        """Return the largest `P(x | y)/prior[x]` or inverse of it at one report y, and that x.

        `column` is proportional to `Q[., y]`. The ratio is None if some x cannot produce y.
        """
        common = self._integers
        mean = sum(p * q for p, q in zip(common, column, strict=True))
        least = min(range(self.size), key=column.__getitem__)
        most = max(range(self.size), key=column.__getitem__)
        if column[least] == 0:
            return None, least
        unit = sum(common)
        high = Fraction(column[most] * unit, mean)
        low = Fraction(mean, column[least] * unit)
        return (high, most) if high >= low else (low, least)

    @cached_property
    def _integers(self) -> list[int]:
        """The numerators of the prior over one denominator, which is their sum."""
        unit = math.lcm(*(share.denominator for share in self.prior))
        return [int(share * unit) for share in self.prior]

    def document(self) -> dict[str, Json]:
        prior: list[Json] = [str(share) for share in self.prior]
        return {"kind": "lip", "epsilon": self.epsilon, "prior": prior}

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "lip",
            "size": self.size,
            "epsilon": self.epsilon,
            "priors": [float(min(self.prior)), float(max(self.prior))],
            "guarantee": (
                "if values are drawn from the prior, a report changes the probability of each by "
                "at most e^epsilon in either direction; whatever they are drawn from, LDP with "
                "twice epsilon"
            ),
        }
