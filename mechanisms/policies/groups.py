"""Budgets of groups of values: one between the values of a group, one towards all others."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Indices
from ldpstream.mechanisms.base.canonical import Json, json_number
from ldpstream.mechanisms.base.checks import is_whole, read_epsilon
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.budgets import BlockBudget
from ldpstream.mechanisms.policies.policy import BlockPolicy, HighLowPolicy, Policy


@dataclass(frozen=True)
class GroupBudget:
    """The budgets of `groups` consecutive groups; infinite ones are no budgets.

    Raises:
        SpecError: if `inside` is not above 0, or `outside` is less.
    """

    inside: float
    outside: float
    groups: int = 1

    def __post_init__(self) -> None:
        if math.isfinite(self.inside):
            read_epsilon(self.inside, "epsilon")
        if not self.outside >= self.inside:
            raise SpecError(
                "epsilon_outside", f"at least epsilon = {self.inside:g}, got {self.outside:g}"
            )


def _runs(budgets: Sequence[GroupBudget]) -> tuple[GroupBudget, ...]:
    """Return budgets with equal neighbours joined."""
    runs = groupby(budgets, key=lambda budget: (budget.inside, budget.outside))
    return tuple(GroupBudget(*pair, sum(budget.groups for budget in run)) for pair, run in runs)


@dataclass(frozen=True)
class GroupPolicy(Policy):
    """`E[x, x'] = inside` in the group of x, else `outside`, by the budgets of the group of x.

    Blocks with a budget each are groups with infinite budgets outside. Sensitive values are a group
    with equal budgets, beside groups of one value without any ([CA] Definition 3).

    Raises:
        SpecError: if there are more or fewer budgets than groups, or a group of several values has
            none inside.
    """

    groups: Blocks
    budgets: tuple[GroupBudget, ...]

    def __post_init__(self) -> None:
        if sum(budget.groups for budget in self.budgets) != self.groups.count:
            raise SpecError("epsilon", f"a budget for each of {self.groups.count} groups")
        # Inside groups of one value there is nothing to protect.
        each = zip(self.budgets, self._several, strict=True)
        budgets = [
            budget if some else replace(budget, inside=budget.outside) for budget, some in each
        ]
        object.__setattr__(self, "budgets", _runs(budgets))
        for name in ("place", "_several"):
            del self.__dict__[name]
        if any(self._several & ~np.isfinite([budget.inside for budget in self.budgets])):
            raise SpecError("epsilon", "a finite budget inside groups of several values")
        if not self._finite:
            raise SpecError("domain.blocks", "a block of two or more values: none is protected now")

    @cached_property
    def _several(self) -> Bools:
        """Whether some group of each run has several values, bool `(budgets,)`."""
        several: Bools = np.bincount(self.place, self.groups.sizes > 1) > 0
        return several

    @cached_property
    def _finite(self) -> list[float]:
        """The finite budgets of pairs."""
        inside = [
            budget.inside for budget, some in zip(self.budgets, self._several, strict=True) if some
        ]
        outside = [budget.outside for budget in self.budgets] if self.groups.count > 1 else []
        return [budget for budget in (*inside, *outside) if math.isfinite(budget)]

    @classmethod
    def of_sensitive(
        cls, values: int, groups: Sequence[frozenset[int]], budgets: Sequence[GroupBudget]
    ) -> "GroupPolicy":
        """Return the policy of groups of sensitive values, each with a budget.

        One more budget is that of all other values together; else these have none.
        """
        number = np.full(values, -1, dtype=np.int64)
        for place, members in enumerate(groups):
            number[list(members)] = place
        unlisted = np.flatnonzero(number < 0)
        together = len(budgets) > len(groups)
        number[unlisted] = len(groups) + (0 if together else np.arange(unlisted.size))
        plain = (
            []
            if together or not unlisted.size
            else [GroupBudget(math.inf, math.inf, unlisted.size)]
        )
        return cls(Blocks(number), (*budgets, *plain))

    @cached_property
    def place(self) -> Indices:
        """The place in `budgets` of each group, int64 `(groups,)`."""
        return np.repeat(np.arange(len(self.budgets)), [budget.groups for budget in self.budgets])

    def _budget(self, value: int) -> GroupBudget:
        return self.budgets[int(self.place[self.groups.of_value[value]])]

    @property
    def size(self) -> int:
        return self.groups.size

    def entry(self, value: int, other: int) -> Fraction | None:
        if value == other:
            return Fraction(0)
        budgets, of = self._budget(value), self.groups.of_value
        epsilon = budgets.inside if of[value] == of[other] else budgets.outside
        return budget(epsilon) if math.isfinite(epsilon) else None

    @cached_property
    def _bare(self) -> Bools:
        """Which groups have no budget towards other groups."""
        bare = np.isinf([budget.outside for budget in self.budgets])[self.place]
        return bare & (self.groups.count > 1)

    @property
    def unprotected_pairs(self) -> int:
        sizes = self.groups.sizes[self._bare]
        return int((sizes * (self.size - sizes)).sum())

    @property
    def unprotected(self) -> str | None:
        if not self._bare.any():
            return None
        if self._bare.all():
            return "values in different blocks: a report reveals the block"
        if not (self.groups.sizes[self._bare] > 1).any():
            return f"{self._bare.sum():,} values against any other: a report may reveal them"
        return (
            f"values of {self._bare.sum()} of {self.groups.count} groups against those of other "
            "groups: a report may reveal the group"
        )

    @property
    def disclosed_blocks(self) -> Blocks | None:
        return self.groups if self._bare.all() else None

    @property
    def simplest(self) -> Policy:
        """The same policy as one of blocks or of sensitive values, if it has that form."""
        if len(set(self._finite)) > 1:
            return self
        epsilon = self._finite[0]
        outside = {budget.outside for budget in self.budgets}
        if self._bare.all() or (self.groups.count == 1 and outside != {epsilon}):
            return BlockPolicy(epsilon, self.groups)
        if (self.groups.sizes[self._bare] > 1).any():
            return self
        sensitive = np.flatnonzero(~self._bare[self.groups.of_value]).tolist()
        return HighLowPolicy(epsilon, self.size, frozenset(sensitive))

    def least_budgets(self) -> Iterator[Fraction]:
        yield budget(min(self._finite))

    def largest_loss(self) -> Fraction:
        return budget(max(self._finite))

    def block_budget(self) -> BlockBudget:
        disclosed = self.disclosed_blocks
        bare = self._bare & (self.groups.sizes == 1)
        protected = np.flatnonzero(~bare[self.groups.of_value])
        least = budget(min(self._finite))
        return BlockBudget(least, disclosed or Blocks.one(self.size), protected)

    def _times(self, factor: float | Fraction) -> Policy:
        scale = float(factor)
        scaled = tuple(
            replace(budget, inside=budget.inside * scale, outside=budget.outside * scale)
            for budget in self.budgets
        )
        return replace(self, budgets=scaled)

    def listed_budgets(self) -> list[Json]:
        """Return `[inside, outside, groups]` of each run of groups with the same budgets."""
        return [
            [json_number(budget.inside), json_number(budget.outside), budget.groups]
            for budget in self.budgets
        ]

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "groups",
            "size": self.size,
            "budgets": self.listed_budgets(),
            "sha256": self.groups.digest,
        }


def sensitive_policy(epsilon: float, values: int, sensitive: frozenset[int]) -> GroupPolicy:
    """Return the policy of one group of sensitive values.

    Raises:
        SpecError: if epsilon is not a finite number above 0, no value is sensitive, or one is not
            in `0..values-1`.
    """
    read_epsilon(epsilon, "epsilon")
    if not sensitive:
        raise SpecError("sensitive", "at least one value to protect, got none")
    if not all(is_whole(value) and 0 <= value < values for value in sensitive):
        raise SpecError("sensitive", f"values in 0..{values - 1}")
    if values < 2:
        raise SpecError("domain", f"at least 2 values, got {values}")
    return GroupPolicy.of_sensitive(values, [sensitive], [GroupBudget(epsilon, epsilon)])
