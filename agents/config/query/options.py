"""The one declaration of what may be asked of a collection, and of what a document contains.

A field of `EstimateRequest` with a `Setting` is a key of a request's body, a parameter of
`GET .../estimate`, an option of `query` and `estimate`, a keyword of the Python client, and a part
of `/openapi.json`. The field of `EstimateOptions` with the same name holds the resolved value and
is part of the ETag. Some can be configured, in tables with keys of the same names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

from pydantic import Field

from ldpstream.agents.config.query.queries import (
    BoxRequest,
    LinearRequest,
    RequestModel,
    check_areas,
    check_quantiles,
    read_linear,
    read_ranges,
)
from ldpstream.agents.config.query.settings import (
    FLAG,
    TOP,
    UNIT,
    Resolve,
    Setting,
    Unit,
    as_it_is,
    choice,
    each_named,
    entries_like,
    spelled,
)
from ldpstream.estimators.bounds.options import (
    ONE_REPORT_EACH,
    SHARPEST,
    Estimand,
    Method,
    Sampling,
)
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.domains.queries import Linear, Subset, make_linear, make_range

QUERIES_LIMIT: Final = 100
"""The most ranges, quantiles and linear queries, of each kind, in one request."""
TOP_LIMIT: Final = 1_000

Projection = Literal["none", "ordered", "simplex", "blocks", "power", "likelihood"]
"""`ordered`: shares that agree with the order of values, from a tree down, or of the monotone
cumulative curve of one dimension. `simplex`: the nearest distribution. `blocks`: the same, keeping
each disclosed total. `power`: means under a power law fitted to all shares, then `blocks`.
`likelihood`: the smoothest distribution that the reports do not contradict, where there is a
likelihood."""
Time = Annotated[str, Field(max_length=40)] | int
_Many = Field(max_length=QUERIES_LIMIT)


def _top(top: int | str, _: Domain) -> int | None:
    return None if isinstance(top, str) else top


class EstimateRequest(RequestModel):
    """What is asked about a span; missing fields are as the collection publishes them."""

    start: Time | None = Field(default=None, description="First moment of whole panes; with end")
    end: Time | None = Field(default=None, description="First moment after it")
    attribute: Annotated[Annotated[str, Field(max_length=64)] | None, spelled("NAME")] = Field(
        default=None, description="Of records: the attribute to estimate; by default each"
    )
    top: Annotated[
        Annotated[int, Field(ge=0)] | Literal["all"] | None, replace(TOP, resolve=_top)
    ] = Field(default=None, description="The N largest shares, or all values in the domain's order")
    ranges: Annotated[
        Annotated[list[Annotated[str, Field(max_length=1000)] | BoxRequest], _Many] | None,
        entries_like("0..9", {"name": "night", "bounds": [[0, 5]]}),
        spelled("LO..HI[,LO..HI]|NAME", repeated=True, resolve=read_ranges),
    ] = Field(
        default=None,
        description="The share between two values, both included, or on an interval between two "
        "edges of bins; one pair per dimension; or the share of a named block or published set",
    )
    quantiles: Annotated[
        Annotated[list[Unit], _Many] | None,
        entries_like(0.25, 0.5),
        replace(UNIT, repeated=True, resolve=check_quantiles),
    ] = Field(
        default=None,
        description="The smallest value that at least this share does not exceed; above 0, below 1",
    )
    linear: Annotated[
        Annotated[list[LinearRequest], _Many] | None,
        entries_like({"name": "fare", "weights": [2.5, 4]}),
        spelled("[NAME:]W,W,...", repeated=True, resolve=read_linear),
    ] = Field(
        default=None,
        description="The mean of a weight given for each value, in the domain's order",
    )
    areas: Annotated[bool | None, replace(FLAG, resolve=check_areas)] = Field(
        default=None,
        description="Shares of all blocks, and of areas in them that differ from their "
        "surroundings",
    )
    estimand: Annotated[Estimand | None, choice(Estimand)] = Field(
        default=None,
        description="Shares among those who report, in the population they are drawn from, or "
        "among all devices whose ledgers spread their budget",
    )
    method: Annotated[Method | None, choice(Method)] = Field(
        default=None,
        description="How bounds are made; anytime: they hold at every moment of a window at once; "
        "profile: by likelihood, for l1-geometric in one dimension",
    )
    simultaneous: Annotated[bool | None, FLAG] = Field(
        default=None, description="Wider bounds, which all hold at once"
    )
    confidence: Annotated[Unit | None, UNIT] = Field(
        default=None, description="Probability with which bounds hold, above 0 and below 1"
    )
    project: Annotated[Projection | None, choice(Projection)] = Field(
        default=None,
        description="Post-process shares into a distribution, slightly biased; ordered: for "
        "ordered values, the default with tree; none: unbiased; blocks: keep each disclosed total; "
        "power: shrink towards a power law first, for the least total variation; "
        "likelihood: for l1-geometric in one dimension",
    )


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """What an estimate document contains, and how its bounds are made.

    `top` is the length of the list of values: None for the whole domain in its own order, 0 for no
    list. `ranges`, `quantiles` and `linear` keep their order. `sharpest` cannot be asked for,
    because anytime bounds require it to be fixed before looking; nor can `sampling`, which follows
    from the span and the collection. `of_attributes` are the options of attributes of records that
    have their own.
    """

    estimand: Estimand = "respondents"
    method: Method = "padded"
    simultaneous: bool = False
    confidence: float = 0.95
    sharpest: int = SHARPEST
    project: Projection = "none"
    top: int | None = 20
    ranges: tuple[Subset, ...] = ()
    quantiles: tuple[float, ...] = ()
    linear: tuple[Linear, ...] = ()
    areas: bool = False
    attribute: str | None = None
    of_attributes: tuple[tuple[str, "EstimateOptions"], ...] = ()
    sampling: Sampling = ONE_REPORT_EACH

    def about(self, attribute: str) -> "EstimateOptions":
        """Return the options of an attribute of records: its own if it has any."""
        return dict(self.of_attributes).get(attribute, self)


REQUEST_KEYS: Final = {
    "": tuple(EstimateRequest.model_fields),
    "ranges": tuple(BoxRequest.model_fields),
    "linear": tuple(LinearRequest.model_fields),
}
"""The keys of a request, and of the entries of its lists."""
SETTINGS: Final = tuple(
    replace(setting, name=name, help=str(key.description))
    for name, key in EstimateRequest.model_fields.items()
    for setting in key.metadata
    if isinstance(setting, Setting)
)
"""All that may be asked, in the order of help texts."""

WORDS: Final = {setting.word: setting for setting in SETTINGS}
"""The same, by parameter of URLs and option of commands."""

KEYS: Final[Mapping[str, Resolve]] = {
    **dict.fromkeys(("estimand", "method", "confidence", "sharpest", "project", "top"), as_it_is),
    "ranges": each_named(make_range),
    "quantiles": check_quantiles,
    "linear": each_named(make_linear),
}
"""The options that can be configured (`ldpstream.agents.config.tables`)."""
