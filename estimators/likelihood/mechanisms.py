"""The mechanisms for which likelihood is offered, without scipy, as devices check this too."""

from typing import Final

from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.interface.mechanism import Mechanism

LARGEST: Final = 1_024
"""Most values of a dimension, up to which the thresholds of profiles were calibrated."""
SUPPORTED: Final = f"l1-geometric in one dimension of 2 to {LARGEST:,} values"


def has_likelihood(mechanism: Mechanism) -> bool:
    """Return whether likelihood estimates are offered for a mechanism's values.

    If a channel's noise is the same in all directions (randomized response, Hadamard, projective
    geometry, subsets), the positive parts of the noise of many values fill empty regions. The
    maximum is then biased by several standard errors, which the data do not show, and its profiles
    do not cover. For several dimensions there is no such solver.
    """
    return (
        isinstance(mechanism, L1Geometric)
        and not mechanism.weighted
        and len(mechanism.extents) == 1
        and mechanism.size <= LARGEST
    )
