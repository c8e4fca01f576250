"""Sensitive values hidden among all values, the others mostly in the clear ([CA] Section 5).

With s sensitive values there are `S = 2^ceil(log2(s + 1))` Hadamard positions (reports `0..S-1`)
and one plain report for each other value (`S..`, in the domain's order). The i-th sensitive value
(from 0) reports a uniform position of sign +1 in Sylvester's row i + 1 with probability
`e^eps / (e^eps + 1)`, and of sign -1 otherwise. Any other value sends its plain report with
probability `t = tanh(eps / 2)`, and otherwise a uniform position. See docs/theory.md section 2.
Equation (13) of the paper writes row x, which would give the first value the constant row 0; its
sets S_i are rows i + 1, as here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import within
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
)
from ldpstream.mechanisms.channels.channel import Channel, refuse_large
from ldpstream.mechanisms.exact.dyadic import budget, sign_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.exact.walsh import move_to_sign, positive, sign_order
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.incidence import Signs
from ldpstream.mechanisms.families.groups.decoder import SymbolBlanket
from ldpstream.mechanisms.families.groups.sensitive import SensitiveMechanism
from ldpstream.mechanisms.interface.chain import BlockChain, blend_of, read_larger
from ldpstream.mechanisms.interface.mechanism import Json, Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import SymbolMechanism


@dataclass(frozen=True)
class HighLow(SensitiveMechanism, SymbolMechanism):
    """Protects the values in `sensitive` by Hadamard positions."""

    id: ClassVar[str] = "high-low"

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        settings.only(cls.id, "epsilon", "sensitive")
        epsilon = settings.read_epsilon()
        sensitive = settings.read_sensitive()
        with within(settings.path):
            return cls(epsilon, settings.domain.size, sensitive)

    @property
    def positions(self) -> int:
        """Number S of Hadamard positions."""
        return sign_order(len(self.sensitive))

    @property
    def outputs(self) -> int:
        """Number of reports: S positions, and one for each value that is not sensitive."""
        return self.positions + self.values - len(self.sensitive)

    @cached_property
    def threshold(self) -> int:
        """Probability of a position with sign +1, in units of 2^-64, rounded toward 1/2.

        The plain report has probability `2 threshold - 2^64`, so that the channel stays tight.
        """
        return sign_threshold(budget(self.epsilon))

    @property
    def own_threshold(self) -> int:
        return 2 * self.threshold - WORD

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, 2), Fraction(1, 4)

    @property
    def listable(self) -> bool:
        return self.size <= ENUMERATION_LIMIT

    @cached_property
    def row(self) -> NDArray[np.int64]:
        """Each value's row of Sylvester's matrix, int64 `(k,)`; 0 if it is not sensitive."""
        return np.where(self.groups.of_value == 0, self.groups.position + 1, 0)

    @cached_property
    def plain(self) -> NDArray[np.int64]:
        """The plain report of each value, int64 `(k,)`; -1 if it is sensitive and has none."""
        group = self.groups.of_value
        return np.where(group > 0, self.positions + group - 1, -1)

    def parameters(self) -> Mapping[str, Json]:
        return {"threshold": hex(self.threshold), **self.sensitive_parameters()}

    def channel(self) -> Channel:
        """Return the realised channel in exact rationals.

        Raises:
            ValueError: if it holds more than 2^20 probabilities.
        """
        refuse_large(self.values, self.values * self.positions)
        return Channel(tuple(self._row(value) for value in range(self.values)), self.outputs)

    def _row(self, value: int) -> dict[int, Fraction]:
        S, T = self.positions, self.threshold
        if self.row[value] == 0:
            row = dict.fromkeys(range(S), Fraction(2 * (WORD - T), WORD * S))
            return row | {int(self.plain[value]): Fraction(2 * T - WORD, WORD)}
        high, low = self.levels
        signs = positive(self.row[value], np.arange(S))
        return {y: high if sign else low for y, sign in enumerate(signs)}

    @property
    def levels(self) -> tuple[Fraction, Fraction]:
        """For a sensitive value, the probabilities of a position with sign +1 and with sign -1."""
        high = Fraction(2 * self.threshold, WORD * self.positions)
        return high, Fraction(2, self.positions) - high

    def chain(self, epsilon: object) -> tuple[Self, BlockChain]:
        """Return the mechanism of a permanent draw, and the chain from it to reports.

        Plain reports are replaced by a uniform position too. Against a value with a plain report, a
        sensitive value loses at most as much as against another sensitive value.
        """
        permanent = replace(self, epsilon=read_larger(epsilon, self.epsilon))
        order = self.positions
        blend = blend_of((order, order // 2), permanent.levels, self.levels[0])
        places = np.array([0]), np.array([order])
        return permanent, BlockChain(*places, {order: blend})

    def check_tables(self) -> None:
        super().check_tables()
        protected = self.row[self.row > 0]
        if len(np.unique(protected)) < len(self.sensitive) or protected.max() >= self.positions:
            raise ValueError("the tables of high-low are not what its proof assumes")

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        Takes two words for each value: n that decide the sign, or whether the report is plain; then
        n for the positions. Since S is a power of two, masking a word draws uniformly.
        """
        decisions = entropy.words(len(values))
        rows = self.row[values]
        hidden = rows > 0
        limits = np.array([2 * self.threshold - WORD, self.threshold], dtype=np.uint64)
        chosen = decisions < limits[hidden.astype(np.int64)]
        drawn = entropy.words(len(values)).view(np.int64) & np.int64(self.positions - 1)
        return np.where(chosen & ~hidden, self.plain[values], move_to_sign(rows, drawn, chosen))

    @locked_cached_property
    def decoder(self) -> SymbolBlanket:
        order = self.positions
        signs = SymmetricDesign(order, order // 2, order // 4, WORD)
        return SymbolBlanket(self.groups, signs, Signs(order), threshold=self.own_threshold)
