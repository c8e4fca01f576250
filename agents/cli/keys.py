"""`ldpstream keys`: explain every key of a configuration."""

import json

import click


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
