"""The proof of localized information privacy, level by level (docs/theory.md section 7)."""

import math
from fractions import Fraction

from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_structure,
)
from ldpstream.mechanisms.exact.dyadic import exp_floor, log_estimate
from ldpstream.mechanisms.policies.lip import worst_leak
from ldpstream.mechanisms.policies.lip_policy import LipPolicy


def certify_lip(mechanism: str, policy: LipPolicy, disclosed: list[str]) -> Certificate:
    """Prove or refute `e^-eps <= P(X = x | y)/P(X = x) <= e^eps`, exactly.

    At both values and both reports of every level, for every prior of its interval: `worst_leak`
    looks at the interval's two ends, which suffices. `losses` holds the largest ratio (or inverse)
    of each budget on offer. The violation named is that with the largest excess.
    """
    worst: dict[Fraction, Fraction] = {}
    floors = {e: exp_floor(e) for e in {level.epsilon for level in policy.levels}}
    violation, worst_excess = None, -math.inf
    for number, (level, thresholds) in enumerate(
        zip(policy.levels, policy.thresholds, strict=True)
    ):
        budget = level.epsilon
        leak = worst_leak(level, thresholds)
        worst[budget] = max(worst.get(budget, Fraction(1)), leak.ratio)
        if leak.ratio <= floors[budget]:
            continue
        loss = log_estimate(leak.ratio)
        if loss - float(budget) > worst_excess:
            worst_excess = loss - float(budget)
            violation = (
                f"level {number} ({level}) at output {leak.output}: "
                f"loss {loss:.6g} above the budget {float(budget):.6g}"
            )
    enumerated = policy.size <= ENUMERATION_LIMIT
    return certify_by_structure(
        mechanism,
        policy,
        worst,
        disclosed,
        violation=violation,
        proof="enumeration" if enumerated else "structure",
    )
