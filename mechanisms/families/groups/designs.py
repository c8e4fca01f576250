"""Which reports a group of values has, and which of them support a value.

All supports are alike: D of the K reports support each value, I any two values. Reports are the
values themselves (K = s, D = 1), points of a projective space, or subsets of `chosen` values, which
support the values that they hold. Points that are not orthogonal to a value would be a design too,
but nowhere have less variance. Which are best depends on the budgets, and on how many users have a
value of the group: variances are compared for given shares of them (`choose_designs`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import comb
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.exact.dyadic import exp_floor
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.incidence import OWN, Incidence, hyperplanes
from ldpstream.mechanisms.families.subset.selection import MAX_BLOCK
from ldpstream.mechanisms.families.subset.subsets import Subsets
from ldpstream.mechanisms.families.tree.hierarchy import small_spaces

DEFAULT_SHARE: Final = 0.3
"""The share of users with a sensitive value for which designs are compared by default."""
_TOLERANCE: Final = 1.03
"""Reports that are numbers are used if no subsets are better by more than this factor."""
_LARGEST_BUDGET: Final = Fraction(64)
_MOST_JOINT: Final = 64
"""The designs of so many kinds of groups are chosen together, those of more one by one."""
_PASSES: Final = 4


@dataclass(frozen=True)
class GroupDesign:
    """The reports of a group of `size` values: subsets of `chosen`, or points of `geometry`.

    A subset of one value is a number, like a point.
    """

    size: int
    chosen: int = 1
    geometry: Geometry | None = None

    @property
    def is_subset(self) -> bool:
        """Whether reports hold masks instead of numbers."""
        return self.chosen > 1

    @property
    def reports(self) -> int:
        """Number K of reports."""
        return self.geometry.points if self.geometry else comb(self.size, self.chosen)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The fraction of the reports that support a value, and any two values."""
        if self.geometry is not None:
            points = self.geometry.points
            return Fraction(self.geometry.inside, points), Fraction(self.geometry.overlap, points)
        share = Fraction(self.chosen, self.size)
        return share, share * Fraction(self.chosen - 1, max(1, self.size - 1))

    def symmetric(self, threshold: int = WORD) -> SymmetricDesign:
        """Return the design of reports that are numbers, which support their value that often."""
        if self.geometry is None:
            return SymmetricDesign(self.size, 1, 0, threshold)
        inside, overlap = self.geometry.inside, self.geometry.overlap
        return SymmetricDesign(self.geometry.points, inside, overlap, threshold)

    def subsets(self, threshold: int) -> Subsets:
        """Return the subsets of reports that hold masks."""
        return Subsets(self.size, self.chosen, threshold)

    @cached_property
    def incidence(self) -> Incidence:
        """Which numbers support which values."""
        return OWN if self.geometry is None else hyperplanes(self.geometry, self.size)

    def parameters(self) -> Mapping[str, Json]:
        """Return what devices need to know of it."""
        if self.geometry is None:
            return {"chosen": self.chosen}
        return {"q": self.geometry.q, "dimension": self.geometry.dimension}


@dataclass(frozen=True)
class GroupKind:
    """Groups of `size` values with the same budgets; None is infinite.

    There are `groups` of them, and `mass` is the share of users with a value of any one of them.
    """

    size: int
    inside: Fraction | None
    outside: Fraction | None
    groups: int = 1
    mass: float = 1.0

    @property
    def factors(self) -> tuple[Fraction, Fraction | None]:
        """`e^inside` and `e^outside`, rounded down; a group of one value has any inside."""
        inside, outside = (
            None if budget is None else exp_floor(min(budget, _LARGEST_BUDGET))
            for budget in (self.inside, self.outside)
        )
        if inside is None or self.size == 1:
            inside = outside or Fraction(1)
        return inside, outside

    def support(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """Return how often own reports support their value, `sigma`, and the weight r of a group.

        `share` is that of the reports that support a value. `r/(sum of r)` is the probability of
        the group in the blanket.
        """
        inside, outside = self.factors
        if outside is None:
            return share * inside / (share * inside + 1 - share), Fraction(0)
        supporting = share * (outside - 1)
        every = supporting + (1 - share) * (outside / inside - 1)
        return (supporting / every, 1 / every) if every else (Fraction(1), Fraction(0))


@lru_cache(maxsize=1024)
def choose_designs(kinds: Sequence[GroupKind], exposed: float = 0.0) -> Sequence[GroupDesign]:
    """Return designs with the least sum of variances of all single values, the same everywhere.

    The share `exposed` of users have a value without any budget. In a group all values are equally
    frequent. Only sums, products and quotients of doubles are compared, in a fixed order, which
    every machine rounds alike.
    """
    if len(kinds) > _MOST_JOINT:
        single = [choose_designs((kind,)) for kind in kinds]
        masks = any(design.is_subset for (design,) in single)
        listed = [_subsets(kind.size) if masks else _numbers(kind.size) for kind in kinds]
        return [_descend([kind], [of], 0.0)[1][0] for kind, of in zip(kinds, listed, strict=True)]
    noise, numbers = _descend(kinds, [_numbers(kind.size) for kind in kinds], exposed)
    if max(kind.size for kind in kinds) > MAX_BLOCK:
        return numbers
    of_subsets, subsets = _descend(kinds, [_subsets(kind.size) for kind in kinds], exposed)
    return subsets if of_subsets * _TOLERANCE < noise else numbers


@lru_cache(maxsize=1024)
def _numbers(size: int) -> Sequence[GroupDesign]:
    spaces = small_spaces(size) if size > 1 else ()
    return [GroupDesign(size), *(GroupDesign(size, 1, space) for space in spaces)]


@lru_cache(maxsize=1024)
def _subsets(size: int) -> Sequence[GroupDesign]:
    return [GroupDesign(size, chosen) for chosen in range(1, max(2, size))]


def _descend(
    kinds: Sequence[GroupKind], designs: Sequence[Sequence[GroupDesign]], exposed: float
) -> tuple[float, Sequence[GroupDesign]]:
    """Return the least noise that is found by changing the design of one kind at a time."""
    tables = [_Table.of(kind, of) for kind, of in zip(kinds, designs, strict=True)]
    chosen, noise = [0] * len(kinds), float("inf")
    for _ in range(_PASSES if len(kinds) > 1 else 1):
        before = noise
        for place, table in enumerate(tables):
            fixed = [other.at(i) for other, i in zip(tables, chosen, strict=True)]
            fixed[place] = table
            totals = _total_noise(fixed, exposed)
            chosen[place] = int(np.argmin(totals))
            noise = float(totals[chosen[place]])
        if noise == before:
            break
    return noise, [of[i] for of, i in zip(designs, chosen, strict=True)]


@dataclass(frozen=True)
class _Table:
    """Properties of the designs that a kind of groups may have, float64 `(designs,)`.

    `weight` is r of `GroupKind.support`, `step` is 1 over the difference that a user of the value
    makes to how often own reports support it. A report of load l has `l (size - l)` pairs of values
    of which it supports one; `supporting` and `uniform` are its means for own reports and over all.
    """

    kind: GroupKind
    weight: Floats
    step: Floats
    supporting: Floats
    uniform: Floats

    @classmethod
    def of(cls, kind: GroupKind, designs: Iterable[GroupDesign]) -> "_Table":
        inside, outside = kind.factors
        gain = float(inside - 1)
        share, both = np.array(
            [[float(number) for number in design.support] for design in designs]
        ).T
        rest, size = 1.0 - share, float(kind.size)
        if outside is None:
            every = 1.0 + share * gain
            support, weight, gap = share * float(inside) / every, 0.0 * share, share * gain / every
        else:
            beyond = float(outside / inside - 1)
            every = share * float(outside - 1) + rest * beyond
            weight = 1.0 / every if every.all() else np.full_like(share, 1e150)
            support = share * float(outside - 1) * weight
            gap = share * float(outside) * gain / float(inside) * weight
        uniform = size * (size - 1.0) * (share - both)
        spread = size * size * share * rest - uniform
        load = 1.0 + (size - 1.0) * both / share
        supporting_noise = load * (size - load) - spread
        if kind.size == 1 or gain == 0.0:
            # A group of one value has no deviations; the caller refuses budgets near 0.
            step, other_noise = 0.0 * share, 0.0 * share
        else:
            step = share / (share - both) / gap
            other_noise = (uniform - share * supporting_noise) / rest
        noise = support * supporting_noise + (1.0 - support) * other_noise
        return cls(kind, weight, step, noise, uniform)

    def at(self, place: int) -> "_Table":
        """Return the table of one design."""
        columns = (self.weight, self.step, self.supporting, self.uniform)
        return _Table(self.kind, *(column[place : place + 1] for column in columns))


def _total_noise(tables: Sequence[_Table], exposed: float) -> Floats:
    """Return the sum of the variances of all single values.

    A report of load l adds `size c^2 + l (size - l) b^2 / size` over the values of its group, b
    being `step/tau` and c the mean of their decoders there, and `size shift^2` over another's. The
    means of `l (size - l)` follow from the supports, exactly for uniform reports. For the reports
    that support a value they are exact if all loads are equal, and else assume that loads vary
    there as elsewhere.
    """
    weights: Floats = np.zeros(1)
    for table in tables:
        weights = weights + table.kind.groups * table.weight
    odds = 1.0 + weights
    total: Floats = exposed * weights
    for table in tables:
        size, mass = float(table.kind.size), table.kind.mass
        mean = (odds - table.weight) / size
        shift = table.weight / size
        scale = table.step * table.step * odds * odds / size
        base = size * mean * mean
        hidden = table.weight * (base + scale * table.uniform)
        hidden = hidden + (odds - 1.0 - table.weight) * size * shift * shift
        at_value = (base + scale * table.supporting + hidden) / odds - 1.0
        elsewhere = (size * shift * shift + hidden) / odds
        total = total + table.kind.groups * (mass * at_value + (1.0 - mass) * elsewhere)
    return total
