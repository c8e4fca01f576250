"""Bernstein bounds of the population where blocks are disclosed and the statistic holds sums."""

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_values
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from tests.exact.enumeration import counted


@pytest.mark.parametrize("n", [20, 200])
def test_a_block_that_nobody_reported_may_still_exist(n: int):
    """Few reports bound neither its share of the population nor the variance that comes with it."""
    mechanism = SubsetSelection(0.3, Blocks(np.array([0, 0, 1, 1, 1, 1])))
    values = np.zeros(n, dtype=np.int64)
    statistic = counted(mechanism, values, 1)
    keywords = {"method": "bernstein", "confidence": 0.95}
    people = estimate_values(mechanism, statistic, n, estimand="population", **keywords)
    # A block of share 3/n is unseen with probability 0.05: its noise must fit into the bounds.
    share, noise = 3.0 / n, mechanism.decoder.noise_extremes()[1]
    variance = share * noise / n
    half = (people.highest - people.lowest) / 2.0
    assert (half[2:] >= np.sqrt(2.0 * variance[2:] * np.log(2.0 / 0.05))).all()
    present = estimate_values(mechanism, statistic, n, estimand="respondents", **keywords)
    assert (present.high[2:] == 0.0).all()
    assert (present.low[2:] == 0.0).all()
