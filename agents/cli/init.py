"""`ldpstream init`: a commented configuration to start from."""

from pathlib import Path

import click

from ldpstream.agents.cli.template import EMBEDDED, TEMPLATE
from ldpstream.agents.terminal.errors import Refused


@click.command()
@click.argument("file", default="ldpstream.toml", type=click.Path(path_type=Path))
@click.option("--embedded", is_flag=True, help="For `ldpstream devbroker` instead of Apache Kafka.")
def init(file: Path, *, embedded: bool) -> None:
    """Write a commented configuration to FILE (ldpstream.toml unless given)."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(EMBEDDED if embedded else TEMPLATE)
    except FileExistsError:
        raise Refused(f"{file}: expected a file that is not there yet") from None
    except OSError as error:
        raise Refused(f"{file}: cannot write it: {error.strerror}") from error
    click.echo(f"wrote {file}; next: ldpstream check -c {file}", err=True)
