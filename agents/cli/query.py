"""`ldpstream query`: print windows of a running worker, as tables, CSV or JSON."""

from typing import Any

import click

from ldpstream.agents.cli.terminal.client import check_reachable
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.options import (
    Form,
    form_options,
    query_options,
    query_parameters,
)
from ldpstream.agents.cli.terminal.parameters import Whole


@click.command()
@click.option("--last", type=Whole(1), metavar="N", help="The N newest windows.")
@click.option("--from", "start", metavar="TIME", help="Windows that start at TIME or later.")
@click.option("--to", "end", metavar="TIME", help="Windows that end at TIME or earlier.")
@click.option("--all", "every", is_flag=True, help="All windows that the worker keeps.")
@click.option("--start", "first", metavar="TIME", help="Add up all panes from TIME to --end.")
@click.option("--end", "last_end", metavar="TIME", help="End of the panes to add up, exclusive.")
@click.option(
    "--compare",
    metavar="SPAN",
    help='What changed since another span: "before", how much earlier (1d), or START/END.',
)
@click.option(
    "--fingerprint", metavar="HEX", help="Ask about an earlier spec that is still accepted."
)
@form_options
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
    first: str | None,
    last_end: str | None,
    compare: str | None,
    fingerprint: str | None,
    form: Form,
    **options: Any,
) -> None:
    """Print estimates of windows of collection NAME, from the worker at URL.

    LDPSTREAM_TOKEN holds the worker's token, if it wants one.

    Prints the newest window unless options choose others; oldest first. Open windows have anytime
    bounds, which hold however often somebody looks, unless --method says otherwise.

    With --compare, prints what changed in the population between two spans; all bounds of one
    answer hold at once.
    """
    if every and last is not None:
        raise Refused("--last: expected --last or --all, not both")
    spanned = start is not None or end is not None
    span = None if first is None or last_end is None else (first, last_end)
    if (first is None) != (last_end is None):
        raise Refused("--start, --end: expected both, or neither")
    if span is not None and (spanned or every or last is not None):
        raise Refused("--start: expected no option that chooses windows, only --end with it")
    if compare is not None and (spanned or every or last is not None):
        raise Refused("--compare: expected --start and --end to choose the span")
    limit = None if every or (last is None and spanned) else last or 1
    check_reachable(url)
    import asyncio  # once a worker is to be asked

    if compare is not None:
        from ldpstream.agents.cli.terminal.changes import print_change

        parameters = query_parameters(options)
        parameters |= {} if fingerprint is None else {"fingerprint": [fingerprint]}
        asyncio.run(
            print_change(url, name, span=span, compared=compare, form=form, options=parameters)
        )
        return
    from ldpstream.agents.cli.terminal.windows import WindowSelection, print_windows

    selection = WindowSelection(
        start=start,
        end=end,
        span=span,
        limit=limit,
        fingerprint=fingerprint,
        form=form,
    )
    asyncio.run(print_windows(url, name, selection, query_parameters(options)))
