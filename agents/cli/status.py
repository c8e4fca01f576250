"""`ldpstream status`: show how far a running worker is."""

import json

import click

from ldpstream.agents.cli.terminal.client import check_reachable


@click.command()
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"collections": [status, ...], "missing": [why, ...]}.',
)
@click.argument("url")
def status(url: str, *, as_json: bool) -> None:
    """Show collections, partitions, lag and watermarks of the worker at URL.

    LDPSTREAM_TOKEN holds the worker's token, if it wants one.

    Counters, next offsets and watermarks are those of all workers; `owned` and `end` are what this
    worker knows. The earlier specs that a collection accepts follow it. Collections of shards
    without a worker are named on standard error, and the exit code is 1.
    """
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
