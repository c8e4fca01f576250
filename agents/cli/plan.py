"""`ldpstream plan`: compare every mechanism that satisfies a collection's policy."""

import json
from typing import Any, Final, get_args

import click

from ldpstream.agents.cli.terminal.common import config_option, load_collection, print_data
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.parameters import Real, Whole
from ldpstream.agents.config import CollectionConfig
from ldpstream.estimators.planning.choices import (
    LIMIT_SECONDS,
    SEARCH_SECONDS,
    SEARCHED_VALUES,
    Objective,
)

_MOST_RESPONDENTS: Final = 10**12


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
def plan(
    config_file: str,
    name: str,
    *,
    attribute: str | None,
    size: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare all mechanisms that satisfy the policy of collection NAME, before any report.

    Predicts the standard errors of its ranges, quantiles and values, and the cost of a report and
    of the state. Errors are those of the estimators that would run, untuned.
    """
    if options["channel_file"] is not None and options["search_seconds"] == 0.0:
        raise Refused("--search: expected some seconds with --optimise, got 0")
    _, collection = load_collection(config_file, name)
    if size:
        _print_size(collection, options["respondents"], as_json=as_json)
        return
    # Imported late: it takes longer to load than the configuration.
    from ldpstream.agents.cli.plans.command import run_plan
    from ldpstream.agents.cli.plans.planner import UNKNOWN_WORDS
    from ldpstream.agents.cli.plans.request import PlanRequest

    if collection.spec.words is not None:
        raise Refused(UNKNOWN_WORDS.format(name))
    run_plan(
        PlanRequest(collection=collection, **options),
        attribute=attribute,
        as_json=as_json,
    )


def _print_size(collection: CollectionConfig, respondents: int, *, as_json: bool) -> None:
    from ldpstream.agents.cli.plans.size import SizePlan, lines_of

    taken = SizePlan.of(collection, respondents)
    if as_json:
        print_data(json.dumps(taken.to_json(), indent=2))
    else:
        click.echo("\n".join(lines_of(taken, collection, respondents)))
