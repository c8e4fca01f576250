"""`high-low` and `groups`: totals of theirs, by enumeration in rationals that shares no code."""

import numpy as np
import pytest

from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.interface.mechanism import Mechanism


def total(mechanism: Mechanism, shares: np.ndarray) -> float:
    """The sum of the variances of all single values, of one report for respondents."""
    return sum(float(mechanism.decoder.noise(row) @ shares) for row in np.eye(mechanism.size))


def uniform(size: int) -> np.ndarray:
    return np.full(size, 1.0 / size)


def test_values_that_share_positions_have_the_mean_of_their_group_without_noise():
    """The two-valued decoder has 21.686283 here."""
    mechanism = HighLow(1.0, 12, frozenset(range(6)))
    assert total(mechanism, uniform(12)) == pytest.approx(17.544577, rel=1e-7)
