"""The proof of localized information privacy of k values, report by report."""

from collections.abc import Sequence
from fractions import Fraction

from ldpstream.mechanisms.channels.certificate import Certificate, certify_by_structure
from ldpstream.mechanisms.exact.dyadic import exp_floor, log_estimate
from ldpstream.mechanisms.policies.prior import PriorPolicy


def certify_prior(
    mechanism: str,
    policy: PriorPolicy,
    weights: Sequence[Sequence[int]],
    disclosed: list[str],
) -> Certificate:
    """Prove or refute `e^-eps <= P(x | y) / prior[x] <= e^eps` at every value and report, exactly.

    `weights[x][y]` is proportional to `P(y | x)`. The violation named is the largest.
    """
    worst, violation = Fraction(1), None
    for output, column in enumerate(zip(*weights, strict=True)):
        ratio, value = policy.worst_ratio(column)
        if ratio is None:
            violation = f"value {value} at output {output}, which it cannot make"
            break
        if ratio > worst:
            worst = ratio
            if ratio > exp_floor(policy.budget):
                violation = (
                    f"value {value} at output {output}: loss {log_estimate(ratio):.6g} "
                    f"above the budget {policy.epsilon:.6g}"
                )
    return certify_by_structure(
        mechanism,
        policy,
        {policy.budget: worst},
        disclosed,
        violation=violation,
        proof="enumeration",
    )
