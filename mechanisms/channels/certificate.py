"""Certificates: a proof that the realised channel keeps its policy, as a document.

The realised loss is an exact rational ratio; its logarithm is given as floats rounded outward.
Whether the ratio is within `e^epsilon` is decided between rationals (`dyadic.exp_bounds`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.channel import Channel, Violation
from ldpstream.mechanisms.exact.dyadic import exp_floor, float_above, log_bounds
from ldpstream.mechanisms.policies.policy import Policy

ENUMERATION_LIMIT = 64
"""Up to this many values, a channel is proved by enumerating every pair and every output."""


@dataclass(frozen=True)
class BudgetLoss:
    """The largest ratio over all pairs with one budget: `low <= log(ratio) <= high`.

    If the ratio is within `e^budget`, `high` is at most the least float not below the budget.
    """

    budget: Fraction
    ratio: Fraction
    low: float
    high: float

    def to_json(self) -> dict[str, Json]:
        """Return the budget rounded up, the exact ratio as a fraction, and its logarithm's bounds.

        The nearest float to a budget may lie below the upper bound of a loss that keeps it.
        """
        return {
            "budget": float_above(self.budget),
            "ratio": str(self.ratio),
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True)
class Certificate:
    """What a mechanism promises, what it realises, and what leaves the device in the clear.

    `losses` holds one entry for each different finite budget of `Policy.constraints`. A proof by
    structure under an L^p metric other than L1 lists only the budgets of a step in one dimension
    and of a step in all dimensions; the others follow.
    `unprotected_pairs` counts ordered pairs of values that the policy does not protect,
    `unprotected` says which. `proof` is "enumeration" (every constraint at every output) or
    "structure" (the few different ratios that the mechanism's construction can produce, and the
    tables that construct it).
    """

    mechanism: str
    policy: Mapping[str, Json]
    losses: tuple[BudgetLoss, ...]
    disclosed: tuple[str, ...]
    unprotected_pairs: int
    unprotected: str | None
    passed: bool
    proof: str
    violation: str | None = None
    attributes: Mapping[str, "Certificate"] | None = None
    """For records, the certificate of each attribute. Any two records lose at most the largest."""
    draw: "Certificate | None" = None
    """With `hold`, that of the permanent draw of an epoch: if it fails, so does this one."""

    def with_draw(self, draw: "Certificate") -> "Certificate":
        """Return the certificate of reports that follow from a permanent draw."""
        violation = self.violation
        if violation is None and not draw.passed:
            violation = f"the permanent draw: {draw.violation}"
        passed = self.passed and draw.passed
        return replace(self, draw=draw, passed=passed, violation=violation)

    @property
    def loss_low(self) -> float | None:
        """Lower bound on the largest listed loss of a protected pair; None if it is unbounded."""
        return max((loss.low for loss in self.losses), default=None)

    @property
    def loss_high(self) -> float | None:
        """Upper bound on the largest listed loss of a protected pair; None if it is unbounded."""
        return max((loss.high for loss in self.losses), default=None)

    def to_json(self) -> dict[str, Json]:
        """Return the certificate as a JSON document."""
        attributes: dict[str, Json] = {
            name: proof.to_json() for name, proof in (self.attributes or {}).items()
        }
        return {
            "mechanism": self.mechanism,
            "policy": dict(self.policy),
            "loss": {"low": self.loss_low, "high": self.loss_high},
            "losses": [loss.to_json() for loss in self.losses],
            "disclosed": list(self.disclosed),
            "unprotected_pairs": self.unprotected_pairs,
            "unprotected": self.unprotected,
            "proof": self.proof,
            "violation": self.violation,
            "pass": self.passed,
            **({"attributes": attributes} if attributes else {}),
        }


def certify_by_enumeration(
    mechanism: str, policy: Policy, channel: Channel, disclosed: list[str]
) -> Certificate:
    """Return a certificate that proves or refutes the policy at every pair and every output."""
    violation = channel.satisfies(policy)
    ratios = channel.worst_ratios(policy)
    bounded = {b: r for b, r in ratios.items() if r is not None}
    losses = () if len(bounded) < len(ratios) else _losses(bounded)
    return _certificate(mechanism, policy, losses, disclosed, violation, "enumeration")


def certify_by_structure(
    mechanism: str,
    policy: Policy,
    ratios: Mapping[Fraction, Fraction],
    disclosed: list[str],
    *,
    violation: str | None = None,
    proof: str = "structure",
) -> Certificate:
    """Return a certificate from the largest ratio that the construction gives for each budget.

    The caller has checked that its tables are what the construction assumes. If it knows where a
    ratio is too large, it says so in `violation`.
    """
    broken = [b for b, ratio in ratios.items() if ratio > exp_floor(b)]
    if broken and violation is None:
        violation = f"a ratio above e^{float(broken[0])}"
    return _certificate(mechanism, policy, _losses(ratios), disclosed, violation, proof)


def _losses(ratios: Mapping[Fraction, Fraction]) -> tuple[BudgetLoss, ...]:
    return tuple(BudgetLoss(b, ratios[b], *log_bounds(ratios[b])) for b in sorted(ratios))


def _certificate(
    mechanism: str,
    policy: Policy,
    losses: tuple[BudgetLoss, ...],
    disclosed: list[str],
    violation: Violation | str | None,
    proof: str,
) -> Certificate:
    return Certificate(
        mechanism=mechanism,
        policy=policy.describe(),
        losses=losses,
        disclosed=tuple(disclosed),
        unprotected_pairs=policy.unprotected_pairs,
        unprotected=policy.unprotected,
        passed=violation is None,
        proof=proof,
        violation=None if violation is None else str(violation),
    )
