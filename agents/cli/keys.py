"""`ldpstream keys`: every key of a configuration, explained."""

import json

import click


@click.command()
@click.option("--schema", is_flag=True, help="Print a JSON Schema of the file instead.")
def keys(*, schema: bool) -> None:
    """Explain every key of a configuration: type, limits, default and meaning."""
    from ldpstream.agents.config.reference import json_schema, page

    click.echo(json.dumps(json_schema(), indent=2) if schema else page(), nl=schema)
