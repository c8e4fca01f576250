"""The Bayesian estimate of k values with a known prior, and a test of the prior.

For mechanisms whose statistic counts reports. With the prior pi and
`P(y) = sum_x pi_x Q[x, y]`, a report y is from value x with probability
`a_x(y) = pi_x Q[x, y] / P(y)`. Given the reports, values are independent: the share of a query w
among the respondents has the posterior mean `sum_y N_y m(y) / n`, `m(y) = sum_x w_x a_x(y)`, and
the standard deviation `sqrt(sum_y N_y s2(y)) / n`, `s2(y) = sum_x w_x^2 a_x(y) - m(y)^2`. No
estimate has less mean squared error if the prior is right, and it is biased if not: it is published
beside the unbiased one, and withheld where a chi-square test of the counts contradicts the prior.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

_FEWEST_EXPECTED = 5.0
"""Reports that are expected less often are tested together."""


@dataclass(frozen=True, eq=False)
class Bayes:
    """A channel `Q`, float64 `(k, reports)`, and a prior above 0 with sum 1, float64 `(k,)`.

    Queries are weights of the values, float64 `(q, k)`, one a row.
    """

    channel: Floats
    prior: Floats

    @classmethod
    def of(cls, mechanism: Mechanism, prior: Floats) -> Self:
        """Return the realised channel of a mechanism with a prior of its values.

        Raises:
            ValueError: if its statistic does not count reports, or these are too many.
        """
        if mechanism.table is None:
            raise ValueError(f"expected a mechanism that counts its reports, got {mechanism.id}")
        return cls(mechanism.table, prior)

    @cached_property
    def chances(self) -> Floats:
        """`P(y)`, the probabilities of the reports, float64 `(reports,)`."""
        out: Floats = self.prior @ self.channel
        return out

    @cached_property
    def posteriors(self) -> Floats:
        """`a_x(y)`, float64 `(k, reports)`; 0 at reports that no value gives."""
        joint = self.prior[:, None] * self.channel
        return np.divide(joint, self.chances, out=np.zeros_like(joint), where=self.chances > 0.0)

    def moments(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return `m(y)` and `s2(y)` of queries, float64 `(q, reports)` each."""
        mean = weights @ self.posteriors
        return mean, np.maximum(weights**2 @ self.posteriors - mean**2, 0.0)

    def errors(self, weights: Floats) -> Floats:
        """Return `sum_y P(y) s2(y)`, the mean squared errors for one report beforehand: `(q,)`."""
        out: Floats = self.moments(weights)[1] @ self.chances
        return out

    def estimate(self, weights: Floats, counts: Statistic) -> tuple[Floats, Floats]:
        """Return the posterior means and standard deviations of queries, float64 `(q,)` each.

        They are of the share among the respondents, and NaN without reports.
        """
        mean, variance = self.moments(weights)
        n = float(counts.sum()) or np.nan
        return mean @ counts / n, np.sqrt(variance @ counts) / n

    def p_value(self, counts: Statistic) -> float:
        """Return the p-value of the counts if values are drawn from the prior.

        The counts then are a sample of `pi Q`, and Pearson's statistic of K different reports is
        about chi-square with K - 1 degrees of freedom. Reports that are expected less than five
        times count as one. It is 0 if one came that no value gives.
        """
        expected = counts.sum() * self.chances
        if counts[expected <= 0.0].any():
            return 0.0
        ranking = np.argsort(expected, kind="stable")
        expected, observed = expected[ranking], counts[ranking].astype(np.float64)
        rare = int(np.searchsorted(expected, _FEWEST_EXPECTED))
        if rare:
            enough = int(np.searchsorted(np.cumsum(expected), _FEWEST_EXPECTED)) + 1
            rare = max(rare, enough)
            expected = np.append(expected[rare:], expected[:rare].sum())
            observed = np.append(observed[rare:], observed[:rare].sum())
        if len(expected) < 2:
            return 1.0
        statistic = float(((observed - expected) ** 2 / expected).sum())
        return float(scipy.special.gammaincc((len(expected) - 1) / 2.0, statistic / 2.0))
