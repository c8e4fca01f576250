"""Base classes of mechanisms whose reports are of groups, each with the thresholds of its kind."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import isfinite

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices, Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.channels.blanket import (
    MOST_BLANKETS,
    Blanket,
    any_channel,
    of_supports,
)
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_enumeration,
    certify_by_structure,
)
from ldpstream.mechanisms.channels.channel import MOST_WORK, Channel, refuse_large
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, uniform_below
from ldpstream.mechanisms.families.design.centred import CentredDecoder
from ldpstream.mechanisms.families.design.decoder import DesignDecoder
from ldpstream.mechanisms.families.design.design import DesignLayout
from ldpstream.mechanisms.families.groups.channel import GroupThresholds
from ldpstream.mechanisms.families.groups.decoder import SymbolBlanket
from ldpstream.mechanisms.families.groups.designs import (
    GroupDesign,
    GroupKind,
)
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports
from ldpstream.mechanisms.interface.symbols import SymbolMechanism
from ldpstream.mechanisms.policies.groups import GroupPolicy
from ldpstream.mechanisms.policies.policy import HighLowPolicy, Policy


class GroupMechanism(Mechanism):
    """Values in groups, each with the thresholds of its kind.

    A kind are the groups of one size among neighbours with the same budgets. Kinds are numbered by
    their budgets and then by size.
    """

    grouped: GroupPolicy
    """The budgets of groups."""

    @property
    @abstractmethod
    def thresholds(self) -> GroupThresholds:
        """The realised probabilities."""

    @property
    @abstractmethod
    def is_high_low(self) -> bool:
        """Whether one list of sensitive values with one budget is all that is protected."""

    @abstractmethod
    def group_of(self, reports: Reports) -> Indices:
        """Return the group of each report, int64 `(n,)`."""

    @abstractmethod
    def draw_uniform(self, entropy: Entropy, groups: Indices) -> Reports:
        """Return a uniform report of each of these groups.

        Where groups are hidden, one of every kind of groups is drawn for each.
        """

    @property
    def groups(self) -> Blocks:
        """The values of each group."""
        return self.grouped.groups

    @cached_property
    def kinds(self) -> tuple[GroupKind, ...]:
        """The sizes and budgets of all kinds; groups are as likely as they are large."""
        return tuple(kind for kind, _ in kinds_of(self.grouped, 1.0))

    @property
    def size(self) -> int:
        return self.grouped.size

    @cached_property
    def policy(self) -> Policy:
        """The policy in its simplest form: sensitive values, blocks, or groups."""
        return self.grouped.simplest

    @property
    def listable(self) -> bool:
        """Whether certificates enumerate the channel."""
        return self.size <= ENUMERATION_LIMIT and self.entries <= MOST_WORK

    @property
    def entries(self) -> int:
        """Number of probabilities of the channel, which may exceed the range of floats."""
        return self.size * sum(self._reports)

    @cached_property
    def _reports(self) -> list[int]:
        """The number of reports of each group."""
        each = [thresholds.design.reports for thresholds in self.thresholds.kinds]
        return [each[kind] for kind in self.thresholds.kind_of.tolist()]

    def channel(self) -> Channel:
        """Return the realised channel in exact rationals; outputs as in `possible_reports`.

        Raises:
            ValueError: if it holds more than 2^20 probabilities.
        """
        refuse_large(self.size, self.entries)
        thresholds, orders = self.thresholds, self._reports
        starts = np.cumsum([0, *orders]).tolist()
        tau = Fraction(thresholds.own, WORD)
        blanket = {
            starts[group] + report: (1 - tau) * share / orders[group]
            for group, share in thresholds.blanket_shares().items()
            for report in range(orders[group])
        }
        rows = []
        for group, place in zip(
            self.groups.of_value.tolist(), self.groups.position.tolist(), strict=True
        ):
            own_kind, row = thresholds.kinds[thresholds.kind_of[group]], dict(blanket)
            supporting, sigma = (
                _supporting(own_kind.design, place),
                Fraction(own_kind.supporting, WORD),
            )
            for report in range(orders[group]):
                if report in supporting:
                    probability = sigma / len(supporting)
                else:
                    probability = (1 - sigma) / (orders[group] - len(supporting))
                if probability:
                    here = starts[group] + report
                    row[here] = row.get(here, Fraction(0)) + tau * probability
            rows.append(row)
        return Channel(tuple(rows), starts[-1])

    @cached_property
    def ratios(self) -> Mapping[Fraction, Fraction]:
        """The largest ratio of two values that the construction produces, by budget."""
        ratios: dict[Fraction, Fraction] = defaultdict(Fraction)
        for number, kind in enumerate(self.kinds):
            inside, outside = self.thresholds.ratios(number)
            if kind.inside is not None and kind.size > 1:
                ratios[kind.inside] = max(ratios[kind.inside], inside)
            if kind.outside is not None and self.groups.count > 1:
                assert outside is not None
                ratios[kind.outside] = max(ratios[kind.outside], outside)
        return dict(ratios)

    def certify(self) -> Certificate:
        """Prove the realised loss: by enumeration if the channel is small, else by structure.

        By structure: some report attains the ratio of each kind of groups (`channel`).
        """
        if self.listable:
            return certify_by_enumeration(self.id, self.policy, self.channel(), self.disclosed())
        self.check_tables()
        return certify_by_structure(self.id, self.policy, self.ratios, self.disclosed())

    def check_tables(self) -> None:
        """Check what the proof by structure assumes of the tables.

        Raises:
            ValueError: if a group has the thresholds of another kind, two of its values share a
                place, or plain reports are in the blanket.
        """
        groups, thresholds = self.groups, self.thresholds
        place = groups.of_value * groups.size + groups.position
        sizes = np.array([kind.size for kind in self.kinds])
        bare = np.array([kind.outside is None for kind in self.kinds])
        blanket = np.array([kind_thresholds.blanket > 0 for kind_thresholds in thresholds.kinds])
        sound = (
            np.unique(place).size == groups.size
            and bool((groups.position < groups.sizes[groups.of_value]).all())
            and np.array_equal(sizes[thresholds.kind_of], groups.sizes)
            and np.array_equal(bare, ~blanket)
            and all(
                kind_thresholds.design.size == size
                for kind_thresholds, size in zip(thresholds.kinds, sizes.tolist(), strict=True)
            )
        )
        if not sound:
            raise ValueError(f"the tables of {self.id} are not what its proof assumes")

    def blankets(self) -> Mapping[Fraction, Collection[Blanket]]:
        """Return the blankets of pairs with budgets in both directions.

        If all groups are disclosed, those of their designs. Else only groups of the blanket have
        some: of a single one, in which no report is rarer than outside, that of its design.
        """
        kinds, thresholds = self.kinds, self.thresholds
        ratios = [thresholds.ratios(number) for number in range(len(kinds))]
        every = zip(kinds, thresholds.kinds, ratios, strict=True)
        found: dict[Fraction, set[Blanket]] = defaultdict(set)
        if thresholds.own == WORD:
            for kind, one, (inside, _) in every:
                if kind.size > 1 and kind.inside is not None:
                    found[kind.inside].add(of_supports(inside, *one.design.support))
        else:
            hidden = [(k, one, outside) for k, one, (_, outside) in every if outside is not None]
            (kind, one, ratio), rest = hidden[0], hidden[1:]
            if not rest and kind.groups == 1 and one.supporting == WORD:
                if kind.size > 1 and kind.inside is not None:
                    found[kind.inside] = {of_supports(ratio, *one.design.support)}
                return found
            largest = max(ratio for *_, ratio in hidden)
            for kind, *_ in hidden:
                for epsilon in (kind.inside, kind.outside):
                    if epsilon is not None:
                        found[epsilon] = {any_channel(largest)}
        return {
            epsilon: some if len(some) <= MOST_BLANKETS else [any_channel(self.ratios[epsilon])]
            for epsilon, some in found.items()
        }

    def disclosed(self) -> list[str]:
        if self.groups.count == 1:
            return []
        bare = [kind for kind in self.kinds if kind.outside is None]
        if not bare:
            return []
        plain = sum(kind.groups for kind in bare if kind.size == 1)
        blocks = sum(kind.groups for kind in bare) - plain
        if self.thresholds.own == WORD:
            whose = "alone in its block" if plain == 1 else "alone in their blocks"
            alone = [f"the value itself, for {count(plain, 'value')} {whose}"] if plain else []
            return [f"the value's block, one of {self.groups.count}", *alone]
        often = f"with probability {self.thresholds.tau:.4g}"
        phrases = []
        if plain:
            values = count(plain, "value")
            phrases.append(f"the value itself, {often}, for {values} not sensitive")
        if blocks:
            phrases.append(f"the value's group, {often}, for {count(blocks, 'group')}")
        return phrases


def kinds_of(grouped: GroupPolicy, share: float) -> Iterator[tuple[GroupKind, Integers]]:
    """Yield the kinds of groups with a design, in order, with the numbers of their groups.

    Groups with a budget have the `share` of users, each in proportion to its size.
    """
    sizes = grouped.groups.sizes
    protected = np.array([isfinite(budgets.inside) for budgets in grouped.budgets])[grouped.place]
    values = int(sizes[protected].sum())
    for place, budgets in enumerate(grouped.budgets):
        here = np.flatnonzero(grouped.place == place)
        inside, outside = (
            budget(epsilon) if isfinite(epsilon) else None
            for epsilon in (budgets.inside, budgets.outside)
        )
        for size in np.unique(sizes[here]).tolist():
            numbers = here[sizes[here] == size]
            mass = share * size / values
            yield GroupKind(size, inside, outside, numbers.size, mass), numbers


def _supporting(design: GroupDesign, place: int) -> set[int]:
    """Return the reports of a group that support the value at a place."""
    if not design.is_subset:
        return set(map(int, design.incidence.supporting(place)))
    subsets = combinations(range(design.size), design.chosen)
    return {report for report, members in enumerate(subsets) if place in members}


class SymbolGroupMechanism(GroupMechanism, SymbolMechanism):
    """Groups whose reports are numbers."""

    @property
    def outputs(self) -> int:
        return self.layout.outputs

    @cached_property
    def layout(self) -> DesignLayout:
        """The numbering of the reports of groups."""
        thresholds = self.thresholds
        designs = [kind.design.symmetric(kind.supporting) for kind in thresholds.kinds]
        return DesignLayout(self.groups, designs, thresholds.kind_of)

    def group_of(self, reports: Reports) -> Indices:
        return np.searchsorted(self.layout.starts, reports, side="right") - 1

    def draw_uniform(self, entropy: Entropy, groups: Indices) -> Reports:
        kinds = self.thresholds.kind_of[groups]
        reports = self.layout.starts[groups]
        for number, kind in enumerate(self.thresholds.kinds):
            mine = kinds == number
            rows = np.flatnonzero(mine | (self.thresholds.own < WORD))
            if kind.design.reports > 1:
                drawn = uniform_below(entropy, kind.design.reports, rows.size)
                reports[rows] += np.where(mine[rows], drawn, 0)
        return reports

    @locked_cached_property
    def decoder(self) -> SymbolBlanket | DesignDecoder:
        thresholds, layout = self.thresholds, self.layout
        incidences = [kind.design.incidence for kind in thresholds.kinds]
        moved = any(kind.design.reports != kind.design.size for kind in thresholds.kinds)
        inner = (CentredDecoder if moved else DesignDecoder)(layout, incidences)
        if thresholds.own == WORD:
            return inner
        blanket = thresholds.shares
        return SymbolBlanket(inner, self.groups, tau=thresholds.tau, blanket=blanket)


def sensitive_parameters(policy: HighLowPolicy) -> dict[str, Json]:
    """Return what the parameters say of a policy of sensitive values."""
    return {
        "epsilon": float(policy.epsilon),
        "sensitive": {"count": len(policy.sensitive), "sha256": policy.digest},
    }
