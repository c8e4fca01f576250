"""`ldpstream keys`, `spec` and `status`: what a configuration and a running worker say."""

import json

import click

from ldpstream.agents.terminal.common import config_option, load_collection
from ldpstream.agents.terminal.tokens import knock, token_options


@click.command()
@click.option("--schema", is_flag=True, help="Print a JSON Schema of the file instead.")
@click.option("--documents", is_flag=True, help="Print a JSON Schema of estimate documents.")
def keys(*, schema: bool, documents: bool) -> None:
    """Explain every key of a configuration: type, limits, default and meaning."""
    if documents:
        from ldpstream.agents.document.model import document_schema

        click.echo(json.dumps(document_schema(), indent=2))
        return
    from ldpstream.agents.config.reference import json_schema, page

    click.echo(json.dumps(json_schema(), indent=2) if schema else page(), nl=schema)


@click.command()
@config_option
@click.argument("name")
def spec(config_file: str, name: str) -> None:
    """Print the device document of a collection: its canonical spec, fingerprint and tables.

    A running worker answers the same at /api/collections/NAME/spec.
    """
    _, collection = load_collection(config_file, name)
    click.echo(json.dumps(collection.spec.device_document(), separators=(",", ":")))


@click.command()
@click.option("--json", "as_json", is_flag=True, help='Print {"collections": [status, ...]}.')
@token_options
@click.argument("url")
def status(url: str, *, as_json: bool, token: str | None) -> None:
    """Show collections, partitions, lag and watermarks of the worker at URL.

    Counters, next offsets and watermarks are those of all workers; `owned` and `end` are what the
    worker that answers knows. The specs that a collection accepts besides its own follow it.
    """
    knock(url)
    from ldpstream.agents.terminal.status import ask_status, show
    from ldpstream.agents.terminal.tables import table_console

    found = ask_status(url, token)
    if as_json:
        joined = ", ".join(answer.model_dump_json() for answer in found)
        click.echo(f'{{"collections": [{joined}]}}')
        return
    console = table_console()
    for answer in found:
        show(answer, console)
