"""What a report loses against those who see only published documents, where that is less.

Documents publish sums of at least a minimum of reports, so each hides among the others
(docs/theory.md, section 10).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ldpstream.agents.config.privacy.factors import factor_text, round_up
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.amplified import Amplified, amplified
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.interface.mechanism import Mechanism

DELTA: Final = 1e-8
TRUST: Final = (
    "That holds only against those who see nothing but published documents. Whoever reads the "
    "topic, its copies or the changelog, or runs broker, gateway or workers, sees single reports, "
    "and learns what they tell. Forged reports, and those of devices that the reader knows, hide "
    "nobody: only the others count."
)


@dataclass(frozen=True)
class Central:
    """What one of at least `reports` reports loses, by budget; at least one entry."""

    reports: int
    delta: float
    losses: tuple[Amplified, ...]

    @property
    def epsilon(self) -> float:
        """The largest loss of any two values that the policy protects from each other."""
        return max(loss.epsilon for loss in self.losses)

    def to_json(self) -> Json:
        """Return the losses by budget, and against whom they hold."""
        losses: list[Json] = [
            {"budget": float_above(loss.budget), "epsilon": loss.epsilon, "bound": loss.bound}
            for loss in self.losses
        ]
        return {"reports": self.reports, "delta": self.delta, "losses": losses, "trust": TRUST}

    def sentence(self) -> str:
        """Return the loss in words."""
        budget = max(loss.budget for loss in self.losses)
        exponent = Fraction(self.epsilon)
        return (
            f"Published documents are about {self.reports:,} or more reports together, so they "
            "tell less about each: two values that a report hides up to a factor of "
            f"{factor_text(budget)} are hidden up to a factor of {factor_text(exponent)} "
            f"(epsilon {round_up(exponent, 4)}), except with probability {self.delta:g}. {TRUST}"
        )


def central(mechanism: Mechanism, *, reports: int, delta: float = DELTA) -> Central | None:
    """Return what one of this many reports, all of one disclosed block, loses in their sum.

    None where no bound is known: for most families, channels with more than 64 values.
    """
    losses = tuple(
        amplified(blankets, budget=budget, reports=reports, delta=delta)
        for budget, blankets in sorted(mechanism.blankets().items())
    )
    return Central(reports, delta, losses) if losses else None
