"""Which reports a group of values has, and which of them support a value.

All supports are alike: D of the K reports support each value, I any two values. Reports are the
values themselves (K = s, D = 1), points of a projective space, or subsets of `chosen` values, which
support the values that they hold. Which is best depends on how many users have a sensitive value:
variances are compared for a given share of them (`choose_design`).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.exact.dyadic import exp_floor
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.incidence import OWN, Incidence, hyperplanes
from ldpstream.mechanisms.families.subset.selection import MAX_BLOCK
from ldpstream.mechanisms.families.tree.hierarchy import small_spaces

DEFAULT_SHARE: Final = 0.3
"""The share of users with a sensitive value for which designs are compared by default."""
_TOLERANCE: Final = 1.03
"""Reports that are numbers are used if no subsets are better by more than this factor."""
_LARGEST_BUDGET: Final = 64


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
    def support(self) -> tuple[Fraction, Fraction]:
        """The fraction of the reports that support a value, and any two values."""
        if self.geometry is not None:
            points = self.geometry.points
            return Fraction(self.geometry.inside, points), Fraction(self.geometry.overlap, points)
        held = Fraction(self.chosen, self.size)
        return held, held * Fraction(self.chosen - 1, max(1, self.size - 1))

    @property
    def symmetric(self) -> SymmetricDesign:
        """The design of reports that are numbers, all of which support their user's value."""
        if self.geometry is None:
            return SymmetricDesign(self.size, 1, 0, WORD)
        inside, overlap = self.geometry.inside, self.geometry.overlap
        return SymmetricDesign(self.geometry.points, inside, overlap, WORD)

    @cached_property
    def incidence(self) -> Incidence:
        """Which numbers support which values."""
        return OWN if self.geometry is None else hyperplanes(self.geometry, self.size)

    def threshold(self, epsilon: Fraction) -> int:
        """Return the largest probability tau of an own report, in units of 2^-64.

        `L/B = 1 + tau/(rho (1 - tau)) <= e^epsilon`, and tau is below 1.
        """
        odds = self.support[0] * (exp_floor(min(epsilon, Fraction(_LARGEST_BUDGET))) - 1)
        return min(int(WORD * odds / (1 + odds)), WORD - 1)


@lru_cache(maxsize=1024)
def choose_design(epsilon: Fraction, size: int, share: float) -> GroupDesign:
    """Return the design of least variance for a group of `size` values, the same on all machines.

    The variance is summed over all single values; `share` of the users have one of the group, each
    equally often. Only sums, products and quotients of doubles are compared, which every machine
    rounds alike.
    """
    numbers = [GroupDesign(size), *(GroupDesign(size, 1, space) for space in small_spaces(size))]
    supports = np.array([[float(part) for part in one.support] for one in numbers])
    noise = _total_noise(epsilon, size, share, supports[:, 0], supports[:, 1])
    best = int(np.argmin(noise))
    if 2 < size <= MAX_BLOCK:
        chosen = np.arange(2.0, size)
        held = chosen / size
        of_subsets = _total_noise(epsilon, size, share, held, held * (chosen - 1) / (size - 1))
        subset = int(np.argmin(of_subsets))
        if of_subsets[subset] * _TOLERANCE < noise[best]:
            return GroupDesign(size, int(chosen[subset]))
    return numbers[best]


def _total_noise(
    epsilon: Fraction, size: int, share: float, support: Floats, both: Floats
) -> Floats:
    """Return the sum of the variances of all single values, by support of a value and of any two.

    A report of load l adds `size c^2 + l (size - l) b^2 / size` over the values of the group, b
    being `1/(tau (1 - I/D))` and c the mean of their decoders there. The mean of `l (size - l)`
    follows from the supports, exactly for uniform reports. For the reports that support a value it
    is exact if all loads are equal, and else assumes that loads vary there as elsewhere.
    """
    gain = float(exp_floor(min(epsilon, Fraction(_LARGEST_BUDGET))) - 1)
    if gain == 0.0:
        return np.zeros_like(support)  # the caller refuses such an epsilon
    odds = support * gain
    blanket = 1.0 / (1.0 + odds)
    own = odds * blanket
    step = support / (support - both) / own
    uniform = size * (size - 1) * (support - both)
    spread = size * size * support * (1.0 - support) - uniform
    load = 1.0 + (size - 1) * both / support
    supporting = load * (size - load) - spread
    scale = step * step / size
    elsewhere = blanket * (1.0 / size + scale * uniform)
    shift = blanket / own / size
    sensitive = own * (1.0 / size + scale * supporting) + elsewhere - 1.0
    plain = own * size * shift * shift + elsewhere + 1.0 / own - 1.0
    total: Floats = share * sensitive + (1.0 - share) * plain
    return total
