"""The one declaration of what may be asked of a collection, and of what a document holds.

A field of `EstimateRequest` with a `Setting` is at once a key of a request's body, a parameter of
`GET .../estimate`, an option of `query` and `estimate`, a keyword of the Python client, and a part
of `/openapi.json`. The field of `EstimateOptions` of the same name holds what it resolves to, is a
part of the ETag, and with a `Key` it is configured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from ldpstream.agents.query.errors import refused
from ldpstream.agents.query.linear import Linear, make_linear, parse_linear
from ldpstream.agents.query.ranges import (
    Range,
    check_areas,
    check_quantiles,
    make_range,
    parse_range,
)
from ldpstream.agents.query.settings import (
    FLAG,
    TOP,
    UNIT,
    Key,
    Setting,
    Unit,
    choice,
    each_named,
    spelled,
)
from ldpstream.estimators.bounds.options import SHARPEST, Estimand, Method, OptionKeywords
from ldpstream.estimators.bounds.sampling import ONE_REPORT_EACH, Sampling
from ldpstream.mechanisms.domains.parse import Domain

QUERIES_LIMIT: Final = 100
"""Ranges, quantiles, and linear queries, of each, in one request."""
TOP_LIMIT: Final = 1_000
SHARPEST_LIMIT: Final = 1_000_000_000_000

Projection = Literal["none", "simplex", "blocks", "power", "likelihood"]
"""`simplex`: the nearest distribution. `blocks`: the same, keeping each disclosed total.
`power`: means under a power law that is fitted to all shares, then `blocks`. `likelihood`: the
smoothest that the reports do not contradict, where there is a likelihood."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Time = Annotated[str, Field(max_length=40)] | int
_Many = Field(max_length=QUERIES_LIMIT)


class Asked(BaseModel):
    """Base of what is asked: closed, so that a word that is misspelt is not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NamedQuery(Asked):
    """A query with a name of its own."""

    name: str = Field(min_length=1, max_length=100)


class BoxRequest(NamedQuery):
    """A range with a name of its own."""

    bounds: list[Annotated[list[Finite], Field(min_length=2, max_length=2)]] = Field(
        min_length=1,
        description="[low, high], both included, or edges of bins; one pair a dimension",
    )


class LinearRequest(NamedQuery):
    """A function of the value, whose mean is estimated."""

    weights: list[Finite] | dict[str, Finite] = Field(
        description="One weight a value in the domain's own order (the last dimension fastest), or "
        "by label, where those that are left out weigh 0"
    )


def _top(top: int | str, _: Domain) -> int | None:
    return None if isinstance(top, str) else top


def _ranges(asked: Sequence[str | BoxRequest], domain: Domain) -> tuple[Range, ...]:
    return tuple(
        parse_range(one, domain)
        if isinstance(one, str)
        else make_range(one.name, one.bounds, domain)
        for one in asked
    )


def _linear(asked: Sequence[str | LinearRequest], domain: Domain) -> tuple[Linear, ...]:
    return tuple(
        parse_linear(one, domain, position)
        if isinstance(one, str)
        else make_linear(one.name, one.weights, domain)
        for position, one in enumerate(asked, start=1)
    )


def _listed(top: Any) -> Any:
    if top == "all":
        # How many values there are is not known here, and documents that are sent are bounded.
        what = f"a whole number up to {TOP_LIMIT:,}, such as the number of values"
        raise refused(f"{what} (`query --top all` lists any)", top)
    return top


def _weights(given: Any) -> Any:
    numbers = list(given.values()) if isinstance(given, dict) else given
    if not (isinstance(numbers, list) and all(type(one) in (int, float) for one in numbers)):
        raise refused("a list of numbers, or a table of them by label", given)
    return given


class EstimateRequest(Asked):
    """What is asked of a span; what is left out is as the collection publishes it."""

    start: Time | None = Field(default=None, description="First moment of whole panes; with end")
    end: Time | None = Field(default=None, description="First moment after it")
    attribute: Annotated[
        Annotated[str, Field(max_length=64)] | None,
        Setting(
            text=spelled("NAME"),
            help="Of records: the attribute that all else is about; by default each",
        ),
    ] = None
    top: Annotated[
        Annotated[int, Field(ge=0)] | Literal["all"] | None,
        Setting(
            text=TOP,
            help="The largest N shares, or all values in the domain's own order",
            resolve=_top,
        ),
    ] = None
    ranges: Annotated[
        Annotated[list[Annotated[str, Field(max_length=1000)] | BoxRequest], _Many] | None,
        Setting(
            text=spelled("LO..HI[,LO..HI]"),
            help="The share between two values, both included, or of an interval between two edges "
            "of bins; one pair a dimension",
            each="range",
            resolve=_ranges,
        ),
    ] = None
    quantiles: Annotated[
        Annotated[list[Unit], _Many] | None,
        Setting(
            text=UNIT,
            help="The smallest value that at least this share does not exceed; above 0, below 1",
            each="quantile",
            resolve=check_quantiles,
        ),
    ] = None
    linear: Annotated[
        Annotated[list[LinearRequest], _Many] | None,
        Setting(
            text=spelled("[NAME:]W,W,..."),
            help="The mean of a weight for each value, in the domain's own order",
            each="linear",
            resolve=_linear,
        ),
    ] = None
    areas: Annotated[
        bool | None,
        Setting(
            text=FLAG,
            help="Shares of all blocks, and of areas inside that differ from what surrounds them",
            resolve=check_areas,
        ),
    ] = None
    estimand: Annotated[
        Estimand | None,
        Setting(
            text=choice(Estimand),
            help="Shares among those who report, or in the population that they are drawn from",
        ),
    ] = None
    method: Annotated[
        Method | None,
        Setting(
            text=choice(Method),
            help="How bounds are made; anytime: at every moment of a window at once; profile: by "
            "likelihood, of l1-geometric in one dimension",
        ),
    ] = None
    simultaneous: Annotated[
        bool | None, Setting(text=FLAG, help="Wider bounds: all listed ones are right at once")
    ] = None
    confidence: Annotated[
        Unit | None,
        Setting(text=UNIT, help="Probability with which bounds hold, above 0 and below 1"),
    ] = None
    project: Annotated[
        Projection | None,
        Setting(
            text=choice(Projection),
            help="Post-process shares into a distribution; blocks: keep each disclosed total; "
            "power: that after a pull towards a power law, for the least total variation; "
            "likelihood: of l1-geometric in one dimension",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """What an estimate document holds, and how it is bounded.

    `top` is the length of the list of values, None for the whole domain in its own order, 0 for no
    list. `ranges`, `quantiles` and `linear` keep their order. `sharpest` cannot be asked for:
    anytime bounds hold where it was fixed before looking. Nor can `sampling`, which follows from
    the span and from what the collection says of its devices. `of_attributes` are those of
    attributes of records that have other ones.
    """

    estimand: Annotated[Estimand, Key(table="collection")] = "respondents"
    method: Annotated[Method, Key(table="collection")] = "padded"
    simultaneous: bool = False
    confidence: Annotated[float, Key(table="collection", type=Unit)] = 0.95
    sharpest: Annotated[
        int,
        Key(
            table="collection",
            type=Annotated[int, Field(ge=1, le=SHARPEST_LIMIT)],
            help="Reports at which anytime bounds are narrowest",
        ),
    ] = SHARPEST
    project: Projection = "none"
    top: Annotated[
        int | None,
        Key(
            table="publish",
            type=Annotated[int, Field(ge=0, le=TOP_LIMIT), BeforeValidator(_listed)],
            help="The largest N shares; the number of values lists them all",
        ),
    ] = 20
    ranges: Annotated[
        tuple[Range, ...],
        Key(
            table="publish",
            type=dict[str, list[Any]],
            resolve=each_named(make_range),
            example={"night": [0, 5]},
        ),
    ] = ()
    quantiles: Annotated[
        tuple[float, ...],
        Key(table="publish", type=list[Unit], resolve=check_quantiles, example=[0.25, 0.5, 0.75]),
    ] = ()
    linear: Annotated[
        tuple[Linear, ...],
        Key(
            table="publish",
            type=dict[str, Annotated[Any, AfterValidator(_weights)]],
            resolve=each_named(make_linear),
            example={"fare": {"bus": 2.5, "train": 4}},
        ),
    ] = ()
    areas: bool = False
    attribute: str | None = None
    of_attributes: tuple[tuple[str, "EstimateOptions"], ...] = ()
    sampling: Sampling = ONE_REPORT_EACH

    def about(self, attribute: str | None) -> "EstimateOptions":
        """Return the options of an attribute of records, where it has any of its own."""
        return dict(self.of_attributes).get(attribute or "", self)

    def keywords(self) -> OptionKeywords:
        """Return how estimates are bounded, as their keywords."""
        return {
            "confidence": self.confidence,
            "method": self.method,
            "estimand": self.estimand,
            "simultaneous": self.simultaneous,
            "sharpest": self.sharpest,
            "sampling": self.sampling,
        }


SETTINGS: Final = tuple(
    replace(setting, name=name)
    for name, key in EstimateRequest.model_fields.items()
    for setting in key.metadata
    if isinstance(setting, Setting)
)
"""All that may be asked, in the order in which it is listed."""

WORDS: Final = {setting.word: setting for setting in SETTINGS}
"""The same by the words of addresses and commands."""

KEYS: Final[Mapping[str, Key]] = {
    name: replace(key, type=key.type or hint.__origin__, default=getattr(EstimateOptions, name))
    for name, hint in get_type_hints(EstimateOptions, include_extras=True).items()
    for key in getattr(hint, "__metadata__", ())
}
"""All that is configured, by name."""
