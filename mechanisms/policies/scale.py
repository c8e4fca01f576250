"""Policies with all budgets multiplied by one factor."""

import math
from dataclasses import replace
from fractions import Fraction

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy


def scaled(policy: Policy, factor: float | Fraction) -> Policy:
    """Return the policy with every budget times a finite factor above 0; infinity stays.

    An exact factor keeps exact budgets exact.

    Raises:
        SpecError: if the factor is invalid, or the policy's budgets cannot be chosen freely.

    >>> scaled(BinaryPolicy(1.0, math.inf), 0.5)
    BinaryPolicy(first=0.5, second=inf)
    """
    if not (math.isfinite(factor) and factor > 0):
        raise SpecError("factor", f"a finite number above 0, got {factor}")
    if isinstance(policy, BlockPolicy | HighLowPolicy | MetricPolicy):
        return replace(policy, epsilon=policy.epsilon * float(factor))
    if isinstance(policy, BinaryPolicy):
        return BinaryPolicy(policy.first * float(factor), policy.second * float(factor))
    exact = factor if isinstance(factor, Fraction) else budget(factor)
    if isinstance(policy, MatrixPolicy):
        rows = (tuple(e if e is None else e * exact for e in row) for row in policy.entries)
        return MatrixPolicy(tuple(rows))
    if isinstance(policy, GraphPolicy):
        edges = tuple((start, end, length * exact) for start, end, length in policy.edges)
        return replace(policy, edges=edges)
    raise SpecError("policy", "a policy with budgets of its own")
