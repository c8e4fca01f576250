"""The one declaration of what may be asked of a collection, and of what a document contains.

A field of `EstimateRequest` with a `Setting` is a key of a request's body, a parameter of
`GET .../estimate`, an option of `query` and `estimate`, a keyword of the Python client, and a part
of `/openapi.json`. The field of `EstimateOptions` with the same name holds the resolved value and
is part of the ETag. Some can be configured, in tables with keys of the same names.

A `Setting` says how it is written as text, in URLs and on command lines; a request's body has the
same keys, in JSON.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema

from ldpstream.agents.config.errors import refused
from ldpstream.agents.config.query.queries import (
    BoxRequest,
    LinearRequest,
    RequestModel,
    check_areas,
    check_quantiles,
    read_linear,
    read_ranges,
)
from ldpstream.estimators.bounds.options import (
    ONE_REPORT_EACH,
    SHARPEST,
    Estimand,
    Method,
    Sampling,
)
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.numbers import read_number, read_whole
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.domains.queries import Linear, Subset, make_linear, make_range

Resolve = Callable[[Any, Domain], Any]
"""Turns a value into that of the options; raises QueryError if it does not fit the domain."""

QUERIES_LIMIT: Final = 100
"""The most ranges, quantiles and linear queries, of each kind, in one request."""
TOP_LIMIT: Final = 1_000

Projection = Literal["none", "ordered", "simplex", "blocks"]
"""`ordered`: shares that agree with the order of values, from a tree down, or of the monotone
cumulative curve of one dimension. `simplex`: the nearest distribution. `blocks`: the same, keeping
each disclosed total."""
Time = Annotated[str, Field(max_length=40)] | int
_Many = Field(max_length=QUERIES_LIMIT)


def as_it_is(value: Any, _: Domain) -> Any:
    """Return the value unchanged."""
    return value


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One thing that may be asked; `name` is its key in a body and its field in the options.

    `schema` is the JSON Schema of its text, `form` the text's shape in help texts. `read` returns
    the value as in JSON, and raises ValueError for a text that is not as `expected`. `repeated`: it
    may be given several times, with one text for each entry of the body's list.
    """

    schema: Mapping[str, Json]
    read: Callable[[str], Any] = str
    expected: str = "a text"
    form: str | None = None
    repeated: bool = False
    resolve: Resolve = as_it_is
    name: str = ""
    help: str = ""

    @property
    def word(self) -> str:
        """The parameter of a URL, and with two dashes the option of a command."""
        return self.name.removesuffix("s") if self.repeated else self.name

    @property
    def description(self) -> str:
        """The parameter's help, after its form if the schema does not say it."""
        spelled = self.form is not None and self.schema == {"type": "string"}
        return f"{self.form}: {self.help}" if spelled else self.help


def entries_like(*example: Any) -> BeforeValidator:
    """Return the validator of a body's list, which is refused with an example of what to write."""
    # A model is an entry that has been checked already, and any whole number a number.
    types = (*map(type, example), BaseModel)
    numbers, written = float in types, json.dumps(example)

    def check(value: Any) -> Any:
        if value is not None and not isinstance(value, list):
            raise refused(f"a list, such as {written}", value)
        for entry in value or ():
            if not (isinstance(entry, types) or (isinstance(entry, int) and numbers)):
                raise refused(f"entries as in {written}", entry)
        return value

    return BeforeValidator(check)


def choice(names: Any) -> Setting:
    """Return a setting with the names of a `Literal`."""
    names_known = get_args(names)
    return Setting(
        schema={"type": "string", "enum": list(names_known)},
        read=lambda text: names_known[names_known.index(text)],
        expected=f"one of {', '.join(names_known)}",
    )


def spelled(form: str, *, repeated: bool = False, resolve: Resolve = as_it_is) -> Setting:
    """Return a setting in texts of this form, which are parsed once the domain is known."""
    return Setting(schema={"type": "string"}, form=form, repeated=repeated, resolve=resolve)


def each_named(make: Callable[[str, Any, Domain], Any]) -> Resolve:
    """Return the resolver of a table of named queries; `make` resolves one of them."""

    def resolve(table: Mapping[str, Any], domain: Domain) -> tuple[Any, ...]:
        resolved: dict[str, Any] = {}
        for name, written in table.items():
            if (spelled := canonical_text(name)) in resolved:
                raise QueryError("name", "each name once", entry=name)
            try:
                resolved[spelled] = make(spelled, written, domain)
            except QueryError as error:
                raise QueryError(error.name, error.expected, entry=name) from error
        return tuple(resolved.values())

    return resolve


def _open_unit(number: float) -> float:
    if not 0.0 < number < 1.0:
        raise refused(UNIT.expected, number)
    return number


def _read_top(text: str) -> int | str:
    if text == "all":
        return text
    if not text.isdigit():
        raise ValueError(text)
    return read_whole(text)


FLAG: Final = Setting(
    schema={"type": "boolean"},
    read=lambda text: bool(("false", "true").index(text)),
    expected="true or false",
)
UNIT: Final = Setting(
    schema={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    read=lambda text: _open_unit(read_number(text)),
    expected="a number above 0 and below 1",
    form="P",
)
TOP: Final = Setting(
    schema={"type": "string", "pattern": "^(all|[0-9]+)$"},
    read=_read_top,
    expected='a whole number or "all"',
    form="N|all",
)
Unit = Annotated[float, AfterValidator(_open_unit), WithJsonSchema(dict(UNIT.schema))]
"""A number above 0 and below 1, in JSON and TOML."""


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
        spelled("[NAME:]W,W,...|LABEL=W,...", repeated=True, resolve=read_linear),
    ] = Field(
        default=None,
        description="The mean of a weight given for each value, in the domain's order, or by "
        "label, where all others weigh 0",
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
        description="How bounds are made; anytime: they hold at every moment of a window at once",
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
        "ordered values, the default with tree; none: unbiased; blocks: keep each disclosed total",
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
