"""Sensitive values hidden in a blanket of their group's reports (docs/theory.md section 2).

A value's own report is uniform over the reports of the sensitive group that support it. With
probability `tau = rho (e^eps - 1)/(rho (e^eps - 1) + 1)`, rho being the fraction that do, a user
sends an own report; otherwise one that is uniform over all of the group's, which any value may
send. A value that is not sensitive has its plain report for an own one. `high-low` is this with
Hadamard positions, of which half support a value; here the design is chosen (`choose_design`), and
tau is larger for the same epsilon where more reports support a value.

Reports are numbers (`SymbolGroups`): the group's points or values, then the plain ones. Or they
hold subsets (`SubsetGroups`): the number of the group and a mask, as with `subset-selection`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.certificate import ENUMERATION_LIMIT
from ldpstream.mechanisms.channels.channel import MOST_WORK, Channel, refuse_large
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, uniform_below
from ldpstream.mechanisms.families.groups.decoder import (
    SubsetBlanket,
    SymbolBlanket,
)
from ldpstream.mechanisms.families.groups.designs import DEFAULT_SHARE, GroupDesign, choose_design
from ldpstream.mechanisms.families.groups.sensitive import SensitiveMechanism
from ldpstream.mechanisms.families.subset.selection import SubsetReports
from ldpstream.mechanisms.families.subset.subsets import SubsetLayout, Subsets, draw_subsets
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import SymbolMechanism


@dataclass(frozen=True)
class SensitiveGroups(SensitiveMechanism):
    """Protects the values in `sensitive` by the reports of a design.

    Raises:
        SpecError: as for every `SensitiveMechanism`, and if the design has another size.
    """

    id: ClassVar[str] = "groups"
    design: GroupDesign

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.design.size != len(self.sensitive):
            raise SpecError("design", f"a design of {len(self.sensitive)} values")

    @classmethod
    def configure(cls, settings: Settings) -> "SensitiveGroups":
        settings.only(cls.id, "epsilon", "sensitive", "share")
        epsilon = settings.read_epsilon()
        sensitive = settings.read_sensitive()
        share = _read_share(settings.keys.get("share", DEFAULT_SHARE), f"{settings.path}.share")
        with within(settings.path):
            return best_groups(epsilon, settings.domain.size, sensitive, share=share)

    @cached_property
    def own_threshold(self) -> int:
        return self.design.threshold(budget(self.epsilon))

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        return self.design.support

    @property
    def listable(self) -> bool:
        return self.size <= ENUMERATION_LIMIT and self.entries <= MOST_WORK

    @property
    def entries(self) -> int:
        """Number of probabilities of the channel, which may exceed the range of floats."""
        return self.size * self.reports

    @property
    def reports(self) -> int:
        """Number K of reports of the sensitive group."""
        design = self.design
        return comb(design.size, design.chosen) if design.is_subset else design.symmetric.order

    def parameters(self) -> Mapping[str, Json]:
        space = self.design.geometry
        kind: dict[str, Json] = (
            {"chosen": self.design.chosen}
            if space is None
            else {"q": space.q, "dimension": space.dimension}
        )
        return {"threshold": hex(self.own_threshold), **kind, **self.sensitive_parameters()}

    def channel(self) -> Channel:
        """Return the realised channel in exact rationals; outputs as in `possible_reports`.

        Raises:
            ValueError: if it holds more than 2^20 probabilities.
        """
        refuse_large(self.size, self.entries)
        order, tau = self.reports, Fraction(self.own_threshold, WORD)
        rows = []
        for group, place in zip(
            self.groups.of_value.tolist(), self.groups.position.tolist(), strict=True
        ):
            row = dict.fromkeys(range(order), (1 - tau) / order)
            own = [order + group - 1] if group else self.supporting(place)
            for report in own:
                row[report] = row.get(report, Fraction(0)) + tau / len(own)
            rows.append(row)
        return Channel(tuple(rows), order + self.groups.count - 1)

    def supporting(self, place: int) -> list[int]:
        """Return the reports of the group that support the sensitive value at a place."""
        if not self.design.is_subset:
            return [*map(int, self.design.incidence.supporting(place))]
        subsets = combinations(range(self.design.size), self.design.chosen)
        return [report for report, members in enumerate(subsets) if place in members]


@dataclass(frozen=True)
class SymbolGroups(SensitiveGroups, SymbolMechanism):
    """Sensitive values that report values or points, whose reports are numbers."""

    @property
    def outputs(self) -> int:
        return self.reports + self.groups.count - 1

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        n words decide which reports are own ones. For all of these, also plain ones, the number
        among the reports that support a value is drawn; then for all others any report of the
        group. So the value does not change how many words are taken.
        """
        own = entropy.words(len(values)) < np.uint64(self.own_threshold)
        group, place = self.groups.of_value[values], self.groups.position[values]
        reports = np.where(group > 0, self.reports + group - 1, place)
        space = self.design.geometry
        if space is not None:
            lower = uniform_below(entropy, space.inside, int(own.sum()))
            hidden = group[own] == 0
            here = np.flatnonzero(own)[hidden]
            reports[here] = space.complete(place[here], lower[hidden])
        others = np.flatnonzero(~own)
        reports[others] = uniform_below(entropy, self.reports, others.size)
        return reports

    @locked_cached_property
    def decoder(self) -> SymbolBlanket:
        design = self.design
        threshold = self.own_threshold
        return SymbolBlanket(self.groups, design.symmetric, design.incidence, threshold=threshold)


@dataclass(frozen=True)
class SubsetGroups(SensitiveGroups, SubsetReports):
    """Sensitive values that report subsets of the sensitive values."""

    @cached_property
    def subsets(self) -> tuple[Subsets, ...]:
        own = Subsets(self.design.size, self.design.chosen, WORD)
        return (own,) if self.groups.count == 1 else (Subsets(1, 1, WORD), own)

    @cached_property
    def layout(self) -> SubsetLayout:
        return SubsetLayout(self.groups, self.subsets)

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 `(n,)` in `0..k-1`, into reports, uint8 `(n, report_bytes)`.

        n words decide which reports are own ones. Then a subset is drawn for every value, which
        plain reports do not use: one that holds the value, or any one.
        """
        own = entropy.words(len(values)) < np.uint64(self.own_threshold)
        place = np.where(own, self.groups.position[values], -1)
        masks = self.layout.pack(draw_subsets(entropy, self.subsets[-1], place, own))
        group = np.where(own, self.groups.of_value[values], 0)
        plain = np.flatnonzero(group)
        masks[plain] = 0
        masks[plain, 0] = 1
        return self.layout.write(group, masks)

    @locked_cached_property
    def decoder(self) -> SubsetBlanket:
        return SubsetBlanket(self.groups, self.subsets[-1], threshold=self.own_threshold)


def best_groups(
    epsilon: float, values: int, sensitive: frozenset[int], *, share: float = DEFAULT_SHARE
) -> SensitiveGroups:
    """Return the mechanism with the design of least variance, `share` of users being sensitive.

    Raises:
        SpecError: as for `SensitiveGroups`.
    """
    size = len(sensitive)
    everyone = 1.0 if size == values else share
    design = choose_design(budget(epsilon), size, everyone)
    kind = SubsetGroups if design.is_subset else SymbolGroups
    return kind(epsilon, values, sensitive, design)


def _read_share(given: object, path: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise SpecError(
            path, f"the share of users with a sensitive value, 0 to 1, got {describe(given)}"
        )
    return float(given)
