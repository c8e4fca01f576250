"""The permanent draw for a channel from a file: the channel minus a part that all values share.

Every value gives report y at least the probability `m[y] = min_x Q[x, y]`. Subtracting a share s of
these leaves, up to a constant, another channel Q1 that reveals more:
`Q = lambda Q1 + (1 - lambda) 1 beta^T`, where `beta` is proportional to m. A report is therefore
the permanent one with probability lambda, and otherwise drawn from beta. The share is the largest
with which Q1 keeps its budgets, which are those of the file times one factor.
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

# The share is reduced by this factor from its floating-point value, and then proved exactly.
_MARGIN = 1.0 - 2.0**-20


class SharedChain(MixtureChain):
    """A chain that devices derive from the file and the share."""

    def canonical(self) -> Sequence[Json]:
        """Return nothing, since devices derive the chain themselves."""
        return []


def held_channel(
    design: DesignedChannel, given: object
) -> tuple[DesignedChannel, int, SharedChain]:
    """Return the channel of a permanent draw, its share in units of 2^-64, and the chain.

    `given` is the budget of the permanent draw for the two values that the file protects least.

    Raises:
        SpecError: if `given` is not above the file's largest budget, or the policy is one of
            localized information privacy or leaves pairs unprotected.
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
    """Return the largest share, below 1, with which the remaining channel keeps the budgets."""
    rows, least = design.matrix, np.array(shared, dtype=np.float64) / WORD
    most = 1.0
    for value, other, larger in allowed.constraints():
        grown = expm1(float(larger))
        room = grown * rows[other] + (rows[other] - rows[value])
        most = min(most, float((room / (grown * least)).min()))
    return max(most, 0.0) * _MARGIN
