"""`ldpstream certify`: what the mechanisms leak, proved in exact arithmetic."""

import json

import click

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.terminal.common import config_option, load, load_collection, warn_of_nominal
from ldpstream.agents.terminal.errors import FAILED
from ldpstream.mechanisms.base.canonical import Json


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
    return {
        "collection": collection.name,
        "fingerprint": spec.fingerprint.hex(),
        **spec.mechanism.certify().to_json(),
        "disclosed": list(spec.disclosed()),
    }
