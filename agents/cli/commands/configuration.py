"""Declare the commands about the configuration file.

`--help` needs nothing else, so each imports its work once it runs.
"""

from pathlib import Path
from typing import Any

import click

from ldpstream.agents.cli.terminal.options import config_option, shard_option


@click.command()
@click.argument("file", default="ldpstream.toml", type=click.Path(path_type=Path))
def init(**options: Any) -> None:
    """Write a commented configuration to FILE (ldpstream.toml unless given)."""
    from ldpstream.agents.cli.configuration import write_template

    write_template(**options)


@click.command()
@click.option("--schema", is_flag=True, help="Print a JSON Schema of the file instead.")
@click.option(
    "--documents",
    is_flag=True,
    help="Print a JSON Schema of estimate documents; change documents are among its `$defs`.",
)
def keys(**options: Any) -> None:
    """Explain every key of a configuration: type, limits, default and meaning."""
    from ldpstream.agents.cli.configuration import print_keys

    print_keys(**options)


@click.command()
@config_option
@shard_option
def check(**options: Any) -> None:
    """Check the configuration, the broker, the topics, and the permissions on them.

    Changes nothing. Exit 1 if anything would keep a worker from running. Warns about budgets so
    large that they protect in name only, about intervals with so many bins that their estimates
    are noise, and about workers of another group that count the same topics.
    """
    from ldpstream.agents.cli.configuration import check_configuration

    check_configuration(**options)


@click.command()
@config_option
@click.argument("name")
def spec(**options: Any) -> None:
    """Print the device document of a collection: its canonical spec, fingerprint and tables.

    A running worker serves the same at /api/collections/NAME/spec.
    """
    from ldpstream.agents.cli.configuration import print_spec

    print_spec(**options)
