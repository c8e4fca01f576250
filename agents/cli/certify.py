"""`ldpstream certify`: what the mechanisms leak, proved in exact arithmetic."""

import json

import click

from ldpstream.agents.config import CollectionConfig, SpreadConfig
from ldpstream.agents.terminal.common import config_option, load, load_collection, warn_of_nominal
from ldpstream.agents.terminal.errors import FAILED
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.wire.spec import CollectionSpec


@click.command()
@config_option
@click.argument("name", required=False)
@click.pass_context
def certify(context: click.Context, config_file: str, name: str | None) -> None:
    """Print each collection's certificate (or that of NAME) as JSON; exit 1 if one fails.

    The earlier specs that a collection accepts follow it, each under its own fingerprint.
    """
    if name is None:
        collections = list(load(config_file).collections.values())
    else:
        collections = [load_collection(config_file, name)[1]]
    warn_of_nominal(collections)
    # What is still taken from devices has to hold, too.
    certificates = [
        _certificate(one) for collection in collections for one in (collection, *collection.accept)
    ]
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
