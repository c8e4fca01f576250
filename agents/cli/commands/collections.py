"""Declare the commands that change a collection at the broker.

`--help` needs nothing else, so each imports its work once it runs.
"""

from pathlib import Path
from typing import Any

import click

from ldpstream.agents.cli.terminal.options import (
    LARGEST_BATCH,
    TIME,
    config_option,
    form_options,
    ledger_options,
    number_option,
    reading_options,
)
from ldpstream.agents.cli.terminal.parameters import Real, Whole


@click.command()
@config_option
@number_option("--batch", LARGEST_BATCH, default=1_000, text="Reports per message.")
@click.option("--reports", is_flag=True, help="Lines are reports that privatize wrote.")
@reading_options
@ledger_options
@click.argument("name")
@click.argument("values", type=click.File("rb"), default="-")
def send(**options: Any) -> None:
    """Privatize value lines (a file, or stdin) and produce the reports.

    With --reports, lines are what privatize wrote, with their times if they have any. Times must
    lie within the last year and at most a day ahead, unless --replay is given. With --ledger, a
    window's report is sent once, and repeated only where it may not have arrived; without, an input
    that is sent twice counts twice. Prints at the end how many reports in how many messages the
    broker has acknowledged.
    """
    from ldpstream.agents.cli.send import send_values

    send_values(**options)


@click.command()
@config_option
@click.option(
    "--until",
    type=TIME,
    required=True,
    metavar="TIME",
    help="The end of the last pane to close: RFC 3339, or epoch milliseconds.",
)
@click.option("--yes", is_flag=True, help="Do not ask, whatever expires.")
@click.argument("name")
def close(**options: Any) -> None:
    """Close all panes up to TIME.

    It takes effect in each partition once everything produced until now has been read; reports for
    those panes are late from then on. The collection's clock advances to TIME, and windows that
    ended more than the retention before it expire, so choose a TIME in the future only for
    collections that get no more reports. Asks first where TIME is further ahead than the retention.
    """
    from ldpstream.agents.cli.close import close_collection

    close_collection(**options)


@click.command()
@config_option
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def backup(**options: Any) -> None:
    """Store the state of collection NAME in FILE, while workers count or after they have stopped.

    The state is all that was counted, of each spec, and up to where: open and closed windows,
    finals, and tokens of `one_report`. FILE has exact counts, as the changelog has them, whatever
    `minimum` is. `ldpstream reset NAME --restore FILE` continues from it.
    """
    from ldpstream.agents.cli.backup import back_up

    back_up(**options)


@click.command()
@config_option
@click.option(
    "--restore",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Continue the state that `ldpstream backup` stored in FILE.",
)
@click.option("--erase", is_flag=True, help="Delete all topics of the collection.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.argument("name")
def reset(**options: Any) -> None:
    """Delete the state of a collection; the next worker counts its topic from the beginning.

    Stop the workers that count it first: of one that was killed, the end of its session is awaited.
    All windows, counters and orders to close are deleted. Published estimates and copies of late
    and rejected reports stay in their topics.

    With --restore the state of a back-up takes its place, and the next worker counts what it does
    not contain: the rest of the same topic or, in another cluster, all of a new one.

    With --erase nothing of the collection stays at the broker. Stop the devices first.
    """
    from ldpstream.agents.cli.reset import reset_collection

    reset_collection(**options)


@click.command()
@config_option
@click.option("--url", metavar="URL", help="The worker to ask; by default that at worker.http.")
@click.option(
    "--start",
    type=TIME,
    metavar="TIME",
    help="Start or resume the run that contains TIME; by default the newest run, or one from now.",
)
@form_options
@click.argument("name")
def discover(**options: Any) -> None:
    """Find the words that devices of collection NAME have, round by round, and print them.

    Publishes each round's question once the window of the round before is final; a device takes
    part in one round of a run. Run the command again to resume an interrupted run, or to print the
    words of a finished one. LDPSTREAM_TOKEN holds the worker's token, if it wants one.
    """
    from ldpstream.agents.cli.discover import discover_words

    discover_words(**options)


@click.command()
@config_option
@number_option("--rate", 1_000_000, default=1_000, text="Reports per second.")
@number_option("--batch", LARGEST_BATCH, default=100, text="Most reports per message.")
@click.option(
    "--seconds",
    type=Real(min=0, min_open=True),
    metavar="N",
    help="End after this many seconds; otherwise run until Ctrl-C or SIGTERM.",
)
@click.option(
    "--seed", type=Whole(0), default=1, show_default=True, metavar="N", help="Seed of the values."
)
@click.argument("name")
def simulate(**options: Any) -> None:
    """Send privatized reports of made-up values to a collection, at a steady rate.

    The seed determines the values: a crowd that wanders over the domain within ten minutes. They
    are randomised with the operating system's entropy, as on real devices. Do not use it on a
    collection that real devices report to: nobody can separate the two afterwards.
    """
    from ldpstream.agents.cli.simulate import simulate_devices

    simulate_devices(**options)
