"""The budget of one report in a few words: the number and its unit."""

import math
from collections.abc import Iterable
from fractions import Fraction

from ldpstream.mechanisms.policies.attributes import AttributesPolicy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.lip_policy import LipPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from ldpstream.mechanisms.policies.public_weights import PublicWeightPolicy

_LARGEST_ENUMERATED = 256


def epsilon_text(policy: Policy) -> str:
    """Return the configured budget as text, with its unit unless it holds for any two values.

    >>> epsilon_text(MetricPolicy(0.4, (50,), widths=(2.0,)))
    '0.4 for each 2'
    """
    match policy:
        case PublicWeightPolicy():
            return epsilon_text(policy.values)
        case AttributesPolicy():
            texts = dict.fromkeys(map(epsilon_text, policy.parts))
            return ", ".join(texts) if len(texts) <= 2 else f"one of {len(texts)} budgets"
        case BinaryPolicy():
            return _between(e for e in (policy.first, policy.second) if math.isfinite(e))
        case BlockPolicy():
            return f"{policy.epsilon:g}{' in a block' if policy.blocks.count > 1 else ''}"
        case HighLowPolicy():
            all_of_them = len(policy.sensitive) == policy.size
            return f"{policy.epsilon:g}{'' if all_of_them else ' of sensitive values'}"
        case MetricPolicy():
            return _by_steps(policy)
        case GraphPolicy():
            return f"{_between(policy.arcs.values())} an edge"
        case LipPolicy() | PriorPolicy():
            levels = policy.levels if isinstance(policy, LipPolicy) else [policy]
            return f"{_between(level.epsilon for level in levels)} from a prior"
    if policy.size > _LARGEST_ENUMERATED:
        return "depends on the values"
    return _between(budget for *_, budget in policy.constraints())


def _by_steps(policy: MetricPolicy) -> str:
    # Numbers rounded at random lose the mean of their two neighbours.
    epsilon = math.expm1(policy.epsilon) if policy.rounded else policy.epsilon
    widths = set(policy.widths or ())
    return f"{epsilon:g} {f'for each {widths.pop():g}' if len(widths) == 1 else 'a step'}"


def _between(budgets: Iterable[float | Fraction]) -> str:
    found = sorted({float(budget) for budget in budgets})
    if not found:
        return "none"
    return f"{found[0]:g}" if len(found) == 1 else f"{found[0]:g} to {found[-1]:g}"
