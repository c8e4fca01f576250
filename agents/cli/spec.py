"""`ldpstream spec`: print what a device in any language needs, as one JSON document."""

import json

import click

from ldpstream.agents.cli.terminal.common import config_option, load_collection


@click.command()
@config_option
@click.argument("name")
def spec(config_file: str, name: str) -> None:
    """Print the device document of a collection: its canonical spec, fingerprint and tables.

    A running worker serves the same at /api/collections/NAME/spec.
    """
    _, collection = load_collection(config_file, name)
    click.echo(json.dumps(collection.spec.device_document(), separators=(",", ":")))
