"""Policies of few words, and any policy written out entry by entry."""

from fractions import Fraction

from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.graph_policy import GraphPolicy
from ldpstream.mechanisms.matrix_policy import MatrixPolicy
from ldpstream.mechanisms.metric_policy import MetricPolicy
from ldpstream.mechanisms.policy import BlockPolicy


def dense(policy: MatrixPolicy | GraphPolicy | MetricPolicy) -> list[list[Fraction | None]]:
    return [[policy.entry(x, z) for z in range(policy.size)] for x in range(policy.size)]


def classical(epsilon: float, size: int) -> BlockPolicy:
    return BlockPolicy(epsilon, Blocks.one(size))


def line(epsilon: float, size: int) -> MetricPolicy:
    return MetricPolicy(epsilon, (size,))
