"""Policies written out, for tests that compare them entry by entry."""

from fractions import Fraction

from ldpstream.mechanisms.graph_policy import GraphPolicy
from ldpstream.mechanisms.matrix_policy import MatrixPolicy
from ldpstream.mechanisms.metric_policy import MetricPolicy


def dense(policy: MatrixPolicy | GraphPolicy | MetricPolicy) -> list[list[Fraction | None]]:
    return [[policy.entry(x, z) for z in range(policy.size)] for x in range(policy.size)]
