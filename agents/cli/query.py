"""`ldpstream query`: the windows of a running worker, as tables, pictures, CSV or JSON."""

from typing import Any

import click

from ldpstream.agents.terminal.errors import Refused
from ldpstream.agents.terminal.options import asked_texts, query_options
from ldpstream.agents.terminal.tokens import knock, token_options


@click.command()
@click.option("--last", type=click.IntRange(1), metavar="N", help="The newest N windows.")
@click.option("--from", "start", metavar="TIME", help="Windows that start at TIME or later.")
@click.option("--to", "end", metavar="TIME", help="Windows that end at TIME or earlier.")
@click.option("--all", "every", is_flag=True, help="All windows that are kept.")
@click.option(
    "--fingerprint", metavar="HEX", help="Of an earlier spec that the collection still accepts."
)
@click.option("--json", "as_json", is_flag=True, help='Print {"windows": [document, ...]}.')
@click.option("--csv", "as_csv", is_flag=True, help="Print one row an entry, as CSV.")
@click.option(
    "--plot", is_flag=True, help="Draw bounds; of several windows the course of every query."
)
@token_options
@query_options
@click.argument("url")
@click.argument("name")
def query(
    url: str,
    name: str,
    *,
    last: int | None,
    start: str | None,
    end: str | None,
    every: bool,
    fingerprint: str | None,
    as_json: bool,
    as_csv: bool,
    plot: bool,
    token: str | None,
    **options: Any,
) -> None:
    """Print estimates of windows of collection NAME, from the worker at URL.

    The newest window is printed unless others are asked for; oldest first.
    """
    if every and last is not None:
        raise Refused("--last: expected --last or --all, not both")
    if as_json + as_csv + plot > 1:
        raise Refused("--json, --csv, --plot: expected one of them at most")
    spanned = start is not None or end is not None
    limit = None if every or (last is None and spanned) else last or 1
    knock(url)
    from ldpstream.agents.terminal.windows import Wanted, print_windows

    wanted = Wanted(
        start=start,
        end=end,
        limit=limit,
        fingerprint=fingerprint,
        json=as_json,
        csv=as_csv,
        plot=plot,
    )
    print_windows(url, name, token, wanted, asked_texts(options))
