"""A collection's certificate: what its mechanism leaks, and its reports over time."""

import math
from fractions import Fraction
from typing import Final

import numpy as np

from ldpstream.agents.config.privacy.factors import (
    LARGEST_BUDGET,
    MOST_FACTOR,
    factor_text,
    ratio_text,
    round_up,
)
from ldpstream.agents.config.privacy.over_time import SpreadConfig
from ldpstream.agents.config.privacy.statement import words_sentence
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.channels.certificate import ENUMERATION_LIMIT, Certificate
from ldpstream.mechanisms.channels.information import most_information, mutual_information
from ldpstream.mechanisms.domains.words import Words
from ldpstream.mechanisms.exact.dyadic import exp_bounds, float_above, log_bounds
from ldpstream.mechanisms.policies.policy import HighLowPolicy, Policy
from ldpstream.mechanisms.wire.hold import Hold
from ldpstream.mechanisms.wire.spec import CollectionSpec

_FACTOR_DIGITS: Final = 6
_EXAMPLES: Final = Fraction(1, 2), Fraction(1, 10), Fraction(1, 100)
"""What somebody may believe before a report."""
_MOST_INFORMED: Final = 1 << 18
"""Most entries of a channel whose mutual information is computed if no prior is known."""


def certify_collection(
    name: str, spec: CollectionSpec, spread: SpreadConfig | None
) -> dict[str, Json]:
    """Prove the policy of a collection in exact arithmetic, and return the proof as JSON."""
    certified = spec.certify()
    worst = max((loss.ratio for loss in certified.losses), default=None)
    hold: dict[str, Json] = {}
    if spec.hold is not None and certified.draw is not None:
        hold = {"hold": _hold(spec, spec.hold, certified.draw)}
    words: dict[str, Json] = {}
    if spec.words is not None:
        words = {"words": _words(spec, spec.words)}
    spreads = {} if spread is None else {"spread": _spread(spread, spec)}
    return {
        "collection": name,
        "fingerprint": spec.fingerprint.hex(),
        "factor": None if worst is None else ratio_text(worst, digits=_FACTOR_DIGITS),
        "largest_factor": _largest_factor(spec.mechanism.policy),
        **certified.to_json(),
        "odds": [_odds(spec, *ends) for ends in _extreme_losses(certified, spec.mechanism.policy)],
        **_information(spec),
        "disclosed": list(spec.disclosed()),
        **spreads,
        **hold,
        **words,
    }


def _largest_factor(policy: Policy) -> str | None:
    """Return the factor of the two protected values that the policy hides least, or None.

    That is the same as of `losses`, unless budgets grow with distance: those are listed of
    neighbours. It is not known of a policy that lists too many values.
    """
    try:
        loss = policy.largest_loss()
    except SpecError:
        return None
    if loss > LARGEST_BUDGET:
        return factor_text(loss)
    return ratio_text(exp_bounds(loss)[1], digits=_FACTOR_DIGITS)


def _extreme_losses(certified: Certificate, policy: Policy) -> list[tuple[Fraction, Fraction]]:
    """Return budget and ratio of the least budget and of the largest, once if they are one.

    Where budgets grow with distance, `losses` has neighbours alone: then the two values that are
    hidden least come last, with the ratio that their budget allows.
    """
    ends = [(loss.budget, loss.ratio) for loss in certified.losses]
    ends = ends if len(ends) < 2 else [ends[0], ends[-1]]
    try:
        farthest = policy.largest_loss()
    except SpecError:
        return ends
    by_pairs = policy.by_entries() is policy
    if by_pairs and ends and ends[-1][0] < farthest <= LARGEST_BUDGET:
        ends.append((farthest, exp_bounds(farthest)[1]))
    return ends


def _odds(spec: CollectionSpec, budget: Fraction, ratio: Fraction) -> Json:
    """Return what one report changes of what anybody believed ([CA] Proposition 3).

    "posteriors" are pairs of a probability before and the largest one after the report.
    """
    policy, factor = spec.mechanism.policy, ratio_text(ratio, digits=_FACTOR_DIGITS)
    if policy.by_entries() is policy:
        # The odds p : 1 - p between the two values become at most ratio * p : 1 - p.
        after = [p * ratio / (p * ratio + 1 - p) for p in _EXAMPLES]
        pair = f"a value than for another against which it has a budget of {float_above(budget):g}"
        if isinstance(policy, HighLowPolicy) and len(policy.sensitive) < policy.size:
            pair = "a sensitive value than for any other"
        unlimited = ratio >= MOST_FACTOR
        limit = "A report may be any number of" if unlimited else f"No report is more than {factor}"
        sentence = (
            f"{limit} times likelier for {pair}: whatever was known before, even odds between the "
            f"two become at most {percent_text(after[0])} for the former"
        )
    else:
        after = [min(p * ratio, Fraction(1)) for p in _EXAMPLES]
        sentence = (
            "If the prior is right, one report multiplies or divides the probability of each "
            f"value by at most {factor}: from {percent_text(_EXAMPLES[1])} to at most "
            f"{percent_text(after[1])}"
        )
    return {
        "budget": float_above(budget),
        "factor": factor,
        "posteriors": [
            [float(p), float_above(most)] for p, most in zip(_EXAMPLES, after, strict=True)
        ],
        "said": f"{sentence}.",
    }


def percent_text(share: Fraction) -> str:
    """Return a share in percent with at most two decimals, rounded up."""
    text = round_up(100 * share, 2)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def _information(spec: CollectionSpec) -> dict[str, Json]:
    """Return the mutual information of value and report, if the statistic counts reports.

    It is that of the known prior or, without one, of uniform shares. With a prior it comes with the
    realised loss of localized information privacy, exact for up to 64 values.
    """
    mechanism, policy = spec.mechanism, spec.mechanism.policy
    known = spec.prior.shares or policy.known_shares
    table = mechanism.table
    if table is None or (known is None and table.size > _MOST_INFORMED):
        return {}
    shares = [Fraction(1, len(table))] * len(table) if known is None else list(known)
    nats = mutual_information(table, np.array([float(share) for share in shares]))
    is_prior = policy.by_entries() is not policy
    document: dict[str, Json] = {
        "prior": "uniform" if known is None else [float(share) for share in shares],
        "nats": nats,
        "bits": nats / math.log(2),
    }
    if is_prior or policy.unprotected is None:
        loss = max(policy.least_budgets()) if is_prior else policy.largest_loss()
        document["at_most_nats"] = most_information(float_above(loss))
    if known is not None:
        document["lip"] = _lip_loss(spec, known)
    return {"information": document}


def _lip_loss(spec: CollectionSpec, shares: tuple[Fraction, ...]) -> Json:
    """Return bounds of the exact LIP loss at a prior; None if it is unbounded or not computed."""
    if len(shares) > ENUMERATION_LIMIT:
        return None
    channel = spec.mechanism.channel()
    worst = Fraction(1)
    for output in range(channel.outputs):
        column = [row.get(output, Fraction(0)) for row in channel.rows]
        mean = sum((p * q for p, q in zip(shares, column, strict=True)), Fraction(0))
        if mean and not min(column):
            return None
        if mean:
            worst = max(worst, max(column) / mean, mean / min(column))
    low, high = log_bounds(worst)
    return {"low": low, "high": high}


def _words(spec: CollectionSpec, words: Words) -> Json:
    """Return the loss of a device whose ledger takes part in one round per run."""
    loss = spec.charged.largest_loss()
    run: Json = {"exact": str(loss), "float": float_above(loss)}
    return {"rounds": words.rounds, "loss": {"run": run}, "said": words_sentence(spec, words)}


def _hold(spec: CollectionSpec, hold: Hold, drawn: Certificate) -> Json:
    """Return the draw made once per epoch, and what all reports of an epoch lose together."""
    losses: list[Json] = [loss.to_json() for loss in drawn.losses]
    epoch = spec.charged.largest_loss()
    return {
        "windows": hold.windows,
        "repeated": hold.chain is None,
        "draw": {"policy": dict(drawn.policy), "losses": losses, "pass": drawn.passed},
        "loss": {"epoch": {"exact": str(epoch), "float": float_above(epoch)}},
    }


def _spread(spread: SpreadConfig, spec: CollectionSpec) -> Json:
    """Return what a device loses in a period, and in any stretch as long as one.

    Losses of independent reports add up, and the choice of windows does not depend on values, so
    nothing else is lost.
    """
    period = spread.budget(spec)
    stretch = spread.most(spread.windows) * period / spread.reports
    return {
        "reports": spread.reports,
        "windows": spread.windows,
        "horizon": format_duration(spread.horizon_ms),
        "rolling": spread.rolling,
        "loss": {
            "period": {"exact": str(period), "float": float_above(period)},
            "any_stretch": {"exact": str(stretch), "float": float_above(stretch)},
        },
    }
