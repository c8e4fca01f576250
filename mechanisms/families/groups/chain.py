"""Reports of groups that follow from a permanent draw (docs/theory.md, section 11).

The permanent draw has the designs and the blanket of a report, and more often its own group, tau',
and supporting reports, sigma'. A report leaves the group of the permanent one for the blanket with
probability `1 - lambda`, `lambda = tau/tau'`. In its group it stays with probability
`s = (sigma - D/K)/(sigma' - D/K)`, and is otherwise a uniform one of that group: the blanket is
uniform in each group, too, so that either step leaves it as it is. If all sigma are 1, a report
stays, or is from the blanket.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.permanent_draw import MOST_COUNTED, shared_part
from ldpstream.mechanisms.exact.entropy import (
    WORD,
    Entropy,
    bernoulli_rational,
    bernoulli_rationals,
)
from ldpstream.mechanisms.families.groups.channel import GroupThresholds
from ldpstream.mechanisms.interface.chain import Chain, too_near
from ldpstream.mechanisms.interface.mechanism import Reports

if TYPE_CHECKING:
    from ldpstream.mechanisms.families.groups.base import GroupMechanism

_REVEALED_BITS = 256


@dataclass(frozen=True, eq=False)
class GroupChain(Chain):
    """The chain to the reports of a mechanism from a draw with the thresholds `permanent`.

    Raises:
        SpecError: if both draw alike.
    """

    mechanism: "GroupMechanism"
    permanent: GroupThresholds

    def __post_init__(self) -> None:
        if self.remain > 1 or (self.remain == 1 and not self._moves):
            raise too_near()

    @property
    def remain(self) -> Fraction:
        """The probability lambda that a report is of the group of the permanent one."""
        return Fraction(self.mechanism.thresholds.own, self.permanent.own)

    @cached_property
    def stay(self) -> Sequence[Fraction]:
        """The probability s, of each kind of groups, to stay in its group what it is."""
        each = zip(self.mechanism.thresholds.kinds, self.permanent.kinds, strict=True)
        return [
            Fraction(1)
            if single.supporting == permanent.supporting
            else (Fraction(single.supporting, WORD) - single.design.support[0])
            / (Fraction(permanent.supporting, WORD) - single.design.support[0])
            for single, permanent in each
        ]

    @property
    def _moves(self) -> bool:
        """Whether reports of some kind of groups are replaced in their group."""
        return any(stay < 1 for stay in self.stay)

    def again(self, reports: Reports, entropy: Entropy) -> Reports:
        """Return the reports that are sent for permanent ones, one a row.

        A word each decides whether the group remains; then, if the blanket has several groups, on
        one of it; then, if some kind has an s below 1, whether the report stays. In the end a
        uniform report is drawn for each, also for those that stay.
        """
        own, single = self.mechanism.group_of(reports), self.mechanism.thresholds
        remains = bernoulli_rational(entropy, self.remain, len(reports))
        group, stays = own, remains
        if single.own < WORD:
            group = np.where(remains, own, single.draw_blanket(entropy, len(reports)))
        if self._moves:
            stays = remains & bernoulli_rationals(entropy, self.stay, single.kind_of[own])
        drawn = self.mechanism.draw_uniform(entropy, group)
        return np.where(stays if drawn.ndim == 1 else stays[:, None], reports, drawn)

    def canonical(self) -> Sequence[Json]:
        """Return lambda and the s of each kind; of one list `[reports, lambda]` alone."""
        design = self.mechanism.thresholds.kinds[0].design
        if self.mechanism.is_high_low:
            return [[design.size if design.is_subset else design.reports, str(self.remain)]]
        return [str(self.remain), *map(str, self.stay)]

    def ratio(self, reports: int) -> Fraction:
        """Return the exact largest ratio of two values over all outcomes of m >= 1 reports.

        Up to a constant the reports have the probability `sum_z Q'[x, z] g[z]`: each that is of the
        group of z multiplies g[z] by u, that is z by v >= u, and any other by 1 (`_growth`). Let r
        be the largest ratio, of x and x' at some outcome: `sum_z (Q'[x, z] - r Q'[x', z]) g[z]` is
        0. Terms are above 0 only in the group of x, for z that support x (or, if x' is in
        another group, for others): no report of another group makes it larger. By convexity of g
        it is largest, for as many reports of the group, if all are one z that supports x but not
        x'; and since what g multiplies there is then above 0, if all reports are of the group.
        """
        return max(
            ratio
            for kind in range(len(self.stay))
            for blanket in self.permanent.blankets(kind)
            for ratio in self._ratios(kind, blanket, reports)
        )

    def _growth(self, kind: int, blanket: Fraction) -> tuple[Fraction, Fraction | None]:
        """Return u, and `v/u`: None if a report that is not z does not occur with z."""
        left, stay = (1 - self.remain) * blanket, self.stay[kind]
        inside = left + self.remain * (1 - stay)
        more = self.remain * stay * self.permanent.kinds[kind].design.reports
        return inside / left if left else Fraction(1), 1 + more / inside if inside else None

    def _ratios(self, kind: int, blanket: Fraction, reports: int) -> Iterator[Fraction]:
        """Yield the largest ratios inside a group and towards others, if any, of m reports."""
        design, budgets = self.permanent.kinds[kind].design, self.mechanism.kinds[kind]
        share, order = design.support[0], design.reports
        likely, lost, hidden = self.permanent.levels(kind, blanket)
        alike, alone = self._growth(kind, blanket)
        if alone is not None:
            bits = alone.numerator.bit_length() - alone.denominator.bit_length() - 1
            if reports > MOST_COUNTED or bits * reports > order.bit_length() + _REVEALED_BITS:
                # The permanent report is taken to be known: exact numbers have too many digits.
                alone = None
        if alone is not None:
            # In units of u^m/K, which a z of another group has in place of 1.
            outside = order / alike**reports if blanket and self.remain < 1 else 0
            grown, mass = alone**reports - 1, share * likely + (1 - share) * lost
            every = outside * (1 - mass) + order * mass
            unlike = outside * (1 - hidden) + order * hidden
            likely, lost = every + grown * likely, every + grown * lost
            hidden = unlike + grown * hidden
        if budgets.size > 1 and budgets.inside is not None:
            yield likely / lost
        if budgets.outside is not None and self.mechanism.groups.count > 1:
            yield likely / hidden

    @property
    def shared_noise(self) -> float:
        return max(
            part
            for kind in range(len(self.stay))
            for blanket in self.permanent.blankets(kind)
            for part in self._shared(kind, blanket)
        )

    def _shared(self, kind: int, blanket: Fraction) -> Iterator[float]:
        """Yield bounds for the values of one kind of groups (`shared_part`).

        Reports of a group without a budget outside are of this group, which is then alone, or of
        the blanket; in the group they share what a disclosed one does. In the blanket, where some
        are replaced in their group, values are taken to share what they would share after that.
        """
        of_draw, single = self.permanent.kinds[kind], self.mechanism.thresholds.kinds[kind]
        tau, stay = Fraction(self.permanent.own, WORD), self.stay[kind]
        inside = of_draw.design.support[0] * of_draw.design.reports
        uniform = Fraction(1, of_draw.design.reports)
        if blanket:
            likely = (1 - tau) * blanket * uniform + tau * Fraction(
                single.supporting, WORD
            ) / inside
            alone = inside == 1 and stay == 1
            yield shared_part(self.remain, likely, blanket * uniform, alone=alone)
            return
        yield shared_part(self.remain, tau, Fraction(0), alone=True)
        if of_draw.design.size > 1:
            likely = Fraction(of_draw.supporting, WORD) / inside
            yield float(self.remain) * shared_part(stay, likely, uniform, alone=inside == 1)
