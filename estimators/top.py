"""The largest values, chosen by looking at the estimates."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.estimate import Estimate, estimate_values
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

Integers = NDArray[np.int64]


def estimate_top(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    top: int,
    **options: Unpack[OptionKeywords],
) -> tuple[Integers, Estimate]:
    """Return the `top` values of largest estimated share, largest first, and their estimates.

    Ties go to the smaller index. A list shorter than the domain was chosen by looking, so its
    bounds are simultaneous over the whole domain whatever is asked; the whole domain's are as
    asked.

    Raises:
        ValueError: where `top` is below 1, the statistic does not count n reports, or an option is
            impossible.
    """
    if top < 1:
        raise ValueError(f"top: expected a number >= 1, got {top}")
    if top < mechanism.size:
        options["simultaneous"] = True
    everything = estimate_values(mechanism, statistic, n, **options)
    order = np.argsort(-everything.value, kind="stable")[:top]
    return order, everything.take(order)
