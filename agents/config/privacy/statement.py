"""The privacy statement of a collection: its policy in plain sentences.

With a minimum, documents publish sums of at least as many reports, so each hides among the others:
it loses less against those who see only documents (docs/theory.md, section 10).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ldpstream.agents.config.privacy.delta import DELTA
from ldpstream.agents.config.privacy.factors import factor_phrase, factor_text, round_up
from ldpstream.agents.config.privacy.policies import epsilon_text, policy_sentences
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.channels.amplified import Amplified, amplified
from ldpstream.mechanisms.channels.permanent_draw import most_periods
from ldpstream.mechanisms.domains.atoms import Atoms
from ldpstream.mechanisms.domains.words import Words
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.hold import Hold
from ldpstream.mechanisms.wire.spec import CollectionSpec

TRUST: Final = (
    "That holds only against those who see nothing but published documents. Whoever reads the "
    "topic, its copies or the changelog, or runs broker, gateway or workers, sees single reports, "
    "and learns what they tell. Forged reports, and those of devices that the reader knows, hide "
    "nobody: only the others count."
)

YEAR_MS: Final = 365 * 86_400_000
_REPEATED: Final = (
    "This holds for each report by itself: factors of several reports of one device multiply."
)
_MERGED: Final = (
    "Devices merge all values into {:,} sets, and report nothing that tells two values of a set "
    "from each other."
)
_DRAWN_ONCE: Final = "This holds for each report by itself."

Limit: TypeAlias = Literal["spread", "hold", "words"]
"""What keeps a device with a ledger from one charge in every window."""


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
            f"(epsilon {round_up(exponent, 4)}), except with probability {self.delta:g}. That is "
            f"of one report: those of several windows add up. {TRUST}"
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


class LossOverTime(BaseModel):
    """What all reports of a device in some time lose together at most."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    over: str = Field(description="The time in words, such as `a period of 7d`")
    charges: int = Field(description="The number of reports, or with hold of draws, added up")
    loss: str = Field(description="Between the two protected values that are hidden least")
    factor: str = Field(
        description="How much likelier all reports can be for one of the two; `no limit` from a "
        "million on"
    )


class Privacy(BaseModel):
    """What the policy promises in plain words; losses and factors are exact and rounded up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epsilon: str = Field(description="Budget of one report with its unit, such as `0.4 for each 2`")
    protected: list[str] = Field(description="What a report hides, and by what factor")
    unprotected: str | None = Field(description="Pairs that are not protected; null if none")
    disclosed: list[str] = Field(description="What leaves a device in the clear")
    spent: list[LossOverTime] = Field(
        default=[],
        description="What a device with a ledger loses by one report, then by all in longer and "
        "longer times, up to 365 days, which may begin inside a window. Empty where single budgets "
        "are too many to add up",
    )
    limit: Limit | None = Field(
        default=None,
        description="What keeps a device from paying for a report in every window; null: nothing "
        "but its ledger's own budget",
    )


def privacy_statement(spec: CollectionSpec) -> Privacy:
    """Return what the policy of a collection means; fast for every policy."""
    policy = spec.mechanism.policy
    unprotected = policy.unprotected
    if policy.members:
        # Which attribute is drawn says nothing about a record.
        members = policy.members.items()
        exceptions = [
            f"{name}: {member.unprotected}" for name, member in members if member.unprotected
        ]
        unprotected = "; ".join(exceptions) or None
    return Privacy(
        epsilon=epsilon_text(policy),
        protected=[
            *policy_sentences(policy, spec.domain),
            *(_MERGED.format(spec.domain.size) for _ in range(isinstance(spec.domain, Atoms))),
            _REPEATED if spec.hold is None else _DRAWN_ONCE,
        ],
        unprotected=unprotected,
        disclosed=spec.disclosed(),
    )


def minimum_sentence(minimum: int, minimum_block: int | None, *, attributes: bool = False) -> str:
    """Return what a `minimum` above 1 promises about a collection's answers.

    `minimum_block` is None where it does not apply.
    """
    of_each = " about an attribute" if attributes else ""
    promise = f"No combination of answers is about fewer than {minimum:,} reports{of_each}."
    if minimum_block is not None and minimum_block > 1:
        return (
            f"{promise} Nor is any about fewer than {minimum_block:,} reports in a disclosed "
            "block: smaller blocks are merged. Documents say which. Open windows are never shown."
        )
    off = "" if minimum_block is None else " minimum_block, which would merge small blocks, is off."
    return (
        f"{promise} That holds for panes of time; among that many, a single report may still "
        f"be the only one with what it discloses.{off}"
    )


def hold_sentence(spec: CollectionSpec, hold: Hold, window_ms: int) -> str:
    """Return what devices lose over time whose reports follow from one draw per epoch."""
    loss = spec.charged.largest_loss()
    each = format_duration(hold.windows * window_ms)
    windows = most_periods(YEAR_MS, window_ms)
    epochs = hold.epochs(windows)
    sent = "sends it again" if hold.chain is None else "sends reports drawn from it alone"
    return (
        f"A device's ledger draws one report in {hold.windows:,} windows ({each}), of its "
        f"value in the first of them, and {sent} in the others: later values are not reported. "
        "Against whoever reads the topic and knows which reports are its own, all of one "
        f"{each} lose at most {round_up(loss, 2)} together ({factor_phrase(loss)}), "
        f"and those of any 365 days, which touch up to {windows:,} windows, "
        f"{round_up(epochs * loss, 2)}, from at most {epochs:,} draws."
    )


def words_sentence(spec: CollectionSpec, words: Words) -> str:
    """Return what devices lose in total if unknown words are found in rounds."""
    loss = spec.charged.largest_loss()
    return (
        f"A device's ledger takes part in one of the {words.rounds:,} rounds of a run, drawn from "
        "its secret, whatever its word is. Whatever that round asks about, all that the "
        f"device sends in a run is one report, which loses at most {round_up(loss, 2)} "
        f"({factor_phrase(loss)}); with a budget of as much it never sends another."
    )
