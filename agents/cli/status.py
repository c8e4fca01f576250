"""`ldpstream status`: show how far a running worker is."""

import json

import click

from ldpstream.agents.cli.terminal.client import check_reachable


def print_status(url: str, *, as_json: bool) -> None:
    """Show how far a worker is, and which shards have none."""
    check_reachable(url)
    from ldpstream.agents.cli.terminal.errors import Failed
    from ldpstream.agents.cli.terminal.status import ask_status, show
    from ldpstream.agents.cli.terminal.tables import table_console

    answers, missing = ask_status(url)
    if as_json:
        joined = ", ".join(answer.model_dump_json() for answer in answers)
        click.echo(f'{{"collections": [{joined}], "missing": {json.dumps(missing)}}}')
    else:
        console = table_console()
        for answer in answers:
            show(answer, console)
    if missing:
        raise Failed("\n".join(missing))
