"""Run `ldpstream plan`: compute, write and print, once its options are read."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from ldpstream.agents.cli.plans.planner import (
    NothingComparedError,
    Plan,
    expected_respondents,
    make_plan,
    plan_attributes,
)
from ldpstream.agents.cli.plans.request import PlanRequest, PriorError
from ldpstream.agents.cli.plans.tables import show_attributes, show_plan
from ldpstream.agents.cli.terminal.common import print_data
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.labels import ShownLabels
from ldpstream.agents.cli.terminal.tables import table_console
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.optimise import Design
from ldpstream.estimators.design.realise import write_channel
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain


def run_plan(request: PlanRequest, *, attribute: str | None, as_json: bool) -> None:
    """Compare the mechanisms for a collection, write the best channel if requested, and print.

    `attribute` is the attribute of records to plan.
    """
    if request.collection.attributes and attribute is None:
        _plan_records(request, as_json=as_json)
        return
    if attribute is not None:
        request = _choose_attribute(request, attribute)
    domain = request.collection.spec.domain
    if request.channel_file is not None:
        _check_design(request.collection.name, domain)
    # Thousands of values take a while: show the progress on a terminal.
    with Console(stderr=True).status(f"planning: {request.collection.name}") as status:
        plan = _make(request, status.update)
    # The file first: a reader of the output, such as `head`, may exit before its end.
    if request.channel_file is not None and plan.design is not None:
        _write(plan.design, request.channel_file)
    if as_json:
        print_data(plan.document.to_json())
        return
    ends, weighted = ShownLabels.of_domain(domain).ends[None], domain.estimated is not domain
    show_plan(plan.document, table_console(), ends=ends, weighted=weighted)


def _plan_records(request: PlanRequest, *, as_json: bool) -> None:
    options = {
        "--workload": request.objective,
        "--optimise": request.channel_file,
        "--width": request.width,
    }
    for option, value in options.items():
        if value is not None:
            known = ", ".join(request.collection.attributes)
            raise Refused(f"{option}: expected --attribute NAME as well, one of {known}")
    plan = plan_attributes(request.collection, request.respondents)
    if as_json:
        print_data(plan.model_dump_json(indent=2))
    else:
        show_attributes(plan, table_console())


def _choose_attribute(request: PlanRequest, attribute: str) -> PlanRequest:
    """Return the request for an attribute alone, with its expected respondents."""
    attributes = request.collection.attributes
    if attribute not in attributes:
        known = ", ".join(attributes) or "none, because values are not records"
        raise Refused(f"--attribute: expected {known}, got {attribute}")
    n = expected_respondents(request.collection, attribute, request.respondents)
    return replace(request, collection=attributes[attribute], respondents=n)


def _make(request: PlanRequest, say: Callable[[str], object]) -> Plan:
    try:
        return make_plan(request, say=say)
    except PriorError as error:
        raise Refused(str(error)) from error
    except NothingComparedError as error:
        raise Refused(f"--limit: expected a longer time: {error}") from error
    except (DesignError, SpecError) as error:
        raise Refused(f"--optimise: {error}") from error


def _check_design(name: str, domain: Domain) -> None:
    """Refuse a channel that no collection with mechanism optimal over these values could use."""
    if domain.largest_weight is not None:
        raise Refused(
            f"--optimise: collection.{name}.weights: expected none, because mechanism "
            "optimal takes no weights: remove them, or use the best mechanism that the plan names "
            "without --optimise"
        )
    if domain.rounded:
        raise Refused(
            f"--optimise: collection.{name}.domain.rounding: expected none, because a "
            "channel proves its policy for the edges, not for the numbers between them: remove "
            "rounding to use bins, or use the best mechanism that the plan names without "
            "--optimise"
        )


def _write(design: Design, file: str | Path) -> None:
    try:
        channel = write_channel(file, design)
    except OSError as error:
        raise Refused(f"--optimise: cannot write {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise Refused(f"--optimise: {error}") from error
    use = (
        f"to use it, replace mechanism and its settings (epsilon, policy, strategy) by mechanism = "
        f'"optimal" and channel = "{Path(file).name}"'
    )
    click.echo(f"{file}: written, {channel.outputs} reports; {use}", err=True)
