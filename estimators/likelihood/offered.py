"""Which mechanisms likelihood is offered for: numpy alone, since configurations ask on devices."""

from typing import Final

from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.interface.mechanism import Mechanism

LARGEST: Final = 1_024
"""Values of a dimension at most: the thresholds of profiles were calibrated up to here."""
OFFERED: Final = f"l1-geometric in one dimension of 2 to {LARGEST:,} values"


def has_likelihood(mechanism: Mechanism) -> bool:
    """Return whether likelihood estimates are offered for a mechanism's values.

    Where a channel's noise is alike in all directions (randomized response, Hadamard, projective
    geometry, subsets) the positive parts of many noises fill empty regions: the largest likelihood
    is biased by several standard errors, which nothing in the data shows, and no profile of it
    covers. Several dimensions have no such solver.
    """
    return (
        isinstance(mechanism, L1Geometric)
        and not mechanism.weighted
        and len(mechanism.extents) == 1
        and mechanism.size <= LARGEST
    )
