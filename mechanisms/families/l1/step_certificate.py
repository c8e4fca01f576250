"""Certificates by structure for mechanisms that realise one ratio for every index step."""

from fractions import Fraction

from ldpstream.mechanisms.channels.certificate import Certificate, certify_by_structure
from ldpstream.mechanisms.exact.dyadic import budget, exp_floor
from ldpstream.mechanisms.policies.lp_norm import keeps_lp
from ldpstream.mechanisms.policies.metric import MetricPolicy


def certify_steps(
    mechanism: str, policy: MetricPolicy, ratio: Fraction, disclosed: list[str]
) -> Certificate:
    """Prove a policy without a scale from the ratio of two values one step apart.

    Under the L1 metric the losses of all steps between two values add up, and so do the budgets.
    For other p a step's ratio is within `e^s` for s = `policy.step`, and `s |d|_1 <= epsilon |d|_p`
    (Hoelder's inequality, checked exactly). The certificate then lists the losses of one step and
    of a step in every dimension, which is the tightest.
    """
    dimensions = sum(extent > 1 for extent in policy.shape)
    if policy.p == 1 or dimensions == 1:
        return certify_by_structure(mechanism, policy, {policy.step: ratio}, disclosed)
    kept = keeps_lp(policy.step, budget(policy.epsilon), dimensions=dimensions, p=policy.p)
    broken = not kept or ratio > exp_floor(policy.step)
    everywhere = policy.budget_of(tuple(int(extent > 1) for extent in policy.shape))
    return certify_by_structure(
        mechanism,
        policy,
        {budget(policy.epsilon): ratio, everywhere: ratio**dimensions},
        disclosed,
        violation=f"a step's ratio above e^{float(policy.step)}" if broken else None,
    )
