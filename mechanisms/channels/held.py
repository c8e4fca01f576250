"""What reports lose together that follow from one permanent draw: exactly (docs/theory.md, 11).

A device draws a report `z ~ Q1[x]` once and keeps it. Where it sends z again and again, all of them
lose what one loses. Where each report is z with probability `keep`, else uniform over the reports
of its block, each alone follows a channel with a smaller budget, and m of them lose more than one
and less than z itself.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

_TOLD_BITS: Final = 256
MOST_COUNTED: Final = 64
"""Reports of one draw: of more it is taken that they tell z, which is an upper bound."""


@dataclass(frozen=True)
class Blend:
    """The reports of one block: `order` of them, of which `inside` support each of its values.

    z is a certain one that supports the value with probability `likely`, another with `unlikely`,
    and each report is z with probability `keep`, else one of all.
    """

    order: int
    inside: int
    likely: Fraction
    unlikely: Fraction
    keep: Fraction

    @classmethod
    def between(
        cls, order: int, inside: int, *, permanent: tuple[Fraction, Fraction], once: Fraction
    ) -> Self:
        """Return the chain whose single reports are likely with probability `once` each.

        `permanent` are the two probabilities of z. The mean of all reports is the same for both, so
        the unlikely ones follow.

        Raises:
            ValueError: where z tells no more than a report would.
        """
        uniform = Fraction(1, order)
        if permanent[0] <= once or once <= uniform:
            raise ValueError("expected a permanent draw that tells more than one report")
        return cls(order, inside, *permanent, keep=(once - uniform) / (permanent[0] - uniform))

    def ratio(self, reports: int) -> Fraction:
        """Return the largest ratio of two values of the block at any m >= 1 reports.

        With `g[y] = r^(times y was sent)`, `r = 1 + order keep/(1 - keep)`, the reports have the
        probability `a sum_{y supports x} g[y] + b sum_{others} g[y]` up to a constant, a and b the
        likely and unlikely one. The ratio of two values grows in g where y supports the first
        alone, falls in all others, and g is convex: it is largest where all m reports are one such
        y, every other g being 1. Where that g is 2^256 times the order it is taken that they tell
        z: numbers of subsets have thousands of digits.
        """
        growth = 1 + self.order * self.keep / (1 - self.keep)
        bits = growth.numerator.bit_length() - growth.denominator.bit_length() - 1
        if reports > MOST_COUNTED or bits * reports > self.order.bit_length() + _TOLD_BITS:
            return self.likely / self.unlikely
        grown = growth**reports
        others = self.unlikely * (self.order - 1 + grown)
        more = self.likely - self.unlikely
        return (others + more * (self.inside - 1 + grown)) / (others + more * self.inside)


def epochs_touched(windows: int, epoch: int) -> int:
    """Return how many epochs of this many windows any `windows` >= 1 in a row touch at most.

    >>> [epochs_touched(windows, 24) for windows in (1, 2, 25, 26, 365)]
    [1, 2, 2, 3, 17]
    """
    return 1 + -(-(windows - 1) // epoch)


def split_windows(windows: int, epoch: int, first: int) -> dict[int, int]:
    """Return how many epochs have how many of the windows, `first` of them in the first epoch."""
    parts: dict[int, int] = {}
    whole, rest = divmod(windows - first, epoch)
    for part, times in ((first, 1), (epoch, whole), (rest, min(rest, 1))):
        if times:
            parts[part] = parts.get(part, 0) + times
    return parts
