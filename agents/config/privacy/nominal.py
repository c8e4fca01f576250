"""Budgets so large that the protection is nominal: proved, but worth next to nothing."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from ldpstream.agents.config.privacy.factors import factor_text
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.attributes import AttributesPolicy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.lip import LipPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import (
    BinaryPolicy,
    BlockPolicy,
    HighLowPolicy,
    Policy,
    PublicWeightPolicy,
)
from ldpstream.mechanisms.policies.prior import PriorPolicy

_LARGEST_MEANT: Final = 10
"""With this budget a report may be 22,027 times likelier for one value than for any other."""


def nominal_warning(name: str, policy: Policy) -> str | None:
    """Return a warning about a collection whose least budget is above `_LARGEST_MEANT`, or None.

    The least one counts, since a policy may protect some values only from few others, and a metric
    does not protect distant ones. Budgets that are infinite by design are ignored.
    """
    if isinstance(policy, AttributesPolicy):
        each = zip(policy.names, policy.parts, strict=True)
        warnings = (nominal_warning(f"{name}.domain.attributes.{one}", own) for one, own in each)
        return next((found for found in warnings if found is not None), None)
    budgets = _budgets(policy)
    least = None
    for one in budgets:
        if one <= _LARGEST_MEANT:
            return None
        least = one if least is None else min(least, one)
    if least is None:
        return None
    return (
        f"collection.{name}: warning: its least budget is {float(least):g}, so a report may be "
        f"e^{float(least):g} = {factor_text(least)} times likelier for one value than for another, "
        f"and all but names it; above {_LARGEST_MEANT} (a factor "
        f"{factor_text(Fraction(_LARGEST_MEANT))}) protection is nominal"
    )


def _budgets(policy: Policy) -> Iterator[Fraction]:
    """Yield the least budget of a policy, or several that include it."""
    match policy:
        case PublicWeightPolicy():
            yield from _budgets(policy.values)
        case BinaryPolicy():
            yield from (budget(e) for e in (policy.first, policy.second) if math.isfinite(e))
        case BlockPolicy() | HighLowPolicy() | PriorPolicy():
            yield budget(policy.epsilon)
        case MetricPolicy():
            yield min(map(policy.budget_of, _steps(policy.shape)))
        case LipPolicy():
            yield from (Fraction(level.epsilon) for level in policy.levels)
        case GraphPolicy():
            yield from policy.arcs.values()
        case _:
            yield from (one for *_, one in policy.constraints() if one)


def _steps(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return one step in each dimension of more than one value."""
    return [
        tuple(int(axis == other) for other in range(len(shape)))
        for axis, extent in enumerate(shape)
        if extent > 1
    ]
