"""The permanent draw of a channel out of a file: what is left of it without what all values share.

Every value gives report y with at least `m[y] = min_x Q[x, y]`. Less a share s of these, the rows
are those of another channel, which tells more: `Q = lambda Q1 + (1 - lambda) 1 beta^T`, `beta` in
proportion to m. So a report is the permanent one with probability lambda, and else one of beta. The
share is the largest with which Q1 keeps its budgets, those of the file times one factor.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import expm1

import numpy as np

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.designed import DesignedChannel
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.interface.chain import read_larger, too_near
from ldpstream.mechanisms.interface.mixture_chain import MixtureChain
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from ldpstream.mechanisms.policies.scale import scaled
from ldpstream.mechanisms.policies.spending import largest_loss

# What the share is less than found in floating point, which is then proved exactly.
_MARGIN = 1.0 - 2.0**-20


class SharedChain(MixtureChain):
    """M that follows from the file and the share alone."""

    def canonical(self) -> Sequence[Json]:
        """Return nothing: devices derive it as they derive the draw."""
        return []


def held_channel(
    design: DesignedChannel, given: object
) -> tuple[DesignedChannel, int, SharedChain]:
    """Return the channel of a permanent draw, its share in units of 2^-64, and what follows.

    `given` is the budget of the two values that the file protects least.

    Raises:
        SpecError: unless it is above the file's largest, for localized information privacy, and for
            a policy that leaves pairs unprotected.
    """
    policy = design.policy
    if isinstance(policy, PriorPolicy) or policy.unprotected is not None:
        raise SpecError(
            "hold.epsilon",
            "no such key with a channel for priors, or for a policy that leaves values "
            "unprotected: hold = H repeats its reports",
        )
    largest = largest_loss(policy)
    epsilon = budget(read_larger(given, float(largest)))
    allowed = scaled(policy, epsilon / largest)
    shared = [min(column) for column in zip(*design.weights, strict=True)]
    share = int(_largest_share(design, shared, allowed) * WORD)
    taken = [weight * share >> 64 for weight in shared]
    left = WORD - sum(taken)
    if left == WORD:
        raise too_near()
    rows = tuple(
        tuple(weight - less for weight, less in zip(row, taken, strict=True))
        for row in design.weights
    )
    permanent = DesignedChannel(allowed, rows, design.prior, total=left)
    if permanent.channel.satisfies(allowed) is not None:
        raise too_near()
    columns = [(max(column), min(column)) for column in zip(*rows, strict=True)]
    chain = SharedChain(
        keep=Fraction(left, WORD),
        others=tuple(Fraction(weight, WORD) for weight in taken),
        extremes=tuple(
            (y, Fraction(more, left), Fraction(less, left))
            for y, (more, less) in enumerate(columns)
            if more > less
        ),
    )
    return permanent, share, chain


def _largest_share(design: DesignedChannel, shared: list[int], allowed: Policy) -> float:
    """Return the largest share, below 1, with which the rest keeps the budgets."""
    rows, least = design.matrix, np.array(shared, dtype=np.float64) / WORD
    most = 1.0
    for value, other, larger in allowed.constraints():
        grown = expm1(float(larger))
        room = grown * rows[other] + (rows[other] - rows[value])
        most = min(most, float((room / (grown * least)).min()))
    return max(most, 0.0) * _MARGIN
