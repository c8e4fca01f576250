"""Policies by distance: the farther two values are apart, the less they are hidden."""

import math
from fractions import Fraction

from ldpstream.agents.privacy.by_value import name_of_values
from ldpstream.agents.privacy.factors import LARGEST_BUDGET, factor_text, width_text
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy


def say_metric(policy: MetricPolicy, domain: Domain) -> list[str]:
    """Say the factor of a step, how steps add up, and the factor of the domain's two ends."""
    what, unit = name_of_values(domain), budget(policy.epsilon)
    factor = factor_text(unit)
    far = policy.budget_of(tuple(extent - 1 for extent in policy.shape))
    said = [
        (
            f"Two {what} one step apart are indistinguishable up to a factor {factor}: no report "
            "is more than that times likelier for one than for the other."
        ),
        (
            f"{_farther(policy, factor)} The two farthest {what} are distinguishable up to a "
            f"factor {factor_text(far)}."
        ),
    ]
    if policy.scale is not None:
        factors = ", ".join(f"{number:g}" for number in policy.scale)
        said.append(f"A step of each dimension counts as {factors} steps.")
    if isinstance(domain, WeightedDomain):
        said.append("A weight that is larger by one counts as one step farther.")
    if policy.widths is not None:
        said.append(_of_numbers(policy, unit))
    return said


def _farther(policy: MetricPolicy, factor: str) -> str:
    power = f"d steps apart, up to {factor}^d"
    if len([extent for extent in policy.shape if extent > 1]) == 1:
        return f"Each further step multiplies the factor once more: {power}."
    if policy.p == 1:
        return f"Steps of all dimensions add up, and each multiplies the factor: {power}."
    if math.isinf(policy.p):
        return f"The largest number of steps of any dimension counts: {power}."
    if policy.p == 2:
        return f"Distances are straight ones, in steps: {power}."
    return f"Distances are those of the L{policy.p} norm, in steps: {power}."


def _of_numbers(policy: MetricPolicy, unit: Fraction) -> str:
    assert policy.widths is not None
    widths = ", ".join(map(width_text, policy.widths))
    if policy.rounded:
        # Numbers within a step lose the mean of the two ends: (e^step - 1) for each width.
        for_width = exp_bounds(min(unit, Fraction(LARGEST_BUDGET)))[1] - 1
        return (
            "Numbers are rounded at random to one of the two nearest values, so any two of "
            f"them one width apart ({widths}) are indistinguishable up to a factor "
            f"{factor_text(for_width)}, nearer ones up to a proportionally smaller one."
        )
    return (
        f"Values are bins of width {widths}: two numbers on different sides of an edge are a whole "
        "step apart, however near they are; those in one bin are indistinguishable."
    )


def say_graph(policy: GraphPolicy, domain: Domain) -> list[str]:
    """Say the factors of edges, and that they multiply along paths."""
    what, budgets = name_of_values(domain), policy.arcs.values()
    low, high = factor_text(min(budgets)), factor_text(max(budgets))
    extent = high if low == high else f"{low} to {high}, depending on the edge"
    said = [
        (
            f"Two {what} that an edge of the policy's graph joins are indistinguishable up to a "
            f"factor {extent}; along a path of edges the factors multiply."
        ),
    ]
    if policy.directed:
        said.append("Edges are directed: the two directions of a pair may have different factors.")
    if policy.unprotected_pairs:
        said.append(
            f"{policy.unprotected_pairs:,} ordered pairs have no path: they are not hidden."
        )
    return said
