"""What a report loses against those who see published documents alone, where that is less.

Documents tell sums of at least this many reports: one of them hides among the others
(docs/theory.md, section 10).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ldpstream.agents.privacy.factors import factor_text, round_up
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.amplified import Amplified, amplified
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.interface.mechanism import Mechanism

DELTA: Final = 1e-8
TRUST: Final = (
    "That is against those alone who see nothing but published documents. Whoever reads the topic, "
    "its copies or the changelog, or runs broker, gateway or workers, sees single reports, and "
    "learns what they tell. Forged reports, and those of devices that the reader knows, hide "
    "nobody: the number is that of the others."
)


@dataclass(frozen=True)
class Central:
    """What one of at least this many `reports` loses, by budget; at least one entry."""

    reports: int
    delta: float
    losses: tuple[Amplified, ...]

    @property
    def epsilon(self) -> float:
        """The largest loss of two values that the policy protects from each other by itself."""
        return max(one.epsilon for one in self.losses)

    def to_json(self) -> Json:
        """Return the losses by budget, and against whom they hold."""
        losses: list[Json] = [
            {"budget": float_above(one.budget), "epsilon": one.epsilon, "bound": one.bound}
            for one in self.losses
        ]
        return {"reports": self.reports, "delta": self.delta, "losses": losses, "trust": TRUST}

    def sentences(self) -> tuple[str, ...]:
        """Return the loss in words, a sentence each."""
        budget = max(one.budget for one in self.losses)
        exponent = Fraction(self.epsilon)
        return (
            (
                f"What is published tells of {self.reports:,} reports together or more, so of one "
                f"of them it tells less: of two values that a report hides up to a factor of "
                f"{factor_text(budget)}, up to a factor of {factor_text(exponent)} (epsilon "
                f"{round_up(exponent, 4)}), but for a probability of {self.delta:g}. {TRUST}"
            ),
        )


def central(mechanism: Mechanism, *, reports: int, delta: float = DELTA) -> Central | None:
    """Return what one of this many reports of one disclosed block loses in their sum.

    None where nothing is known, as of channels of more than 64 values of most families.
    """
    losses = tuple(
        amplified(blankets, budget=budget, reports=reports, delta=delta)
        for budget, blankets in sorted(mechanism.blankets().items())
    )
    return Central(reports, delta, losses) if losses else None
