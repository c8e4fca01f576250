"""Groups of values that are hidden in a blanket of reports (docs/theory.md section 2).

A value of a group sends a report of its group that mostly supports it, or one of a *blanket* that
any value may send (`channel`). Values without any budget have one plain report each, for an own
one; they are not in the blanket. Which reports a group has, its design, is chosen for the budgets
(`choose_designs`).

Reports are numbers (`SymbolGroups`): the points or values of one group after the other. Or they
hold subsets (`SubsetGroups`): the number of the group and a mask, as with `subset-selection`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Indices, Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, uniform_below
from ldpstream.mechanisms.families.design.projective_geometry import draw_points
from ldpstream.mechanisms.families.groups.base import (
    GroupMechanism,
    SymbolGroupMechanism,
    kinds_of,
    sensitive_parameters,
)
from ldpstream.mechanisms.families.groups.chain import GroupChain
from ldpstream.mechanisms.families.groups.channel import GroupThresholds, KindThresholds
from ldpstream.mechanisms.families.groups.decoder import SubsetBlanket
from ldpstream.mechanisms.families.groups.designs import (
    DEFAULT_SHARE,
    GroupDesign,
    choose_designs,
)
from ldpstream.mechanisms.families.groups.settings import read_groups
from ldpstream.mechanisms.families.subset.selection import SubsetReports
from ldpstream.mechanisms.families.subset.subsets import (
    SubsetDecoder,
    SubsetLayout,
    Subsets,
    draw_subsets,
)
from ldpstream.mechanisms.interface.chain import read_larger, too_near
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.groups import GroupPolicy, sensitive_policy
from ldpstream.mechanisms.policies.policy import HighLowPolicy


@dataclass(frozen=True)
class Groups(GroupMechanism):
    """Groups with a design for each kind of them, in their order.

    Raises:
        SpecError: if the designs have other sizes, or epsilon is so small that reports carry no
            information.
    """

    id: ClassVar[str] = "groups"
    grouped: GroupPolicy
    designs: tuple[GroupDesign, ...]
    reports: "Groups | None" = None
    """Of a permanent draw: the mechanism of the reports that follow from it."""

    def __post_init__(self) -> None:
        sizes = [kind.size for kind in self.kinds]
        if [design.size for design in self.designs] != sizes:
            raise SpecError("design", f"designs of {', '.join(map(str, sizes))} values")
        masks = any(design.is_subset for design in self.designs)
        if masks and any(design.geometry is not None for design in self.designs):
            raise SpecError("design", "subsets or points, not both")
        weak = any(
            kind.size > 1 and self.thresholds.ratios(number)[0] <= 1
            for number, kind in enumerate(self.kinds)
        )
        if weak or self.thresholds.own <= 0:
            raise SpecError("epsilon", f"a number of at least {SMALLEST_EPSILON}")

    @classmethod
    def configure(cls, settings: Settings) -> "Groups":
        grouped, share = read_groups(settings, cls.id)
        return best_groups(grouped, share=share)

    @cached_property
    def thresholds(self) -> GroupThresholds:
        if self.reports is not None:
            return self.reports.thresholds.stronger(self.kinds)
        kind_of = np.empty(self.groups.count, dtype=np.int64)
        for number, (_, groups) in enumerate(kinds_of(self.grouped, 1.0)):
            kind_of[groups] = number
        return GroupThresholds.of(self.kinds, self.designs, kind_of)

    @cached_property
    def _listed(self) -> list[list[int]]:
        """The values of each group with a budget, if all others are single values without."""
        *budgets, last = self.grouped.budgets
        of_value, count = self.groups.of_value, self.groups.count
        listed = count if isfinite(last.inside) else count - last.groups
        plain = of_value[of_value >= listed]
        if not all(isfinite(budget.inside) for budget in budgets) or (np.diff(plain) < 0).any():
            return []
        if listed == count > 1:
            return []
        return [np.flatnonzero(of_value == group).tolist() for group in range(listed)]

    @property
    def is_high_low(self) -> bool:
        return isinstance(self.policy, HighLowPolicy) and len(self._listed) == 1

    def chain(self, epsilon: object) -> tuple[Self, GroupChain]:
        """Return the mechanism of a permanent draw, and the chain from it to reports.

        `epsilon` is the largest of its budgets, which are those of reports times one factor.
        """
        largest = max(
            one
            for budget in self.grouped.budgets
            for one in (budget.inside, budget.outside)
            if isfinite(one)
        )
        larger = read_larger(epsilon, largest)

        def stronger(one: float) -> float:
            return one if one > largest else min(larger, one * (larger / largest))

        budgets = [
            replace(one, inside=stronger(one.inside), outside=stronger(one.outside))
            for one in self.grouped.budgets
        ]
        grouped = replace(self.grouped, budgets=tuple(budgets))
        if len(grouped.budgets) < len(budgets):
            raise too_near()
        permanent = replace(self, grouped=grouped, reports=self)
        return permanent, GroupChain(self, permanent.thresholds)

    def parameters(self) -> Mapping[str, Json]:
        tau, policy = self.thresholds.own, self.policy
        if isinstance(policy, HighLowPolicy) and self.is_high_low:
            return {
                "threshold": hex(tau),
                **self.designs[0].parameters(),
                **sensitive_parameters(policy),
            }
        kinds: list[Json] = [
            {
                "size": kind.design.size,
                **kind.design.parameters(),
                "supporting": hex(kind.supporting),
                "blanket": hex(kind.blanket),
            }
            for kind in self.thresholds.kinds
        ]
        return {
            "threshold": hex(tau),
            "budgets": self.grouped.listed_budgets(),
            "kinds": kinds,
            **self._digest(),
        }

    def _digest(self) -> dict[str, Json]:
        """Return what identifies the tables: all lists, or the group of each value."""
        if not self._listed:
            return {"blocks": {"count": self.groups.count, "sha256": self.groups.digest}}
        counts: list[Json] = [len(values) for values in self._listed]
        numbers = np.array([value for values in self._listed for value in values], dtype="<i4")
        digest = hashlib.sha256(numbers.tobytes()).hexdigest()
        return {"sensitive": {"count": counts, "sha256": digest}}

    def tables(self) -> Mapping[str, Json]:
        """Return the values of groups of sensitive values, or the group of every value."""
        if not self._listed:
            return self.groups.tables()
        listed: list[Json] = [[*values] for values in self._listed]
        return {"sensitive": listed[0] if self.is_high_low else listed}


@dataclass(frozen=True)
class SymbolGroups(Groups, SymbolGroupMechanism):
    """Groups that report values or points."""

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        First the groups are drawn (`GroupThresholds.draw`). Then, kind by kind, an own report of it
        is drawn for all own ones, and one of its blanket for all others, whatever the value is, so
        that it does not change how many words are taken. Disclosed groups draw their own alone.
        """
        thresholds, layout = self.thresholds, self.layout
        group, place = self.groups.of_value[values], self.groups.position[values]
        drawn = thresholds.draw(entropy, group)
        kind, source = thresholds.kind_of[group], thresholds.kind_of[drawn.source]
        reports = np.zeros(len(values), dtype=np.int64)
        blanket = np.flatnonzero(~drawn.own)
        for number, thresholds_of_kind in enumerate(thresholds.kinds):
            if thresholds_of_kind.design.size > 1:
                every = thresholds.own < WORD
                at = np.flatnonzero(drawn.own & (every | (kind == number)))
                places = np.where(kind[at] == number, place[at], 0)
                sent = _draw_own(thresholds_of_kind, entropy, places, drawn.supports[at])
                here = kind[at] == number
                reports[at[here]] = sent[here]
            if thresholds_of_kind.blanket:
                sent = uniform_below(entropy, thresholds_of_kind.design.reports, blanket.size)
                here = source[blanket] == number
                reports[blanket[here]] = sent[here]
        return layout.starts[drawn.source] + reports


def _draw_own(
    kind: KindThresholds, entropy: Entropy, places: Integers, supporting: Bools
) -> Integers:
    """Return a report that supports each value, where `supporting`, or else one that does not."""
    if kind.design.geometry is not None:
        return draw_points(kind.design.geometry, entropy, places, supporting)
    if kind.supporting == WORD:
        return places
    other = uniform_below(entropy, kind.design.size - 1, places.size)
    return np.where(supporting, places, other + (other >= places))


@dataclass(frozen=True)
class SubsetGroups(Groups, SubsetReports):
    """Groups that report subsets of their values."""

    @cached_property
    def subsets(self) -> tuple[Subsets, ...]:
        """The subsets of each kind of groups."""
        return tuple(kind.design.subsets(kind.supporting) for kind in self.thresholds.kinds)

    @cached_property
    def layout(self) -> SubsetLayout:
        return SubsetLayout(self.groups, self.subsets, self.thresholds.kind_of)

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 `(n,)` in `0..k-1`, into reports, uint8 `(n, report_bytes)`.

        First the groups are drawn (`GroupThresholds.draw`), then, kind by kind, a subset of it for
        every value, of disclosed groups for their own ones alone.
        """
        group, place = self.groups.of_value[values], self.groups.position[values]
        drawn = self.thresholds.draw(entropy, group)
        places = np.where(drawn.own, place, -1)
        return self._draw(entropy, drawn.source, places, drawn.supports)

    def _draw(self, entropy: Entropy, groups: Indices, places: Indices, supports: Bools) -> Reports:
        """Return reports of groups, which support the values at places, if not -1, or do not."""
        layout, hidden = self.layout, self.thresholds.own < WORD
        kinds = self.thresholds.kind_of[groups]
        masks = np.zeros((groups.size, layout.mask_bytes), dtype=np.uint8)
        masks[self.groups.sizes[groups] == 1, 0] = 1
        for number, subsets in enumerate(self.subsets):
            if subsets.size == 1:
                continue
            mine = kinds == number
            rows = np.flatnonzero(mine | hidden)
            at = np.where(mine[rows], places[rows], np.minimum(places[rows], 0))
            members = draw_subsets(entropy, subsets, at, supports[rows])
            masks[rows[mine[rows]]] = layout.pack(members[mine[rows]])
        return layout.write(groups, masks)

    def group_of(self, reports: Reports) -> Indices:
        return self.layout.block_of(reports)

    def draw_uniform(self, entropy: Entropy, groups: Indices) -> Reports:
        return self._draw(entropy, groups, np.full_like(groups, -1), groups < 0)

    @locked_cached_property
    def decoder(self) -> SubsetBlanket | SubsetDecoder:
        thresholds = self.thresholds
        inner = SubsetDecoder(self.layout, self.subsets)
        if thresholds.own == WORD:
            return inner
        blanket = thresholds.shares
        return SubsetBlanket(inner, self.groups, tau=thresholds.tau, blanket=blanket)


def of_designs(grouped: GroupPolicy, *designs: GroupDesign) -> Groups:
    """Return the mechanism with these designs, and with plain reports for values without budgets.

    Raises:
        SpecError: as for `Groups`.
    """
    chosen, every = iter(designs), kinds_of(grouped, 1.0)
    listed = [GroupDesign(1) if kind.inside is None else next(chosen) for kind, _ in every]
    kind = SubsetGroups if any(design.is_subset for design in designs) else SymbolGroups
    return kind(grouped, tuple(listed))


def best_groups(grouped: GroupPolicy, *, share: float | None = None) -> Groups:
    """Return the mechanism with the designs of least variance.

    `share` of the users have a value with a budget, by default as many as of the values.

    Raises:
        SpecError: as for `Groups`.
    """
    if share is None:
        protected = np.isfinite([budget.inside for budget in grouped.budgets])[grouped.place]
        share = float(protected[grouped.groups.of_value].mean())
    kinds = tuple(kind for kind, _ in kinds_of(grouped, share) if kind.inside is not None)
    return of_designs(grouped, *choose_designs(kinds, 1.0 - share))


def sensitive_groups(
    epsilon: float, values: int, sensitive: frozenset[int], design: GroupDesign | None = None
) -> Groups:
    """Return the mechanism that protects the values in `sensitive`, out of `values` in all.

    Raises:
        SpecError: as for `Groups`, and if no value is sensitive or one is not in `0..values-1`.
    """
    grouped = sensitive_policy(epsilon, values, sensitive)
    return (
        best_groups(grouped, share=DEFAULT_SHARE) if design is None else of_designs(grouped, design)
    )
