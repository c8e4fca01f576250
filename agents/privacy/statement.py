"""The privacy statement of a collection: its policy in plain sentences."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ldpstream.agents.privacy import by_distance, by_prior, by_value
from ldpstream.agents.privacy.epsilon import epsilon_text
from ldpstream.agents.privacy.factors import factor_text, round_up
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.domains.words import Words
from ldpstream.mechanisms.policies.attributes import AttributesPolicy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.lip_policy import LipPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from ldpstream.mechanisms.policies.public_weights import PublicWeightPolicy
from ldpstream.mechanisms.policies.spending import largest_loss
from ldpstream.mechanisms.wire.hold import Hold
from ldpstream.mechanisms.wire.spec import CollectionSpec

_REPEATED: Final = (
    "This holds for each report by itself: factors of several reports of one device multiply."
)
_DRAWN_ONCE: Final = "This holds for each report by itself."
_LARGEST_ENUMERATED: Final = 256
_YEAR_MS: Final = 365 * 86_400_000


@dataclass(frozen=True)
class PrivacyStatement:
    """What is promised, what is not, and what leaves in the clear, as plain sentences."""

    epsilon: str
    protected: tuple[str, ...]
    unprotected: str | None
    disclosed: tuple[str, ...]


def privacy_statement(spec: CollectionSpec) -> PrivacyStatement:
    """Return what the policy of a collection means; fast for every policy."""
    policy = spec.mechanism.policy
    unprotected = policy.unprotected
    if isinstance(policy, AttributesPolicy):
        # Which attribute is drawn says nothing about a record.
        said = zip(policy.names, policy.parts, strict=True)
        own = [f"{name}: {part.unprotected}" for name, part in said if part.unprotected]
        unprotected = "; ".join(own) or None
    return PrivacyStatement(
        epsilon=epsilon_text(policy),
        protected=(
            *_sentences(policy, spec.domain),
            _REPEATED if spec.hold is None else _DRAWN_ONCE,
        ),
        unprotected=unprotected,
        disclosed=tuple(spec.disclosed()),
    )


def minimum_sentences(
    minimum: int, minimum_block: int | None, *, attributes: bool = False
) -> tuple[str, ...]:
    """Return what `minimum` promises about a collection's answers; nothing up to 1.

    `minimum_block` is None where it does not apply.
    """
    if minimum <= 1:
        return ()
    promise = f"No combination of answers is about fewer than {minimum:,} reports."
    if attributes:
        return (f"{promise} Those are about all attributes together: about one there are fewer.",)
    if minimum_block is not None and minimum_block > 1:
        return (
            (
                f"{promise} Nor is any about fewer than {minimum_block:,} reports in a disclosed "
                "block: smaller blocks are merged. Documents say which."
            ),
        )
    off = "" if minimum_block is None else " minimum_block, which would merge small blocks, is off."
    return (
        (
            f"{promise} That holds for panes of time; among that many, a single report may still "
            f"be the only one with what it discloses.{off}"
        ),
    )


def spread_sentences(
    *, reports: int, windows: int, horizon_ms: int, rolling: bool, loss: Fraction
) -> tuple[str, ...]:
    """Return what devices lose over time that take part in some windows of each horizon.

    `loss` is that of one report. A year may touch one period more than it contains, unless the
    windows are the same in every period.
    """
    periods = -(-_YEAR_MS // horizon_ms)
    yearly = min((periods + (not rolling)) * reports, -(-_YEAR_MS * windows // horizon_ms))
    period, year = reports * loss, yearly * loss
    each = format_duration(horizon_ms)
    among = f"{reports:,} of the {windows:,} windows" if windows > 1 else "the one window"
    return (
        (
            f"A device whose ledger spreads its budget reports in {among} of each {each}, drawn "
            "from its secret, whatever its values are. Against whoever reads the topic "
            f"and knows which reports are its own, those of one {each} lose at most "
            f"{round_up(period, 2)} together (a factor of {factor_text(period)}), and those of a "
            f"year {round_up(year, 2)}."
        ),
    )


def hold_sentences(spec: CollectionSpec, hold: Hold, window_ms: int) -> tuple[str, ...]:
    """Return what devices lose over time whose reports follow from one draw per epoch."""
    loss = largest_loss(spec.charged)
    each = format_duration(hold.windows * window_ms)
    epochs = hold.epochs(-(-_YEAR_MS // window_ms))
    sent = "sends it again" if hold.chain is None else "sends reports drawn from it alone"
    return (
        (
            f"A device's ledger draws one report in {hold.windows:,} windows ({each}), of its "
            f"value in the first of them, and {sent} in the others: later values are not reported. "
            "Against whoever reads the topic and knows which reports are its own, all of one "
            f"{each} lose at most {round_up(loss, 2)} together (a factor of {factor_text(loss)}), "
            f"and those of a year {round_up(epochs * loss, 2)}, from at most {epochs:,} draws."
        ),
    )


def words_sentence(spec: CollectionSpec, words: Words) -> str:
    """Return what devices lose in total if unknown words are found in rounds."""
    loss = largest_loss(spec.charged)
    return (
        f"A device's ledger takes part in one of the {words.rounds:,} rounds of a run, drawn from "
        "its secret, whatever its word is. Whatever that round asks about, all that the "
        f"device sends in a run is one report, which loses at most {round_up(loss, 2)} (a factor "
        f"of {factor_text(loss)}); with a budget of as much it never sends another."
    )


def _sentences(policy: Policy, domain: Domain) -> list[str]:
    """Return what a policy means; for other kinds of policies, from its pairs."""
    if isinstance(policy, PublicWeightPolicy):
        return [*_sentences(policy.values, domain.estimated), *_OF_PUBLIC_WEIGHTS]
    if isinstance(policy, AttributesPolicy) and isinstance(domain, Attributes):
        each = zip(policy.names, policy.parts, domain.domains, strict=True)
        own = [f"{name}: {one}" for name, part, of in each for one in _sentences(part, of)]
        return [_OF_RECORDS.format(len(policy.names)), *own]
    for kind, say in _KINDS:
        if isinstance(policy, kind):
            return say(policy, domain)
    return _by_pairs(policy)


_OF_RECORDS: Final = (
    "A report is about one of {} attributes, drawn whatever the values are. However many of them "
    "two records differ in, it distinguishes them no better than the one that is hidden least:"
)
_OF_PUBLIC_WEIGHTS: Final = (
    (
        "Weights are not hidden: a report holds its weight as it is, and the above is about values "
        "with the same weight."
    ),
)
_KINDS: Final[tuple[tuple[type[Policy], Callable[[Any, Domain], list[str]]], ...]] = (
    (BinaryPolicy, by_value.say_binary),
    (BlockPolicy, by_value.say_blocks),
    (HighLowPolicy, by_value.say_high_low),
    (MatrixPolicy, by_value.say_matrix),
    (MetricPolicy, by_distance.say_metric),
    (GraphPolicy, by_distance.say_graph),
    (LipPolicy, by_prior.say_lip),
    (PriorPolicy, by_prior.say_prior),
)


def _by_pairs(policy: Policy) -> list[str]:
    if policy.size > _LARGEST_ENUMERATED:
        return ["How well two values are hidden from each other depends on the two: see certify."]
    largest: Fraction = max((budget for *_, budget in policy.constraints()), default=Fraction(0))
    return [
        (
            "How well two values are hidden from each other depends on the two: a report is at "
            f"most {factor_text(largest)} times likelier for one of a protected pair than for "
            "the other."
        )
    ]
