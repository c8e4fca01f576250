"""Do the reports of a `lip` collection agree with its priors? docs/theory.md section 7.

A wrong prior biases the Bayesian estimate, silently. But it also shifts how often report 1 comes:
with the prior P that happens with probability `l1 = P r + (1 - P) q` in a level of channel (q, r).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, xlogy

from ldpstream.estimators.lip.mmse import report_probabilities
from ldpstream.estimators.queries.sums import check_counts
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.interface.mechanism import Statistic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SIGNIFICANCE = 0.001
"""Below this p-value a prior is called wrong: one false alarm in a thousand windows."""


@dataclass(frozen=True)
class Calibration:
    """The test of every level with reports, and of all of them together.

    Of each tested level, `(levels,)`: its number, reports and reports of 1, int64; `least` and
    `largest`, the probabilities of report 1 at the ends of its interval of priors, and `p_value`,
    float64. `pooled` is the p-value of the total number of ones. Both are adjusted for being many
    (Holm 1979), so that with right priors any of them is below d with probability at most d.
    """

    level: Integers
    reports: Integers
    ones: Integers
    least: Floats
    largest: Floats
    p_value: Floats
    pooled: float

    @property
    def smallest(self) -> float:
        """The smallest of all p-values, 1 where there are no reports: the p-value of the priors."""
        return float(min(self.pooled, self.p_value.min(initial=1.0)))

    def flagged(self, significance: float = SIGNIFICANCE) -> Integers:
        """Return the places of the levels whose priors are wrong, most significant first."""
        order = np.argsort(self.p_value, kind="stable")
        return order[self.p_value[order] < significance]


def calibrate(mechanism: Lip, statistic: Statistic, n: int) -> Calibration:
    """Test the observed reports of 1 against the priors.

    For right priors, wherever they lie in their level, the number of ones of a level is a sum of
    independent bits with probabilities between `least` and `largest`: it is stochastically between
    the two binomials, whose tails, doubled, give an exact (conservative) p-value. The total over
    levels with few reports each is bounded by Hoeffding's `exp(-n KL(mean ones || mean l1))` (1963,
    Theorem 1), valid at every n. A test at one moment: p-values of a window that is looked at over
    and over are not adjusted for that.

    Raises:
        ValueError: where the statistic does not count n reports.
    """
    check_counts(mechanism, statistic, n)
    counts = statistic.reshape(-1, 2)
    level = np.flatnonzero(counts.sum(axis=1))
    reports, ones = counts[level].sum(axis=1), counts[level, 1]
    likely = report_probabilities(mechanism)[level]
    edges = np.array(mechanism.prior.edges)
    place = level // len(mechanism.epsilons)
    # The probabilities of reports 0 and 1, `(levels, 2)`: neither is 1 less the other, which may
    # be 0 at large epsilon.
    least, largest = (
        prior[:, None] * likely[:, 1] + (1.0 - prior)[:, None] * likely[:, 0]
        for prior in (edges[:-1][place], edges[1:][place])
    )
    above = _at_least(ones, reports, largest[:, 1])
    below = _at_least(reports - ones, reports, least[:, 0])
    separate = np.minimum(2.0 * np.minimum(above, below), 1.0)
    pooled = _pooled(ones, reports, least, largest) if n else 1.0
    adjusted = _holm(np.append(separate, pooled))
    return Calibration(
        level, reports, ones, least[:, 1], largest[:, 1], adjusted[:-1], float(adjusted[-1])
    )


def _at_least(ones: Integers, reports: Integers, share: Floats) -> Floats:
    """Return `P(Bin(reports, share) >= ones)`."""
    tail = betainc(np.maximum(ones, 1), reports - ones + 1, share)
    return np.where(ones > 0, tail, 1.0)


def _pooled(ones: Integers, reports: Integers, least: Floats, largest: Floats) -> float:
    n, total = int(reports.sum()), int(ones.sum())
    low, high = (tuple((reports @ ends / n).tolist()) for ends in (least, largest))
    seen = (n - total) / n, total / n
    if low[1] <= seen[1] <= high[1]:
        return 1.0
    nearest = low if seen[1] < low[1] else high
    divergence = sum(float(xlogy(s, s / e)) for s, e in zip(seen, nearest, strict=True))
    return float(min(2.0 * np.exp(-n * max(divergence, 0.0)), 1.0))


def _holm(p_values: Floats) -> Floats:
    """Return the step-down adjusted p-values of a family, in its order."""
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(p_values.size, 0, -1)
    out = np.empty_like(p_values)
    out[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return out
