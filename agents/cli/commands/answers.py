"""Declare the commands that print what a worker has published or answers.

`--help` needs nothing else, so each imports its work once it runs.
"""

from typing import Any

import click

from ldpstream.agents.cli.terminal.options import config_option, form_options
from ldpstream.agents.cli.terminal.parameters import Whole
from ldpstream.agents.cli.terminal.query_options import query_options


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
def query(**options: Any) -> None:
    """Print estimates of windows of collection NAME, from the worker at URL.

    LDPSTREAM_TOKEN holds the worker's token, if it wants one.

    Prints the newest window unless options choose others; oldest first. Open windows have anytime
    bounds, which hold however often somebody looks, unless --method says otherwise.

    With --compare, prints what changed in the population between two spans; all bounds of one
    answer hold at once.
    """
    from ldpstream.agents.cli.query import query_windows

    query_windows(**options)


@click.command()
@config_option
@click.option(
    "--to",
    metavar="FILE.parquet",
    help="Keep one row per entry in a file. Without it, documents are printed, one per line.",
)
@click.option(
    "--size",
    metavar="SIZE",
    help="Windows from before a change of their size, such as 15m, as documents name it; by "
    "default those of the configured size.",
)
@click.argument("name")
def finals(**options: Any) -> None:
    """Store the documents of final windows from the estimates topic of collection NAME.

    Reads all that the topic still holds each time, of one size. Rows of the same windows in the
    file are replaced, so running it again leaves identical rows.
    """
    from ldpstream.agents.cli.finals import print_finals

    print_finals(**options)


@click.command()
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"collections": [status, ...], "missing": [why, ...]}.',
)
@click.argument("url")
def status(**options: Any) -> None:
    """Show collections, partitions, lag and watermarks of the worker at URL.

    LDPSTREAM_TOKEN holds the worker's token, if it wants one.

    Counters, next offsets and watermarks are those of all workers; `owned` and `end` are what this
    worker knows. The earlier specs that a collection accepts follow it. Collections of shards
    without a worker are named on standard error, and the exit code is 1.
    """
    from ldpstream.agents.cli.status import print_status

    print_status(**options)
