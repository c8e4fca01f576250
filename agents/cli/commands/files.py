"""Declare the commands that read and write files, and need no broker.

`--help` needs nothing else, so each imports its work once it runs.
"""

from pathlib import Path
from typing import Any, Final, get_args

import click

from ldpstream.agents.cli.terminal.options import (
    config_option,
    form_options,
    ledger_options,
    reading_options,
)
from ldpstream.agents.cli.terminal.parameters import Real, Whole
from ldpstream.agents.cli.terminal.query_options import query_options
from ldpstream.agents.config.privacy.delta import DELTA
from ldpstream.estimators.planning.choices import (
    LIMIT_SECONDS,
    SEARCH_SECONDS,
    SEARCHED_VALUES,
    Objective,
)
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS

_MOST_RESPONDENTS: Final = 10**12


@click.command()
@config_option
@reading_options
@ledger_options
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an Arrow table to this file, in place of lines.",
)
@click.argument("name")
@click.argument("values", type=click.File("rb"), default="-")
def privatize(**options: Any) -> None:
    """Turn value lines (a file, or stdin) into reports, one JSON object per line.

    estimate and send read them, as lines or as the table of --to. A line of values is a label, an
    integer, or one column per dimension ("row,column" on a grid). With --times an RFC 3339 time or
    epoch milliseconds comes first, within the last year and at most a day ahead unless --replay is
    given. Rows of a Parquet or Arrow table are lines, too. Randomness is the operating system's.
    """
    from ldpstream.agents.cli.privatize import privatize_values

    privatize_values(**options)


@click.command()
@config_option
@form_options
@query_options
@click.argument("name")
@click.argument("reports", type=click.File("rb"), default="-")
def estimate(**options: Any) -> None:
    """Estimate from all reports that privatize wrote (a file, or stdin).

    Prints what the collection's `publish` asks for, unless options say otherwise; --json prints the
    estimate document.
    """
    from ldpstream.agents.cli.estimate import estimate_reports

    estimate_reports(**options)


@click.command()
@config_option
@click.argument("name", required=False)
@click.option(
    "--published",
    "published_reports",
    type=Whole(min=1),
    metavar="N",
    help="Also bound what a report loses in published documents, which tell of at least N reports: "
    "N is at most `minimum`, or `minimum_block`.",
)
@click.option(
    "--delta",
    type=Real(0.0, 1.0, min_open=True, max_open=True),
    default=DELTA,
    show_default=True,
    help="With --published: the probability with which that bound may fail.",
)
@click.option(
    "--windows",
    type=Whole(1, MAX_SPREAD_WINDOWS),
    metavar="T",
    help="Also bound what all reports of a device lose together in any T consecutive windows; any "
    "365 days touch up to 366 windows of a day.",
)
@click.option(
    "--year",
    is_flag=True,
    help="Print, in place of JSON, a page to sign for each: what all reports of 365 days tell, "
    "in words.",
)
@click.option(
    "--pair",
    nargs=2,
    metavar="VALUE OTHER",
    help="Also give the errors of tests between two values of NAME, as a line of CSV writes them: "
    "those that the policy leaves possible, and the best ones of the mechanism.",
)
@click.pass_context
def certify(context: click.Context, /, **options: Any) -> None:
    """Print each collection's certificate (or that of NAME) as JSON; exit 1 if one fails.

    The earlier specs that a collection still accepts follow, each under its own fingerprint. "year"
    is what all reports of a device in 365 days tell, in words; --year prints it to be signed.

    With --windows, "charges" is the most reports (with hold: draws) that any T windows cost, and
    "exact" the loss that their budgets add up to. Where held reports are randomised again, the loss
    is less: "low" and "high" bound it, and "step" bounds it for two neighbouring values.

    With --pair, a test takes a report for VALUE's or for OTHER's. "corner" is the smallest pair of
    its errors P_FA (says VALUE, it is OTHER) and P_MD (says OTHER, it is VALUE) that the
    policy allows at once, and "boundary" the errors of the mechanism's best tests.
    """
    from ldpstream.agents.cli.certify import certify_collections

    certify_collections(context, **options)


@click.command()
@config_option
@click.option(
    "--respondents",
    type=Whole(1, _MOST_RESPONDENTS),
    required=True,
    metavar="N",
    help="Expected number of reports.",
)
@click.option(
    "--prior",
    metavar="uniform|zipf|FILE",
    help="Expected shares of the values, by default the collection's prior, or uniform; a file "
    "holds one count per line, in the domain's order.",
)
@click.option(
    "--workload",
    "objective",
    type=click.Choice(get_args(Objective)),
    help="The queries whose error sorts the mechanisms; by default those that are published. mmse: "
    "all values, estimated with the prior.",
)
@click.option(
    "--limit",
    "limit_seconds",
    type=Real(0.0, min_open=True),
    default=LIMIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to compare mechanisms; those not reached in time are named.",
)
@click.option(
    "--search",
    "search_seconds",
    type=Real(0.0),
    metavar="SECONDS",
    help="How long to search for the best channel of any kind; 0: not at all. "
    f"By default {SEARCH_SECONDS:g} up to {SEARCHED_VALUES} values, 0 beyond.",
)
@click.option(
    "--width",
    type=Real(0.0, min_open=True),
    metavar="W",
    help="Say how many respondents bounds of this width (high - low) need: 0.02 is +- 1%.",
)
@click.option(
    "--optimise",
    "channel_file",
    metavar="FILE",
    help='Write the best channel found, for a collection with mechanism = "optimal".',
)
@click.option(
    "--attribute",
    metavar="NAME",
    help="Of records: plan this attribute; without it, plan how often each is drawn.",
)
@click.option(
    "--size",
    is_flag=True,
    help="Say instead what --respondents in each window take: messages, disk, memory, processors.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as one JSON document.")
@click.argument("name")
def plan(**options: Any) -> None:
    """Compare all mechanisms that satisfy the policy of collection NAME, before any report.

    Predicts the standard errors of its ranges, quantiles and values, and the cost of a report and
    of the state. Errors are those of the estimators that would run, untuned.
    """
    from ldpstream.agents.cli.plan import plan_collection

    plan_collection(**options)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def ledger(**options: Any) -> None:
    """Print what a ledger has spent, in total and window by window, as JSON.

    Losses are those of the worst pair of values; "exact" is a fraction, "spent" is rounded up.
    "year" covers windows of the past 365 days; "said" puts that in words, and says against whom it
    protects.
    """
    from ldpstream.agents.cli.ledger import print_spent

    print_spent(**options)
