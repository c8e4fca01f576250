"""Shorthands for policies, and any policy written out entry by entry."""

from fractions import Fraction

from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy


def dense(policy: Policy) -> list[list[Fraction | None]]:
    return [[policy.entry(x, z) for z in range(policy.size)] for x in range(policy.size)]


def classical(epsilon: float, size: int) -> BlockPolicy:
    return BlockPolicy(epsilon, Blocks.one(size))


def line(epsilon: float, size: int) -> MetricPolicy:
    return MetricPolicy(epsilon, (size,))
