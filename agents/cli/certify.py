"""`ldpstream certify`: what the mechanisms leak, proved in exact arithmetic."""

import json

import click

from ldpstream.agents.config import CollectionConfig, SpreadConfig
from ldpstream.agents.privacy import words_sentence
from ldpstream.agents.privacy.central import DELTA, central
from ldpstream.agents.terminal.common import config_option, load, load_collection, warn_of_nominal
from ldpstream.agents.terminal.errors import FAILED
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.channels.certificate import Certificate
from ldpstream.mechanisms.channels.held import epochs_touched
from ldpstream.mechanisms.domains.words import Words
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS
from ldpstream.mechanisms.policies.spending import largest_loss
from ldpstream.mechanisms.wire.hold import Hold
from ldpstream.mechanisms.wire.spec import CollectionSpec


@click.command()
@config_option
@click.argument("name", required=False)
@click.option(
    "--published",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also bound what a report loses in published documents of at least N reports.",
)
@click.option(
    "--delta",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=DELTA,
    show_default=True,
    help="With --published: the probability with which that bound may fail.",
)
@click.option(
    "--windows",
    type=click.IntRange(1, MAX_SPREAD_WINDOWS),
    metavar="T",
    help="Also bound what all reports of a device lose together in any T consecutive windows.",
)
@click.pass_context
def certify(
    context: click.Context,
    config_file: str,
    *,
    name: str | None,
    published: int | None,
    delta: float,
    windows: int | None,
) -> None:
    """Print each collection's certificate (or that of NAME) as JSON; exit 1 if one fails.

    The earlier specs that a collection still accepts follow, each under its own fingerprint.

    With --windows, "charges" is the most reports (with hold: draws) that any T windows cost, and
    "exact" the loss that their budgets add up to. Where held reports are randomised again, the loss
    is less: "low" and "high" bound it, and "step" bounds it for two neighbouring values.
    """
    config = load(config_file) if name is None else load_collection(config_file, name)[0]
    collections = list(config.collections.values()) if name is None else [config.collections[name]]
    warn_of_nominal(collections)
    # Reports under the earlier specs are still accepted, so these must keep their policies, too.
    certified = [one for collection in collections for one in (collection, *collection.accept)]
    certificates = [_certificate(one) for one in certified]
    if published is not None:
        for one, certificate in zip(certified, certificates, strict=True):
            certificate["published"] = _published(one, published, delta)
    if windows is not None:
        for one, certificate in zip(certified, certificates, strict=True):
            certificate["windows"] = _windows(one, windows)
    passed = all(certificate["pass"] for certificate in certificates)
    document = {"pass": passed, "collections": certificates}
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    if not passed:
        context.exit(FAILED)


def _certificate(collection: CollectionConfig) -> dict[str, Json]:
    spec = collection.spec
    own = spec.mechanism.certify()
    certificate = own.to_json()
    hold: dict[str, Json] = {}
    if spec.hold is not None:
        # If the permanent draw breaks its policy, so does the collection.
        drawn = own if spec.hold.chain is None else spec.hold.permanent.certify()
        certificate["pass"] = own.passed and drawn.passed
        hold = {"hold": _hold(spec, spec.hold, drawn)}
    words: dict[str, Json] = {}
    if isinstance(spec.domain, Words):
        words = {"words": _words(spec, spec.domain)}
    spread = {} if collection.spread is None else {"spread": _spread(collection.spread, spec)}
    return {
        "collection": collection.name,
        "fingerprint": spec.fingerprint.hex(),
        **certificate,
        "disclosed": list(spec.disclosed()),
        **spread,
        **hold,
        **words,
    }


def _words(spec: CollectionSpec, words: Words) -> Json:
    """Return the loss of a device whose ledger takes part in one round per run."""
    loss = largest_loss(spec.charged)
    run: Json = {"exact": str(loss), "float": float_above(loss)}
    return {"rounds": words.rounds, "loss": {"run": run}, "said": words_sentence(spec, words)}


def _published(collection: CollectionConfig, reports: int, delta: float) -> Json:
    """Return the central loss of one of this many reports, or why no bound is known."""
    least = collection.smallest_part
    if collection.spec.hold is not None:
        why = "reports of several windows share one draw: it needs a collection without hold"
    elif reports <= least:
        found = central(collection.spec.mechanism, reports=reports, delta=delta)
        if found is not None:
            return found.to_json()
        why = "the channel is too large to enumerate: no bound is known"
        if collection.attributes:
            why = "the number of reports about each attribute is random: no bound is known"
    elif collection.publish_every_ms is not None:
        why = 'open windows are published, too: it needs publish.every = "off"'
    else:
        key = "minimum" if least == collection.minimum else "minimum_block"
        why = f"expected N of at most {least:,}, by {key}"
    return {"reports": reports, "delta": delta, "losses": None, "why": why}


def _hold(spec: CollectionSpec, hold: Hold, drawn: Certificate) -> Json:
    """Return the draw made once per epoch, and what all reports of an epoch lose together."""
    losses: list[Json] = [loss.to_json() for loss in drawn.losses]
    epoch = largest_loss(spec.charged)
    return {
        "windows": hold.windows,
        "repeated": hold.chain is None,
        "draw": {"policy": dict(drawn.policy), "losses": losses, "pass": drawn.passed},
        "loss": {"epoch": {"exact": str(epoch), "float": float_above(epoch)}},
    }


def _windows(collection: CollectionConfig, windows: int) -> Json:
    """Return what the reports of any `windows` consecutive windows lose together.

    "exact" is the sum of the budgets of all reports or epochs. Where held reports are randomised
    again, the realised mechanism loses less: "low" and "high" bound the logarithm of its largest
    likelihood ratio (`l1-geometric`: only "high"). Where budgets grow with distance, "step" bounds
    it for two neighbouring values.
    """
    spec, spread = collection.spec, collection.spread
    charges = windows if spread is None else spread.most(windows)
    if isinstance(spec.domain, Words):
        charges = epochs_touched(windows, spec.domain.rounds)
    if spec.hold is not None:
        charges = spec.hold.epochs(windows)
    loss = charges * largest_loss(spec.charged)
    found: dict[str, Json] = {
        "windows": windows,
        "charges": charges,
        "loss": {"exact": str(loss), "float": float_above(loss)},
    }
    if spec.hold is not None and spec.hold.chain is not None:
        chain, most = spec.hold.chain, float_above(loss)
        bounds = _bounds(spec.hold.loss(windows, steps=chain.steps), chain.exact)
        high = min(bounds["high"], most)
        found["loss"] = {"exact": str(loss), "float": most, **bounds, "high": high}
        if chain.steps > 1:
            found["step"] = {**_bounds(spec.hold.loss(windows), chain.exact)}
    return found


def _bounds(ends: tuple[float, float], exact: bool) -> dict[str, float]:
    low, high = ends
    return {"low": low, "high": high} if exact else {"high": high}


def _spread(spread: SpreadConfig, spec: CollectionSpec) -> Json:
    """Return what a device loses in a period, and in any stretch as long as one.

    Losses of independent reports add up, and the choice of windows does not depend on values, so
    nothing else is lost (docs/theory.md, section 11).
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
