"""Run `ldpstream plan`: compute, write and print, once its options are read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import click
from rich.console import Console

from ldpstream.agents.cli.plans.ask import PriorError
from ldpstream.agents.cli.plans.attributes import (
    expected_respondents,
    plan_attributes,
    show_attributes,
)
from ldpstream.agents.cli.plans.life import plan_life, show_life
from ldpstream.agents.cli.plans.model import LifePart
from ldpstream.agents.cli.plans.run import NothingComparedError, Planned, make_plan
from ldpstream.agents.cli.plans.table import show_plan
from ldpstream.agents.cli.terminal.common import print_data
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.labels import Labels
from ldpstream.agents.cli.terminal.tables import table_console
from ldpstream.agents.config import CollectionConfig
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.realise import write_channel
from ldpstream.estimators.planning.choices import Objective
from ldpstream.estimators.planning.optimum import Optimum
from ldpstream.estimators.planning.sweep import Sweep, sweep
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.rounded_interval import RoundedInterval
from ldpstream.mechanisms.families.weights.private import WeightedDomain


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The options of the command; `budget` only matters with `windows`."""

    respondents: int
    attribute: str | None
    prior: str
    workload: Objective | None
    limit: float
    search: float | None
    width: float | None
    optimise: str | None
    windows: int | None
    budget: Fraction
    plot: str | None
    as_json: bool


def run_plan(collection: CollectionConfig, wanted: Wanted) -> None:
    """Compare the mechanisms for a collection, write the files that were asked for, and print.

    Raises:
        Refused: naming the impossible option.
    """
    if collection.attributes and wanted.attribute is None:
        _plan_records(collection, wanted)
        return
    collection, wanted = _about(collection, wanted)
    optimise, plot = wanted.optimise, wanted.plot
    if optimise is not None:
        _check_design(collection)
    # Thousands of values take a while: show the progress on a terminal.
    with Console(stderr=True).status(f"planning: {collection.name}") as status:
        plan = _plan(collection, wanted, status.update)
        document = plan.document
        if wanted.windows is not None:
            life = _life(plan, wanted.windows, wanted.budget, status.update)
            document = document.model_copy(update={"life": life})
        swept = None if plot is None else _swept(plan, status.update)
    # Files first: a reader of the output, such as `head`, may exit before its end.
    if optimise is not None and plan.optimum is not None:
        _write(plan.optimum, optimise)
    if plot is not None:
        _draw(plan, swept, plot)
    if wanted.as_json:
        print_data(document.to_json())
    else:
        domain = collection.spec.domain
        show_plan(
            document,
            table_console(),
            ends=Labels.of_domain(domain).ends[None],
            weighted=domain.estimated is not domain,
        )
        if document.life is not None:
            show_life(document.life, wanted.respondents, table_console())


def _about(collection: CollectionConfig, wanted: Wanted) -> tuple[CollectionConfig, Wanted]:
    """Return the requested attribute as a collection, with its expected respondents."""
    if wanted.attribute is None:
        return collection, wanted
    if wanted.attribute not in collection.attributes:
        known = ", ".join(collection.attributes) or "none, because values are not records"
        raise Refused(f"--attribute: expected {known}, got {wanted.attribute}")
    n = expected_respondents(collection, wanted.attribute, wanted.respondents)
    return collection.attributes[wanted.attribute], replace(wanted, respondents=n)


def _plan_records(collection: CollectionConfig, wanted: Wanted) -> None:
    given = {
        "--workload": wanted.workload,
        "--optimise": wanted.optimise,
        "--width": wanted.width,
        "--windows": wanted.windows,
        "--plot": wanted.plot,
    }
    for option, value in given.items():
        if value is not None:
            known = ", ".join(collection.attributes)
            raise Refused(f"{option}: expected --attribute NAME as well, one of {known}")
    plan = plan_attributes(collection, wanted.respondents)
    if wanted.as_json:
        print_data(plan.to_json())
    else:
        show_attributes(plan, table_console())


def _plan(collection: CollectionConfig, wanted: Wanted, say: Callable[[str], object]) -> Planned:
    try:
        return make_plan(
            collection,
            respondents=wanted.respondents,
            prior=wanted.prior,
            objective=wanted.workload,
            limit_seconds=wanted.limit,
            search_seconds=wanted.search,
            channel=wanted.optimise is not None,
            width=wanted.width,
            say=say,
        )
    except PriorError as error:
        raise Refused(str(error)) from error
    except NothingComparedError as error:
        raise Refused(f"--limit: expected a longer time: {error}") from error
    except (DesignError, SpecError) as error:
        raise Refused(f"--optimise: {error}") from error


def _life(plan: Planned, windows: int, budget: Fraction, say: Callable[[str], object]) -> LifePart:
    candidates = list(plan.comparison.candidates)
    try:
        life = plan_life(plan.asked, candidates, windows=windows, budget=budget, say=say)
    except SpecError as error:
        raise Refused(f"--windows: {error}") from error
    if life is None:
        raise Refused("--windows: expected a mechanism whose policy has a parameter epsilon")
    return life


def _check_design(collection: CollectionConfig) -> None:
    """Refuse a channel that no collection with mechanism optimal over these values could use."""
    domain = collection.spec.domain
    if isinstance(domain, WeightedDomain):
        raise Refused(
            f"--optimise: collection.{collection.name}.weights: expected none, because mechanism "
            "optimal takes no weights: remove them, or use the best mechanism that the plan names "
            "without --optimise"
        )
    if isinstance(domain, RoundedInterval):
        raise Refused(
            f"--optimise: collection.{collection.name}.domain.rounding: expected none, because a "
            "channel proves its policy for the edges, not for the numbers between them: remove "
            "rounding to use bins, or use the best mechanism that the plan names without "
            "--optimise"
        )


def _write(optimum: Optimum, file: str) -> None:
    try:
        channel = write_channel(file, optimum.design)
    except OSError as error:
        raise Refused(f"--optimise: cannot write {file}: {error.strerror or error}") from error
    except (DesignError, SpecError) as error:
        raise Refused(f"--optimise: {error}") from error
    use = (
        f"to use it, replace mechanism and its settings (epsilon, policy, strategy) by mechanism = "
        f'"optimal" and channel = "{Path(file).name}"'
    )
    click.echo(f"{file}: written, {channel.outputs} reports; {use}", err=True)


def _swept(plan: Planned, say: Callable[[str], object]) -> Sweep | None:
    asked = plan.asked
    return sweep(
        asked.spec.mechanism.policy,
        asked.spec.domain,
        asked.workload,
        asked.objective,
        asked.estimand,
        plan.comparison.candidates,
        say=say,
    )


def _draw(plan: Planned, swept: Sweep | None, plot: str) -> None:
    from ldpstream.agents.cli.plans.picture import draw_plan

    try:
        draw_plan(plan.asked, plan.comparison, swept, Path(plot))
    except OSError as error:
        raise Refused(f"--plot: cannot write {plot}: {error.strerror or error}") from error
    click.echo(f"{plot}: written", err=True)
