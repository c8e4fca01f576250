"""`ldpstream plan`: every mechanism that satisfies a collection's policy, compared."""

from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Final, get_args

import click
from rich.console import Console

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.plan.ask import UNIFORM, Asked, PriorError, ask
from ldpstream.agents.plan.compose import compose
from ldpstream.agents.plan.life import plan_life, show_life
from ldpstream.agents.plan.model import LifePart
from ldpstream.agents.plan.table import show_plan
from ldpstream.agents.terminal.common import config_option, load_collection
from ldpstream.agents.terminal.errors import Refused
from ldpstream.agents.terminal.tables import table_console
from ldpstream.estimators.design.errors import DesignError
from ldpstream.estimators.design.realise import write_channel
from ldpstream.estimators.planning.compare import Comparison, compare
from ldpstream.estimators.planning.optimum import (
    SEARCH_SECONDS,
    SEARCHED_VALUES,
    Optimum,
    find_optimum,
)
from ldpstream.estimators.planning.sweep import sweep
from ldpstream.estimators.planning.workload import Objective
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.rounded_interval import RoundedInterval
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from ldpstream.mechanisms.ledger.spent import read_budget
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS

_MOST_RESPONDENTS: Final = 10**12


@click.command()
@config_option
@click.option(
    "--respondents",
    type=click.IntRange(1, _MOST_RESPONDENTS),
    required=True,
    metavar="N",
    help="How many report.",
)
@click.option(
    "--prior",
    default=UNIFORM,
    show_default=True,
    metavar="uniform|zipf|FILE",
    help="The design shares; a file holds one count a line, in the domain's order.",
)
@click.option(
    "--workload",
    type=click.Choice(get_args(Objective)),
    help="What mechanisms are sorted by; by default what the collection publishes.",
)
@click.option(
    "--search",
    type=click.FloatRange(0.0),
    metavar="SECONDS",
    help="How long to compute on the best channel of any kind; 0: not at all. "
    f"By default {SEARCH_SECONDS:g} up to {SEARCHED_VALUES} values, 0 beyond.",
)
@click.option(
    "--optimise",
    metavar="FILE",
    help="Write the best channel that was found, for a collection of mechanism optimal.",
)
@click.option(
    "--windows",
    type=click.IntRange(2, MAX_SPREAD_WINDOWS),
    metavar="W",
    help="With --budget: compare reports in every one of W windows with those in some.",
)
@click.option("--budget", metavar="EPSILON", help="Of a device for all of --windows together.")
@click.option("--plot", metavar="FILE.png", help="Draw error against respondents and budget.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as one JSON document.")
@click.argument("name")
def plan(
    config_file: str,
    name: str,
    *,
    respondents: int,
    prior: str,
    workload: Objective | None,
    search: float | None,
    optimise: str | None,
    windows: int | None,
    budget: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare all mechanisms that satisfy the policy of collection NAME, before any report.

    Predicts the standard errors of its ranges, quantiles and values, and what a report, the state
    and decoding cost. Nothing is tuned: errors are those of the estimators that would run.
    """
    if plot is not None:
        _check_picture(plot)
    allowed = _read_budget(windows, budget)
    _, collection = load_collection(config_file, name)
    if optimise is not None:
        _check_design(collection)
    try:
        asked = ask(collection, respondents=respondents, prior=prior, objective=workload)
    except PriorError as error:
        raise Refused(str(error)) from error
    # Thousands of values take minutes; on a terminal one sees what it is at.
    with Console(stderr=True).status(f"comparing mechanisms: {collection.name}") as status:
        comparison = compare(
            asked.spec.mechanism,
            asked.spec.domain,
            asked.workload,
            asked.objective,
            asked.estimand,
        )
        status.update(f"searching the best channel: {collection.name}")
        optimum = _search(asked, search, needed=optimise is not None)
    document = compose(asked, comparison, optimum)
    if windows is not None:
        document = document.model_copy(update={"life": _life(asked, comparison, windows, allowed)})
    # Files first: a reader of the output, such as `head`, may go away before its end.
    if optimise is not None and optimum is not None:
        _write(optimum, optimise)
    if plot is not None:
        _draw(asked, comparison, plot)
    if as_json:
        click.echo(document.to_json())
    else:
        show_plan(document, table_console())
        if document.life is not None:
            show_life(document.life, respondents, table_console())


def _read_budget(windows: int | None, budget: str | None) -> Fraction:
    if (windows is None) != (budget is None):
        raise Refused("--windows: expected --budget with it, and the other way round")
    try:
        return read_budget(budget or "1")
    except SpecError as error:
        raise Refused(f"--{error}") from error


def _life(asked: Asked, comparison: Comparison, windows: int, budget: Fraction) -> LifePart:
    try:
        life = plan_life(asked, list(comparison.candidates), windows=windows, budget=budget)
    except SpecError as error:
        raise Refused(f"--windows: {error}") from error
    if life is None:
        raise Refused("--windows: expected a policy with epsilon as a parameter")
    return life


def _check_design(collection: CollectionConfig) -> None:
    """Refuse a channel that no collection of mechanism optimal over these values could use."""
    domain = collection.spec.domain
    if isinstance(domain, WeightedDomain):
        raise Refused(
            f"--optimise: collection.{collection.name}.weights: expected none, because the "
            "mechanism optimal takes no weights: leave them out, or use the best mechanism "
            "that the plan names without --optimise"
        )
    if isinstance(domain, RoundedInterval):
        raise Refused(
            f"--optimise: collection.{collection.name}.domain.rounding: expected none, because a "
            "channel proves its policy for the edges, not for the numbers between them: leave "
            "rounding out and have bins, or use the best mechanism that the plan names without "
            "--optimise"
        )


def _search(asked: Asked, seconds: float | None, *, needed: bool) -> Optimum | None:
    """Search the best channel as long as asked; without asking, where that is soon done."""
    policy = asked.spec.mechanism.policy
    if seconds is None:
        seconds = SEARCH_SECONDS if needed or policy.size <= SEARCHED_VALUES else 0.0
    if seconds == 0.0:
        if needed:
            raise Refused("--search: expected some seconds with --optimise, got 0")
        return None
    estimand = asked.estimand
    try:
        return find_optimum(policy, asked.workload, asked.objective, estimand, seconds=seconds)
    except (DesignError, SpecError) as error:
        if needed:
            raise Refused(f"--optimise: {error}") from error
        return None


def _write(optimum: Optimum, file: str) -> None:
    try:
        channel = write_channel(file, optimum.design)
    except OSError as error:
        raise Refused(f"--optimise: cannot write {file}: {error.strerror or error}") from error
    except (DesignError, SpecError) as error:
        raise Refused(f"--optimise: {error}") from error
    use = f'mechanism = "optimal" and channel = "{Path(file).name}" in place of epsilon use it'
    click.echo(f"{file}: written, {channel.outputs} reports; {use}", err=True)


def _check_picture(plot: str) -> None:
    """Refuse a picture that could not be drawn before any work is done."""
    if Path(plot).suffix.lower() != ".png":
        raise Refused(f"--plot: expected a file that ends in .png, got {plot}")
    if find_spec("matplotlib") is None:
        raise Refused(
            "--plot: expected matplotlib, which the extra plots brings: "
            "pip install 'ldpstream[plots]'"
        )


def _draw(asked: Asked, comparison: Comparison, plot: str) -> None:
    from ldpstream.agents.plan.picture import draw_plan

    swept = sweep(
        asked.spec.mechanism.policy,
        asked.spec.domain,
        asked.workload,
        asked.objective,
        asked.estimand,
        comparison.candidates,
    )
    try:
        draw_plan(asked, comparison, swept, Path(plot))
    except OSError as error:
        raise Refused(f"--plot: cannot write {plot}: {error.strerror or error}") from error
    click.echo(f"{plot}: written", err=True)
