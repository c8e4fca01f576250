"""The one declaration of what may be asked of a collection, and of what a document contains.

A field of `EstimateRequest` with a `Setting` is a key of a request's body, a parameter of
`GET .../estimate`, an option of `query` and `estimate`, a keyword of the Python client, and a part
of `/openapi.json`. The field of `EstimateOptions` with the same name holds the resolved value and
is part of the ETag; with a `ConfigKey` it can be configured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, get_type_hints

from pydantic import AfterValidator, BeforeValidator, Field

from ldpstream.agents.config.query.errors import refused
from ldpstream.agents.config.query.queries import (
    BoxRequest,
    Linear,
    LinearRequest,
    RequestModel,
    Subset,
    check_areas,
    check_quantiles,
    make_linear,
    make_range,
    read_linear,
    read_ranges,
)
from ldpstream.agents.config.query.settings import (
    FLAG,
    TOP,
    UNIT,
    ConfigKey,
    Setting,
    Unit,
    choice,
    each_named,
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

QUERIES_LIMIT: Final = 100
"""The most ranges, quantiles and linear queries, of each kind, in one request."""
TOP_LIMIT: Final = 1_000
_SHARPEST_LIMIT: Final = 1_000_000_000_000

Projection = Literal["none", "simplex", "blocks", "power", "likelihood"]
"""`simplex`: the nearest distribution. `blocks`: the same, keeping each disclosed total. `power`:
means under a power law fitted to all shares, then `blocks`. `likelihood`: the smoothest
distribution that the reports do not contradict, where there is a likelihood."""
Time = Annotated[str, Field(max_length=40)] | int
_Many = Field(max_length=QUERIES_LIMIT)


def _top(top: int | str, _: Domain) -> int | None:
    return None if isinstance(top, str) else top


def _listed(top: Any) -> Any:
    if top == "all":
        # The number of values is not known here, and published documents are bounded.
        what = f"a whole number up to {TOP_LIMIT:,}, such as the number of values"
        raise refused(f"{what} (`query --top all` lists any)", top)
    return top


def _weights(given: Any) -> Any:
    numbers = list(given.values()) if isinstance(given, dict) else given
    if not (isinstance(numbers, list) and all(type(one) in (int, float) for one in numbers)):
        raise refused("a list of numbers, or a table of them by label", given)
    return given


class EstimateRequest(RequestModel):
    """What is asked about a span; missing fields are as the collection publishes them."""

    start: Time | None = Field(default=None, description="First moment of whole panes; with end")
    end: Time | None = Field(default=None, description="First moment after it")
    attribute: Annotated[
        Annotated[str, Field(max_length=64)] | None,
        Setting(
            text=spelled("NAME"),
            help="Of records: the attribute to estimate; by default each",
        ),
    ] = None
    top: Annotated[
        Annotated[int, Field(ge=0)] | Literal["all"] | None,
        Setting(
            text=TOP,
            help="The N largest shares, or all values in the domain's order",
            resolve=_top,
        ),
    ] = None
    ranges: Annotated[
        Annotated[list[Annotated[str, Field(max_length=1000)] | BoxRequest], _Many] | None,
        Setting(
            text=spelled("LO..HI[,LO..HI]|NAME"),
            help="The share between two values, both included, or on an interval between two edges "
            "of bins; one pair per dimension; or the share of a named block or published set",
            each="range",
            example=["0..9", {"name": "night", "bounds": [[0, 5]]}],
            resolve=read_ranges,
        ),
    ] = None
    quantiles: Annotated[
        Annotated[list[Unit], _Many] | None,
        Setting(
            text=UNIT,
            help="The smallest value that at least this share does not exceed; above 0, below 1",
            each="quantile",
            example=[0.25, 0.5],
            resolve=check_quantiles,
        ),
    ] = None
    linear: Annotated[
        Annotated[list[LinearRequest], _Many] | None,
        Setting(
            text=spelled("[NAME:]W,W,..."),
            help="The mean of a weight given for each value, in the domain's order",
            each="linear",
            example=[{"name": "fare", "weights": [2.5, 4]}],
            resolve=read_linear,
        ),
    ] = None
    areas: Annotated[
        bool | None,
        Setting(
            text=FLAG,
            help="Shares of all blocks, and of areas in them that differ from their surroundings",
            resolve=check_areas,
        ),
    ] = None
    estimand: Annotated[
        Estimand | None,
        Setting(
            text=choice(Estimand),
            help="Shares among those who report, in the population they are drawn from, or among "
            "all devices whose ledgers spread their budget",
        ),
    ] = None
    method: Annotated[
        Method | None,
        Setting(
            text=choice(Method),
            help="How bounds are made; anytime: they hold at every moment of a window at once; "
            "profile: by likelihood, for l1-geometric in one dimension",
        ),
    ] = None
    simultaneous: Annotated[
        bool | None, Setting(text=FLAG, help="Wider bounds, which all hold at once")
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
            "power: shrink towards a power law first, for the least total variation; "
            "likelihood: for l1-geometric in one dimension",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """What an estimate document contains, and how its bounds are made.

    `top` is the length of the list of values: None for the whole domain in its own order, 0 for no
    list. `ranges`, `quantiles` and `linear` keep their order. `sharpest` cannot be asked for,
    because anytime bounds require it to be fixed before looking; nor can `sampling`, which follows
    from the span and the collection. `of_attributes` are the options of attributes of records that
    have their own.
    """

    estimand: Annotated[Estimand, ConfigKey(table="collection")] = "respondents"
    method: Annotated[Method, ConfigKey(table="collection")] = "padded"
    simultaneous: bool = False
    confidence: Annotated[float, ConfigKey(table="collection", type=Unit)] = 0.95
    sharpest: Annotated[
        int,
        ConfigKey(
            table="collection",
            type=Annotated[int, Field(ge=1, le=_SHARPEST_LIMIT)],
            help="Reports at which anytime bounds are narrowest",
        ),
    ] = SHARPEST
    project: Projection = "none"
    top: Annotated[
        int | None,
        ConfigKey(
            table="publish",
            type=Annotated[int, Field(ge=0, le=TOP_LIMIT), BeforeValidator(_listed)],
            help="The N largest shares; the number of values lists them all",
        ),
    ] = 20
    ranges: Annotated[
        tuple[Subset, ...],
        ConfigKey(
            table="publish",
            type=dict[str, list[Any]],
            resolve=each_named(make_range),
            example={"night": [0, 5]},
        ),
    ] = ()
    quantiles: Annotated[
        tuple[float, ...],
        ConfigKey(
            table="publish", type=list[Unit], resolve=check_quantiles, example=[0.25, 0.5, 0.75]
        ),
    ] = ()
    linear: Annotated[
        tuple[Linear, ...],
        ConfigKey(
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
    replace(setting, name=name)
    for name, key in EstimateRequest.model_fields.items()
    for setting in key.metadata
    if isinstance(setting, Setting)
)
"""All that may be asked, in the order of help texts."""

WORDS: Final = {setting.word: setting for setting in SETTINGS}
"""The same, by parameter of URLs and option of commands."""

KEYS: Final[Mapping[str, ConfigKey]] = {
    name: replace(key, type=key.type or hint.__origin__, default=getattr(EstimateOptions, name))
    for name, hint in get_type_hints(EstimateOptions, include_extras=True).items()
    for key in getattr(hint, "__metadata__", ())
}
"""All that can be configured, by name."""
