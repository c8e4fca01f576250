"""The probabilities of reports of groups, rounded toward privacy, and how they are drawn.

A report comes from the *own* group with probability tau; it is then one that supports the value
with probability sigma, else one that does not, uniformly. Otherwise it is from a *blanket* that
does not depend on the value: of group g with probability `pi_g`, uniformly. A report of group g has
the probability `B = (1 - tau) pi/K` for values of other groups, `M = B + tau (1 - sigma)/(K - D)`
for values of g that it does not support, and `L = B + tau sigma/D` for those that it does. Since
`B <= M <= L`, a value loses at most `L/M` inside its group and `L/B` outside. Unrounded,
`L : M : B` is `e^outside : e^(outside - inside) : 1`. Without a budget outside, B is 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Floats, Indices, Integers
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, Words
from ldpstream.mechanisms.families.groups.designs import GroupDesign, GroupKind


@dataclass(frozen=True)
class KindThresholds:
    """The realised probabilities of a kind of groups, in units of 2^-64.

    `supporting` is sigma, `blanket` is `pi_g` of each of its groups, but for what is left of
    2^64: that belongs to the first of the groups with the largest.
    """

    design: GroupDesign
    supporting: int
    blanket: int


@dataclass(frozen=True, eq=False)
class GroupThresholds:
    """The thresholds of all groups: `kind_of`, int64 `(groups,)`, is the kind of each.

    `own` is tau in units of 2^-64: 2^64 if there is no blanket.
    """

    kinds: tuple[KindThresholds, ...]
    kind_of: Indices
    own: int

    @classmethod
    def of(
        cls, kinds: Sequence[GroupKind], designs: Sequence[GroupDesign], kind_of: Indices
    ) -> "GroupThresholds":
        """Return the largest tau for these designs whose ratios keep the budgets."""
        supports = [
            kind.support(design.support[0]) for kind, design in zip(kinds, designs, strict=True)
        ]
        total = sum(
            (kind.groups * weight for kind, (_, weight) in zip(kinds, supports, strict=True)),
            Fraction(0),
        )
        realised = tuple(
            KindThresholds(
                design,
                min(WORD, int(WORD * supporting)),
                max(1, int(WORD * weight / total)) if weight else 0,
            )
            for design, (supporting, weight) in zip(designs, supports, strict=True)
        )
        return cls(realised, kind_of, WORD).with_largest_own(kinds)

    def stronger(self, kinds: Sequence[GroupKind]) -> "GroupThresholds":
        """Return those of a permanent draw: other budgets, the designs and the blanket of these."""
        realised = tuple(
            replace(
                one,
                supporting=max(one.supporting, int(WORD * kind.support(one.design.support[0])[0])),
            )
            for one, kind in zip(self.kinds, kinds, strict=True)
        )
        return GroupThresholds(realised, self.kind_of, WORD).with_largest_own(kinds)

    def with_largest_own(self, kinds: Sequence[GroupKind]) -> "GroupThresholds":
        """Return the same with the largest tau that keeps the budgets."""
        finite = [i for i, kind in enumerate(kinds) if kind.outside is not None]
        if not finite or not any(kind.blanket for kind in self.kinds):
            return self
        odds = [self._largest_odds(i, kinds[i]) for i in finite]
        own = min(int(WORD * min(odds) / (1 + min(odds))), WORD - 1)
        return replace(self, own=own)

    @cached_property
    def _first(self) -> tuple[int, int]:
        """The first group with the largest `pi_g`, and what is added to it: all but the others'."""
        each = [thresholds.blanket for thresholds in self.kinds]
        largest = [kind for kind, share in enumerate(each) if share == max(each)]
        groups = np.bincount(self.kind_of, minlength=len(each)).tolist()
        remainder = WORD - sum(share * count for share, count in zip(each, groups, strict=True))
        return int(np.argmax(np.isin(self.kind_of, largest))), remainder

    def blankets(self, kind: int) -> set[Fraction]:
        """Return the different `pi_g` of a kind of groups: at most two."""
        first, remainder = self._first
        blanket, groups = self.kinds[kind].blanket, int((self.kind_of == kind).sum())
        if not blanket or self.kind_of[first] != kind:
            return {Fraction(blanket, WORD)}
        largest = Fraction(blanket + remainder, WORD)
        return {largest} if groups == 1 else {Fraction(blanket, WORD), largest}

    def levels(self, kind: int, blanket: Fraction) -> tuple[Fraction, Fraction, Fraction]:
        """Return L, M and B of the groups of a kind with this `pi_g`, in units of 1/K."""
        tau, (most, least) = Fraction(self.own, WORD), self._conditional(kind)
        hidden = (1 - tau) * blanket
        return hidden + tau * most, hidden + tau * least, hidden

    def _conditional(self, kind: int) -> tuple[Fraction, Fraction]:
        """Return `K sigma/D` and `K (1 - sigma)/(K - D)` of a kind."""
        thresholds = self.kinds[kind]
        share, supporting = thresholds.design.support[0], Fraction(thresholds.supporting, WORD)
        rest = (1 - supporting) / (1 - share) if share < 1 else Fraction(0)
        return supporting / share, rest

    def _largest_odds(self, kind: int, budgets: GroupKind) -> Fraction:
        """Return the largest `tau/(1 - tau)` that keeps the budgets of a kind of groups."""
        inside, outside = budgets.factors
        assert outside is not None
        blanket, (most, least) = min(self.blankets(kind)), self._conditional(kind)
        odds = (outside - 1) * blanket / most
        excess = most - inside * least
        if excess > 0 and budgets.size > 1:
            odds = min(odds, (inside - 1) * blanket / excess)
        return odds

    def ratios(self, kind: int) -> tuple[Fraction, Fraction | None]:
        """Return the largest ratios inside a kind of groups and towards others; None: infinite."""
        likely, lost, hidden = self.levels(kind, min(self.blankets(kind)))
        inside = likely / lost if self.kinds[kind].design.size > 1 else Fraction(1)
        return inside, likely / hidden if hidden else None

    @property
    def tau(self) -> float:
        """The probability of an own report."""
        return self.own / WORD

    @cached_property
    def shares(self) -> Floats:
        """`pi_g` of each group, float64 `(groups,)`."""
        shares: Floats = np.array([kind.blanket / WORD for kind in self.kinds])[self.kind_of]
        if self.own < WORD:
            first, remainder = self._first
            shares[first] = (self.kinds[self.kind_of[first]].blanket + remainder) / WORD
        return shares

    def blanket_shares(self) -> dict[int, Fraction]:
        """Return `pi_g` of each group that has one, exactly."""
        if self.own == WORD:
            return {}
        shares = {g: Fraction(self.kinds[self.kind_of[g]].blanket, WORD) for g in self._hidden}
        first, remainder = self._first
        shares[first] += Fraction(remainder, WORD)
        return shares

    @cached_property
    def _hidden(self) -> list[int]:
        """The groups of the blanket."""
        hidden = np.array([kind.blanket > 0 for kind in self.kinds])
        return np.flatnonzero(hidden[self.kind_of]).tolist()

    @cached_property
    def _ends(self) -> Words:
        """The sums of `pi_g` up to each of these groups but the last, in units of 2^-64."""
        ends = accumulate(int(share * WORD) for share in self.blanket_shares().values())
        return np.array([*ends][:-1], dtype=np.uint64)

    def draw(self, entropy: Entropy, groups: Indices) -> "DrawnGroups":
        """Draw the groups that reports for values of these `groups` come from.

        n words decide which reports are own ones. If several groups are in the blanket, a word each
        decides on the groups of all others. If a report of its own need not support its value,
        n words more decide that.
        """
        n = groups.size
        is_own = np.ones(n, dtype=np.bool_)
        source = groups.copy()
        if self.own < WORD:
            is_own = entropy.words(n) < np.uint64(self.own)
            source[~is_own] = self.draw_blanket(entropy, int(n - is_own.sum()))
        supports = np.ones(n, dtype=np.bool_)
        if any(thresholds.supporting < WORD for thresholds in self.kinds):
            limits = np.array(
                [min(thresholds.supporting, WORD - 1) for thresholds in self.kinds], np.uint64
            )
            sure = np.array([thresholds.supporting == WORD for thresholds in self.kinds])
            kind = self.kind_of[groups]
            supports = (entropy.words(n) < limits[kind]) | sure[kind]
        return DrawnGroups(source, is_own, supports)

    def draw_blanket(self, entropy: Entropy, n: int) -> Integers:
        """Return n groups of the blanket; takes a word each if it has several."""
        if len(self._hidden) == 1:
            return np.full(n, self._hidden[0])
        place = np.searchsorted(self._ends, entropy.words(n), side="right")
        return np.array(self._hidden)[place]


@dataclass(frozen=True)
class DrawnGroups:
    """The group that each report is from; whether it is an own one, and one that supports."""

    source: Indices
    own: Bools
    supports: Bools
