"""Localized information privacy as a policy ([LIP]; docs/theory.md section 7)."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.exact.dyadic import log_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.policies.lip import Level
from ldpstream.mechanisms.policies.policy import Policy


@dataclass(frozen=True)
class LipPolicy(Policy):
    """Localized information privacy of a bit: eps-LIP for every prior of the report's level.

    Levels are disclosed. The values are (level, bit), numbered `2 * level + bit`. `thresholds` are
    the realised channels `(q, r)` of the levels, from which the entries follow: infinity between
    levels, and inside a level `E[1, 0] = log(r/q)` and `E[0, 1] = log((1 - q)/(1 - r))`, rounded up
    to floats.

    LIP demands more than these entries, since it bounds the odds against the prior, and less than
    LDP with the same epsilon: **eps-LIP implies 2 eps-LDP**, and nothing better in general. Proof:
    at every y both `P(x|y)/P(x) = Q[x,y]/P(y)` and `Q[x',y]/P(y)` are within `e^+-eps`, so that
    `Q[x,y]/Q[x',y] <= e^(2 eps)`; at P = 1/2 and small epsilon the best channel comes close to it.
    Conversely eps-LDP implies eps-LIP at every prior, since P(y) is a mean of the `Q[x,y]`.
    """

    levels: tuple[Level, ...]
    thresholds: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        return 2 * len(self.levels)

    def _ratios(self, level: int) -> tuple[Fraction, Fraction]:
        """Return `(e^E[0, 1], e^E[1, 0])` of a level."""
        q, r = self.thresholds[level]
        return Fraction(WORD - q, WORD - r), Fraction(r, q)

    @property
    def implied(self) -> Fraction:
        """The largest entry: the local differential privacy that follows for all levels."""
        return _log_above(
            max(ratio for level in range(len(self.levels)) for ratio in self._ratios(level))
        )

    def entry(self, value: int, other: int) -> Fraction | None:
        if value == other:
            return Fraction(0)
        level, bit = divmod(value, 2)
        return _log_above(self._ratios(level)[bit]) if other // 2 == level else None

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the two ordered pairs of each level; all others are unprotected."""
        for level in range(len(self.levels)):
            yield 2 * level, 2 * level + 1
            yield 2 * level + 1, 2 * level

    @property
    def unprotected_pairs(self) -> int:
        return 4 * len(self.levels) * (len(self.levels) - 1)

    @property
    def unprotected(self) -> str | None:
        if len(self.levels) == 1:
            return None
        return "values in different levels: a report reveals the level of prior and epsilon"

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "lip",
            "size": self.size,
            "epsilon": [float(e) for e in sorted({level.epsilon for level in self.levels})],
            "priors": [
                float(min(level.low for level in self.levels)),
                float(max(level.high for level in self.levels)),
            ],
            "levels": len(self.levels),
            "implied_ldp": float(self.implied),
            "guarantee": (
                "for every prior of the report's level, odds that a report changes by at most "
                "e^epsilon in either direction: e^-epsilon <= P(X | report) / P(X) <= e^epsilon; "
                "by that, LDP with the budget implied_ldp, at most twice epsilon"
            ),
        }


@lru_cache(maxsize=1024)
def _log_above(ratio: Fraction) -> Fraction:
    return Fraction(log_bounds(ratio)[1])
