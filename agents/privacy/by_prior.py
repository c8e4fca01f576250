"""Localized information privacy: what a report adds to prior knowledge."""

from fractions import Fraction

from ldpstream.agents.privacy.factors import factor_text
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.policies.lip_policy import LipPolicy
from ldpstream.mechanisms.policies.prior import PriorPolicy


def say_lip(policy: LipPolicy, domain: Domain) -> list[str]:
    """Say how far a report moves the odds for those who know the prior, and the implied LDP."""
    del domain
    epsilons = sorted({level.epsilon for level in policy.levels})
    factors = [factor_text(epsilon) for epsilon in epsilons]
    implied = max(entry for *_, entry in policy.constraints())
    said = [
        _for_priors(
            f"whoever knows the prior of a device that reported with factor {', '.join(factors)}"
            if len(factors) > 1
            else "whoever knows the prior of a device",
            "that factor" if len(factors) > 1 else f"a factor {factors[0]}",
        ),
        (
            f"Whatever the priors are, no report is more than {factor_text(implied)} times "
            "likelier for one value than for the other."
        ),
    ]
    if len(policy.levels) > 1:
        said.append(
            f"The level of prior and budget is not hidden: a report tells which of "
            f"{len(policy.levels):,} levels it is from."
        )
    return said


def say_prior(policy: PriorPolicy, domain: Domain) -> list[str]:
    """Say the same for any number of values with one prior."""
    del domain
    implied: Fraction = 2 * policy.budget
    return [
        _for_priors("whoever knows the prior", f"a factor {factor_text(policy.budget)}"),
        (
            f"Whatever the prior is, no report is more than {factor_text(implied)} times likelier "
            "for one value than for another."
        ),
    ]


def _for_priors(who: str, factor: str) -> str:
    return (
        f"To {who}, a report changes the probability of each value by at most {factor}, up or down."
    )
