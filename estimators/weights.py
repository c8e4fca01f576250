"""Sums of private weights over sets of values: docs/theory.md section 5.

With `largest + 1` weights beside each value, pairs numbered weight by weight, the sum over a set is
the linear query `w[x, v] = v 1{x in the set}`. Under `l1-bits` its decoder is the theory's: one
term for each step of the weight.
"""

from collections.abc import Iterator, Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.decoding import prepare_queries
from ldpstream.estimators.estimate import Estimate, bound, indicator
from ldpstream.estimators.options import OptionKeywords, Options
from ldpstream.estimators.sums import check_counts, linear_sums
from ldpstream.mechanisms.mechanism import Mechanism, Statistic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def estimate_weights(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    sets: Sequence[Integers],
    *,
    largest: int,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the mean weight that a respondent has in sets of values, 0 outside of the set.

    Times n these are the sums of weights. `sets` are int64 arrays of indices of the values alone;
    weights are `0..largest`, the last dimension of the mechanism.

    Raises:
        ValueError: where an index is outside the domain, the statistic does not count n reports,
            or an option is impossible.
    """
    check_counts(mechanism, statistic, n)
    values, weights = mechanism.size // (largest + 1), np.arange(largest + 1.0)

    def queries() -> Iterator[Floats]:
        # One after the other: all together may be larger than memory.
        for members in sets:
            yield np.multiply.outer(indicator(values, members), weights).ravel()

    sums = linear_sums(prepare_queries(mechanism), statistic, queries())
    return bound(sums, n, Options(**options))
