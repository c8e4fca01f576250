"""The exact joint loss of reports that follow from one permanent draw (docs/theory.md, section 11).

A device draws a report `z ~ Q1[x]` once and keeps it. If it sends z again and again, all these
reports lose what one loses. If each report is z with probability `keep` and otherwise uniform over
the reports of its block, a single one follows a channel with a smaller budget, and m of them lose
more than one of them but less than z itself.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

_TOLD_BITS: Final = 256
MOST_COUNTED: Final = 64
"""More reports of one draw than this are taken to reveal z, which is an upper bound."""


@dataclass(frozen=True)
class Blend:
    """How reports of one block follow from a permanent draw z.

    The block has `order` reports, of which `inside` support each of its values. z is any given
    report that supports the value with probability `likely`, and any other with `unlikely`. A
    report is z with probability `keep`, otherwise uniform over the whole block.
    """

    order: int
    inside: int
    likely: Fraction
    unlikely: Fraction
    keep: Fraction

    @classmethod
    def between(
        cls, reports: int, inside: int, *, permanent: tuple[Fraction, Fraction], single: Fraction
    ) -> Self:
        """Return the blend in which one report is a given likely one with probability `single`.

        `permanent` are the two probabilities of z, likely and unlikely. The mean over the block is
        `1 / reports` for z and for a report, so that the unlikely probability of a report follows.

        Raises:
            ValueError: if z reveals no more than a report does.
        """
        uniform = Fraction(1, reports)
        if permanent[0] <= single or single <= uniform:
            raise ValueError("expected a permanent draw that tells more than one report")
        return cls(reports, inside, *permanent, keep=(single - uniform) / (permanent[0] - uniform))

    @property
    def shared_noise(self) -> float:
        """The part of a report's noise that it shares with others of its draw (`shared_part`)."""
        uniform = Fraction(1, self.order)
        return shared_part(self.keep, self.likely, uniform, alone=self.inside == 1)

    @property
    def shared_moment(self) -> float:
        """The same part of the second moment about the mean over the whole block.

        If the block itself is drawn and kept, as the level of a tree is, and all blocks have one
        mean, it bounds the part of the noise: what is known of the value is in both.
        """
        return shared_part(self.keep, self.likely, Fraction(1, self.order))

    def ratio(self, reports: int) -> Fraction:
        """Return the largest ratio of two values of the block over all outcomes of m >= 1 reports.

        Let `g[y] = r^(times y was sent)` with `r = 1 + order keep/(1 - keep)`. Up to a constant the
        reports have the probability `a sum_{y supports x} g[y] + b sum_{others} g[y]`, where a is
        `likely` and b is `unlikely`. The ratio of two values grows with g[y] where y supports only
        the first and falls with every other g[y], and g is convex. So it is largest if all m
        reports are one such y, which leaves every other g at 1. Once that g exceeds 2^256 times the
        order, the reports are taken to reveal z: exact numbers of subsets have thousands of digits.
        """
        growth = 1 + self.order * self.keep / (1 - self.keep)
        bits = growth.numerator.bit_length() - growth.denominator.bit_length() - 1
        if reports > MOST_COUNTED or bits * reports > self.order.bit_length() + _TOLD_BITS:
            return self.likely / self.unlikely
        grown = growth**reports
        rest = self.unlikely * (self.order - 1 + grown)
        more = self.likely - self.unlikely
        return (rest + more * (self.inside - 1 + grown)) / (rest + more * self.inside)


def shared_part(
    keep: Fraction, permanent: Fraction, other: Fraction, *, alone: bool = False
) -> float:
    """Return a bound, for any query, on the part of its noise that reports of one draw z share.

    With `Q = lambda Q1 + (1 - lambda) beta`, beta without regard to the value, two reports have the
    covariance `Var(E[h | z]) = lambda^2 Var(h)` under Q1, for every decoder h. The variance of one
    is that under Q, at least `min Q/Q1` times the one under Q1. So the part is at most `lambda^2`
    times the largest Q1/Q, which some report attains: it has the probability `permanent` under Q1
    and `other` under beta. If it is `alone`, and all others are equally likely among themselves,
    variances split into those of its indicator and those among the others, whose Q1/Q is below 1.
    """
    single = keep * permanent + (1 - keep) * other
    if alone and permanent == 1:
        return 0.0
    share = keep**2 * permanent / single
    return float(share * (1 - permanent) / (1 - single) if alone else share)


def most_periods(length: int, period: int) -> int:
    """Return the most periods that a time of `length` >= 1 touches, wherever it begins.

    Both are whole numbers of one unit: of windows for epochs, of milliseconds for windows.

    >>> [most_periods(windows, 24) for windows in (1, 2, 25, 26, 365)]
    [1, 2, 2, 3, 17]
    """
    return 1 + -(-(length - 1) // period)


def split_windows(windows: int, epoch: int, first: int) -> dict[int, int]:
    """Return, by number of windows, how many epochs hold that many; `first` is the first's."""
    epochs: dict[int, int] = {}
    whole, rest = divmod(windows - first, epoch)
    for length, times in ((first, 1), (epoch, whole), (rest, min(rest, 1))):
        if times:
            epochs[length] = epochs.get(length, 0) + times
    return epochs
