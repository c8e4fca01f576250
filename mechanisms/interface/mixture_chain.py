"""Chains that keep the permanent report, or draw from a distribution that does not depend on it.

`Q = lambda Q1 + (1 - lambda) 1 beta^T`: for any channel, M keeps a report of Q1 with probability
lambda (docs/theory.md, section 11).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.held import MOST_COUNTED
from ldpstream.mechanisms.exact.entropy import Entropy, choose_rational
from ldpstream.mechanisms.interface.chain import Chain


@dataclass(frozen=True, eq=False)
class MixtureChain(Chain):
    """A chain of reports `0..outputs-1`: z stays with probability `keep`, or y has `others[y]`.

    `keep` and `others` sum to 1. `extremes` hold the pairs of values that decide the loss, each as
    `(y, Q1[x, y], Q1[x', y])` with `Q1[x, y] > Q1[x', y] > 0`.
    """

    keep: Fraction
    others: tuple[Fraction, ...]
    extremes: tuple[tuple[int, Fraction, Fraction], ...]

    def again(self, reports: Integers, entropy: Entropy) -> Integers:
        chosen = choose_rational(entropy, self._ends, len(reports))
        return np.where(chosen == 0, reports, chosen - 1)

    @cached_property
    def _ends(self) -> tuple[Fraction, ...]:
        """The ends of the parts of 0..1 that keep z and that send 0, 1, ..; the last ends at 1."""
        return tuple(accumulate(self.others[:-1], initial=self.keep))

    def canonical(self) -> Sequence[Json]:
        """Return the exact ends of the parts of 0..1 that keep z and that send 0, 1, .."""
        return [str(end) for end in self._ends]

    def ratio(self, reports: int) -> Fraction:
        """Return the exact largest ratio of two values over all outcomes of m >= 1 reports.

        Up to a constant the reports have the probability `sum_z Q1[x, z] g[z]`, where
        `g[z] = (1 + keep/others[z])^(times z was sent)`. As in `Blend.ratio`, it is largest if all
        reports are the same y. A y that is sent only if z = y reveals z.
        """
        return max(self._ratio_at(reports, *extreme) for extreme in self.extremes)

    def _ratio_at(self, reports: int, y: int, more: Fraction, less: Fraction) -> Fraction:
        if reports > MOST_COUNTED or not self.others[y]:
            return more / less
        grown = (1 + self.keep / self.others[y]) ** reports - 1
        return (1 + more * grown) / (1 + less * grown)
