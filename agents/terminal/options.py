"""The options of a query, the same for `estimate` (of files) and `query` (of a running worker)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_args

import click

from ldpstream.agents.query.options import EstimateOptions, Projection, QueryError, read_options
from ldpstream.agents.terminal.errors import Refused
from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.mechanisms.domains.parse import Domain

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """What was written on the command line; None or empty where it was not."""

    estimand: str | None
    method: str | None
    simultaneous: bool | None
    confidence: str | None
    project: str | None
    top: str | None
    ranges: tuple[str, ...]
    quantiles: tuple[str, ...]
    linear: tuple[str, ...]

    def resolve(self, defaults: EstimateOptions, domain: Domain) -> EstimateOptions:
        """Return the defaults with these options in their place.

        Raises:
            Refused: where one is impossible, or does not fit the domain.
        """
        try:
            return read_options(
                defaults,
                domain,
                estimand=self.estimand,
                method=self.method,
                simultaneous=self.simultaneous,
                confidence=self.confidence,
                project=self.project,
                top=self.top,
                ranges=self.ranges,
                quantiles=self.quantiles,
                linear=self.linear,
            )
        except QueryError as error:
            raise Refused(f"--{error}") from error

    def parameters(self) -> list[tuple[str, str]]:
        """Return the same options as parameters of the HTTP API."""
        texts = [
            ("estimand", self.estimand),
            ("method", self.method),
            ("simultaneous", "true" if self.simultaneous else None),
            ("confidence", self.confidence),
            ("project", self.project),
            ("top", self.top),
            *(("range", text) for text in self.ranges),
            *(("quantile", text) for text in self.quantiles),
            *(("linear", text) for text in self.linear),
        ]
        return [(name, text) for name, text in texts if text is not None]


_OPTIONS: Final = (
    click.option("--estimand", type=click.Choice(get_args(Estimand)), help="Whose shares."),
    click.option("--method", type=click.Choice(get_args(Method)), help="How bounds are made."),
    click.option(
        "--simultaneous", is_flag=True, default=None, help="Bounds that hold all together."
    ),
    click.option("--confidence", metavar="P", help="Above 0 and below 1."),
    click.option(
        "--project", type=click.Choice(get_args(Projection)), help="Post-processing, by name."
    ),
    click.option("--top", metavar="N|all", help="The largest N values, or all in their order."),
    click.option(
        "--range",
        "ranges",
        metavar="LO..HI[,LO..HI]",
        multiple=True,
        help="Both ends included, one pair a dimension; repeatable.",
    ),
    click.option("--quantile", "quantiles", metavar="P", multiple=True, help="Repeatable."),
    click.option(
        "--linear",
        metavar="[NAME:]W,W,...",
        multiple=True,
        help="The mean of a weight for each value, in the domain's order; repeatable.",
    ),
)


def query_options(command: Command) -> Command:
    """Add the options of a query; collect them with `QueryOptions(**...)`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
