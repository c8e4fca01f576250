"""Do the reports of a `lip` collection agree with its priors? docs/theory.md section 7.

A wrong prior biases the Bayesian estimate, silently. But it also shifts how often report 1 comes:
with the prior P that happens with probability `l1 = P r + (1 - P) q` in a level of channel (q, r).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import betainc

from ldpstream.estimators.lip.binomial_sums import MAX_WEIGHT, tail_at_least
from ldpstream.estimators.lip.methods import Suspicion
from ldpstream.estimators.lip.mmse import report_probabilities
from ldpstream.estimators.queries.sums import check_counts
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.interface.mechanism import Statistic

SIGNIFICANCE = 0.001
"""Below this p-value a prior is called wrong: at most one false alarm in a thousand windows."""
_SHIFT: Final = 2.0
_SLOPE: Final = 4.0
_LEVELS: Final = 4.0
"""What the p-values of the three tests are multiplied by: 1/2 + 1/4 + 1/4 is 1 (Bonferroni)."""


@dataclass(frozen=True)
class CalibrationTest:
    """The test of every level with reports, and of all of them together.

    Of each tested level, `(levels,)`: its number, reports and reports of 1, int64; `least` and
    `largest`, the probabilities of report 1 at the ends of its interval of priors, and `p_value`,
    float64. `together` has the p-values of what all levels may have in common. All are adjusted
    for being many, so that with right priors any of them is below d with probability at most d.
    """

    level: Integers
    reports: Integers
    ones: Integers
    least: Floats
    largest: Floats
    p_value: Floats
    together: dict[Suspicion, float]

    @property
    def smallest(self) -> float:
        """The smallest of all p-values, 1 where there are no reports: the p-value of the priors."""
        return float(min(*self.together.values(), self.p_value.min(initial=1.0)))

    @property
    def suspicion(self) -> Suspicion:
        """What the priors are if they are wrong: in common, where a test of that says so."""
        likely = min(self.together, key=lambda name: self.together[name])
        return likely if self.together[likely] < SIGNIFICANCE else "wrong in a level"

    def flagged(self, significance: float = SIGNIFICANCE) -> Integers:
        """Return the places of the levels whose priors are wrong, most significant first."""
        order = np.argsort(self.p_value, kind="stable")
        return order[self.p_value[order] < significance]


def calibrate(mechanism: Lip, statistic: Statistic, n: int) -> CalibrationTest:
    """Test the observed reports of 1 against the priors.

    For right priors, wherever they lie in their level, the number of ones o of a level of m reports
    is a sum of independent bits with probabilities between `least` and `largest`: stochastically
    between `Bin(m, least)` and `Bin(m, largest)`. So the tail of the outer one, doubled, is a
    p-value of the level, adjusted by Holm (1979).

    Whatever the weights w, if only they do not depend on the ones, `sum w o` is stochastically
    below `sum w Bin(m, largest)`; for w < 0, with `|w| (m - o)` in its place, below
    `sum |w| Bin(m, 1 - least)`: independent terms, each below its own. The exact tail of that sum,
    both directions doubled, is a p-value too. Weights are those of the best test against priors
    whose log-odds are all off by the same (`too low`, `too high`) or by a factor (`too far from
    1/2`, `too near 1/2`), at the middle of each level. The three tests share the significance as
    1/2, 1/4, 1/4.

    So right priors are called wrong with probability at most the significance, whatever n, priors
    and budgets are. That is at one moment: p-values of a window that is looked at over and over are
    not adjusted for that.

    Raises:
        ValueError: where the statistic does not count n reports.
    """
    check_counts(mechanism, statistic, n)
    counts = statistic.reshape(-1, 2)
    level = np.flatnonzero(counts.sum(axis=1))
    reports, ones = counts[level].sum(axis=1), counts[level, 1]
    likely = report_probabilities(mechanism)[level]
    place = level // len(mechanism.epsilons)
    edges, middles = np.array(mechanism.prior.edges), np.array(mechanism.prior.representatives)
    least, middle, largest = (
        _shares(prior[place], likely) for prior in (edges[:-1], middles, edges[1:])
    )
    above = _at_least(ones, reports, largest[:, 1])
    below = _at_least(reports - ones, reports, least[:, 0])
    separate = np.minimum(2.0 * np.minimum(above, below), 1.0)
    shift = middles[place] * (1.0 - middles[place]) * (likely[:, 1, 1] - likely[:, 0, 1])
    shift /= middle.prod(axis=1)
    up, down = _directions(shift, reports, ones, least, largest)
    far, near = _directions(shift * (1.0 - 2.0 * middles[place]), reports, ones, least, largest)
    together: dict[Suspicion, float] = {
        "too low": min(1.0, _SHIFT * up),
        "too high": min(1.0, _SHIFT * down),
        "too far from 1/2": min(1.0, _SLOPE * far),
        "too near 1/2": min(1.0, _SLOPE * near),
    }
    adjusted = np.minimum(_LEVELS * _holm(separate), 1.0)
    return CalibrationTest(level, reports, ones, least[:, 1], largest[:, 1], adjusted, together)


def _shares(prior: Floats, likely: Floats) -> Floats:
    """Return the probabilities of reports 0 and 1, `(levels, 2)`.

    Neither is 1 less the other, which may be 0 at large epsilon.
    """
    return prior[:, None] * likely[:, 1] + (1.0 - prior)[:, None] * likely[:, 0]


def _directions(
    weights: Floats, reports: Integers, ones: Integers, least: Floats, largest: Floats
) -> Iterator[float]:
    """Yield the doubled p-values of more ones where weights are above 0, and of fewer."""
    scale = MAX_WEIGHT / max(np.abs(weights).max(initial=0.0), 1e-300)
    whole = np.rint(weights * scale).astype(np.int64)
    for signed in (whole, -whole):
        more = signed > 0
        seen = np.where(more, ones, reports - ones)
        most = np.where(more[:, None], largest, least[:, ::-1])
        size = np.abs(signed)
        yield 2.0 * tail_at_least(int(size @ seen), size, reports, most)


def _at_least(ones: Integers, reports: Integers, share: Floats) -> Floats:
    """Return `P(Bin(reports, share) >= ones)`."""
    tail = betainc(np.maximum(ones, 1), reports - ones + 1, share)
    return np.where(ones > 0, tail, 1.0)


def _holm(p_values: Floats) -> Floats:
    """Return the step-down adjusted p-values of a family, in its order."""
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(p_values.size, 0, -1)
    out = np.empty_like(p_values)
    out[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return out
