"""`ldpstream plan`: compare every mechanism that satisfies a collection's policy."""

import json
from dataclasses import asdict
from typing import Any

import click

from ldpstream.agents.cli.terminal.common import load_collection, print_data
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.config import CollectionConfig


def plan_collection(
    config_file: str,
    name: str,
    *,
    attribute: str | None,
    size: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Print how the mechanisms compare, or what a collection takes."""
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
        print_data(json.dumps(asdict(taken), indent=2))
    else:
        click.echo("\n".join(lines_of(taken, collection, respondents)))
