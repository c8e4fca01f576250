"""Budgets so large that the protection is nominal: proved, but worth next to nothing."""

from fractions import Fraction
from typing import Final

from ldpstream.agents.config.privacy.factors import factor_text
from ldpstream.mechanisms.policies.policy import Policy

_LARGEST_MEANT: Final = 10
"""With this budget a report may be 22,027 times likelier for one value than for any other."""


def nominal_warning(name: str, policy: Policy) -> str | None:
    """Return a warning about a collection whose least budget is above `_LARGEST_MEANT`, or None.

    The least one counts, since a policy may protect some values only from few others, and a metric
    does not protect distant ones. Budgets that are infinite by design are ignored.
    """
    if policy.members:
        each = policy.members.items()
        warnings = (
            nominal_warning(f"{name}.domain.attributes.{attribute}", member)
            for attribute, member in each
        )
        return next((warning for warning in warnings if warning is not None), None)
    least = None
    for attribute in policy.least_budgets():
        if attribute <= _LARGEST_MEANT:
            return None
        least = attribute if least is None else min(least, attribute)
    if least is None:
        return None
    return (
        f"collection.{name}: warning: its least budget is {float(least):g}, so a report may be "
        f"e^{float(least):g} = {factor_text(least)} times likelier for one value than for another, "
        f"and all but names it; above {_LARGEST_MEANT} (a factor "
        f"{factor_text(Fraction(_LARGEST_MEANT))}) protection is nominal"
    )
