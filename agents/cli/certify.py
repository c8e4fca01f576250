"""`ldpstream certify`: what the mechanisms leak, proved in exact arithmetic."""

import json

import click

from ldpstream.agents.config import CollectionConfig, SpreadConfig
from ldpstream.agents.privacy.central import DELTA, central
from ldpstream.agents.terminal.common import config_option, load, load_collection, warn_of_nominal
from ldpstream.agents.terminal.errors import FAILED
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.wire.spec import CollectionSpec


@click.command()
@config_option
@click.argument("name", required=False)
@click.option(
    "--published",
    type=click.IntRange(min=1),
    metavar="N",
    help="Say what a report loses in documents that tell of N together, or more.",
)
@click.option(
    "--delta",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=DELTA,
    show_default=True,
    help="With --published: but for this probability.",
)
@click.pass_context
def certify(
    context: click.Context,
    config_file: str,
    *,
    name: str | None,
    published: int | None,
    delta: float,
) -> None:
    """Print each collection's certificate (or that of NAME) as JSON; exit 1 if one fails.

    The earlier specs that a collection accepts follow it, each under its own fingerprint.
    """
    config = load(config_file) if name is None else load_collection(config_file, name)[0]
    collections = list(config.collections.values()) if name is None else [config.collections[name]]
    warn_of_nominal(collections)
    # What is still taken from devices has to hold, too.
    certified = [one for collection in collections for one in (collection, *collection.accept)]
    certificates = [_certificate(one) for one in certified]
    if published is not None:
        for one, certificate in zip(certified, certificates, strict=True):
            certificate["published"] = _published(one, published, delta)
    passed = all(certificate["pass"] for certificate in certificates)
    document = {"pass": passed, "collections": certificates}
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    if not passed:
        context.exit(FAILED)


def _certificate(collection: CollectionConfig) -> dict[str, Json]:
    spec = collection.spec
    spread = {} if collection.spread is None else {"spread": _spread(collection.spread, spec)}
    return {
        "collection": collection.name,
        "fingerprint": spec.fingerprint.hex(),
        **spec.mechanism.certify().to_json(),
        "disclosed": list(spec.disclosed()),
        **spread,
    }


def _published(collection: CollectionConfig, reports: int, delta: float) -> Json:
    """Return what one of so many reports loses in documents, or why nothing is said of that."""
    least = collection.smallest_part
    if reports <= least:
        found = central(collection.spec.mechanism, reports=reports, delta=delta)
        if found is not None:
            return found.to_json()
        why = "no bound is known of a channel that is too large to enumerate"
    elif collection.publish_every_ms is not None:
        why = 'open windows are told of too: expected publish.every = "off"'
    else:
        key = "minimum" if least == collection.minimum else "minimum_block"
        why = f"expected N of at most {least:,}, by {key}"
    return {"reports": reports, "delta": delta, "losses": None, "why": why}


def _spread(spread: SpreadConfig, spec: CollectionSpec) -> Json:
    """Return what a device loses whose ledger spreads its budget so, besides one report's loss.

    Losses of independent reports add up, and the windows are drawn without looking at a value, so
    that this is all that period tells of its values (docs/theory.md, section 11).
    """
    period = spread.budget(spec)
    # Two sets that were drawn for two periods may both lie in a stretch across them.
    most = spread.reports if spread.rolling else min(2 * spread.reports, spread.windows)
    stretch = most * period / spread.reports
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
