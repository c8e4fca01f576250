"""A collection's certificate: what its mechanism leaks, and its reports over time."""

from typing import Final

from ldpstream.agents.config.privacy.factors import LARGEST_BUDGET, factor_text, ratio_text
from ldpstream.agents.config.privacy.over_time import SpreadConfig
from ldpstream.agents.config.privacy.statement import words_sentence
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.channels.certificate import Certificate
from ldpstream.mechanisms.domains.words import Words
from ldpstream.mechanisms.exact.dyadic import exp_bounds, float_above
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.wire.hold import Hold
from ldpstream.mechanisms.wire.spec import CollectionSpec

_FACTOR_DIGITS: Final = 6


def certify_collection(
    name: str, spec: CollectionSpec, spread: SpreadConfig | None
) -> dict[str, Json]:
    """Prove the policy of a collection in exact arithmetic, and return the proof as JSON."""
    certified = spec.mechanism.certify()
    certificate = certified.to_json()
    worst = max((loss.ratio for loss in certified.losses), default=None)
    hold: dict[str, Json] = {}
    if spec.hold is not None:
        # If the permanent draw breaks its policy, so does the collection.
        drawn = certified if spec.hold.chain is None else spec.hold.permanent.certify()
        certificate["pass"] = certified.passed and drawn.passed
        hold = {"hold": _hold(spec, spec.hold, drawn)}
    words: dict[str, Json] = {}
    if spec.words is not None:
        words = {"words": _words(spec, spec.words)}
    spreads = {} if spread is None else {"spread": _spread(spread, spec)}
    return {
        "collection": name,
        "fingerprint": spec.fingerprint.hex(),
        "factor": None if worst is None else ratio_text(worst, digits=_FACTOR_DIGITS),
        "largest_factor": _largest_factor(spec.mechanism.policy),
        **certificate,
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
