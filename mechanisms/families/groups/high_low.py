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
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, budget, sign_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.exact.walsh import move_to_sign, sign_order
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.incidence import Incidence, Signs
from ldpstream.mechanisms.families.groups.base import SymbolGroupMechanism, sensitive_parameters
from ldpstream.mechanisms.families.groups.chain import GroupChain
from ldpstream.mechanisms.families.groups.channel import GroupThresholds, KindThresholds
from ldpstream.mechanisms.families.groups.designs import GroupDesign
from ldpstream.mechanisms.interface.chain import read_larger
from ldpstream.mechanisms.interface.mechanism import Json, Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.groups import GroupPolicy, sensitive_policy
from ldpstream.mechanisms.policies.policy import HighLowPolicy


@dataclass(frozen=True)
class SignDesign(GroupDesign):
    """Hadamard positions for a group of `size` values, of which half support a value."""

    @property
    def reports(self) -> int:
        return sign_order(self.size)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, 2), Fraction(1, 4)

    def symmetric(self, threshold: int = WORD) -> SymmetricDesign:
        reports = self.reports
        return SymmetricDesign(reports, reports // 2, reports // 4, threshold)

    @cached_property
    def incidence(self) -> Incidence:
        return Signs(self.reports)


@dataclass(frozen=True)
class HighLow(SymbolGroupMechanism):
    """Protects the values in `sensitive` by Hadamard positions.

    Raises:
        SpecError: as for `sensitive_policy`, and if epsilon is so small that reports carry no
            information.
    """

    id: ClassVar[str] = "high-low"
    epsilon: float
    values: int
    sensitive: frozenset[int]
    grouped: GroupPolicy = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        grouped = sensitive_policy(self.epsilon, self.values, self.sensitive)
        object.__setattr__(self, "grouped", grouped)
        if 2 * self.threshold <= WORD:
            raise SpecError("epsilon", f"a number of at least {SMALLEST_EPSILON}")

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        settings.only(cls.id, "epsilon", "sensitive")
        epsilon = settings.read_epsilon()
        sensitive = settings.read_sensitive()
        with within(settings.path):
            return cls(epsilon, settings.domain.size, sensitive)

    @cached_property
    def threshold(self) -> int:
        """Probability of a position with sign +1, in units of 2^-64, rounded toward 1/2.

        The plain report has probability `2 threshold - 2^64`, so that the channel stays tight.
        """
        return sign_threshold(budget(self.epsilon))

    @cached_property
    def thresholds(self) -> GroupThresholds:
        kinds = (SignDesign(len(self.sensitive)), GroupDesign(1))
        positions, plain = (KindThresholds(kinds[i], WORD, (WORD, 0)[i]) for i in range(2))
        kind_of = (np.arange(self.groups.count) > 0).astype(np.int64)
        every = (positions, plain)[: len(self.kinds)]
        return GroupThresholds(every, kind_of, 2 * self.threshold - WORD)

    @cached_property
    def policy(self) -> HighLowPolicy:
        return HighLowPolicy(self.epsilon, self.values, self.sensitive)

    @property
    def positions(self) -> int:
        """Number S of Hadamard positions."""
        return sign_order(len(self.sensitive))

    def parameters(self) -> Mapping[str, Json]:
        return {"threshold": hex(self.threshold), **sensitive_parameters(self.policy)}

    def tables(self) -> Mapping[str, Json]:
        numbers: list[Json] = [*sorted(self.sensitive)]
        return {"sensitive": numbers}

    @property
    def is_high_low(self) -> bool:
        return True

    def chain(self, epsilon: object) -> tuple[Self, GroupChain]:
        permanent = replace(self, epsilon=read_larger(epsilon, self.epsilon))
        return permanent, GroupChain(self, permanent.thresholds)

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        Takes two words for each value: n that decide the sign, or whether the report is plain; then
        n for the positions. Since S is a power of two, masking a word draws uniformly.
        """
        decisions = entropy.words(len(values))
        rows = self._row[values]
        hidden = rows > 0
        limits = np.array([2 * self.threshold - WORD, self.threshold], dtype=np.uint64)
        chosen = decisions < limits[hidden.astype(np.int64)]
        drawn = entropy.words(len(values)).view(np.int64) & np.int64(self.positions - 1)
        return np.where(chosen & ~hidden, self._plain[values], move_to_sign(rows, drawn, chosen))

    @cached_property
    def _row(self) -> NDArray[np.int64]:
        """The row of signs of each sensitive value, 0 for all others."""
        return np.where(self.groups.of_value == 0, self.groups.position + 1, 0)

    @cached_property
    def _plain(self) -> NDArray[np.int64]:
        """The report of each value's group that is sent as it is."""
        return self.layout.starts[self.groups.of_value]
