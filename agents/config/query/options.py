"""The one declaration of what may be asked of a collection, and of what a document contains.

A field of `EstimateRequest` with a `Setting` (`ldpstream.agents.config.query.settings`) is a key of
a request's body, a parameter of `GET .../estimate`, an option of `query` and `estimate`, a keyword
of the Python client, and a part of `/openapi.json`. The field of `EstimateOptions` with the same
name holds the resolved value and is part of the ETag. Some can be configured, in tables with keys
of the same names.

A `Setting` says how it is written as text, in URLs and on command lines; a request's body has the
same keys, in JSON.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

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
from ldpstream.agents.config.query.settings import HELPS, UNIT, Projection
from ldpstream.estimators.bounds.options import (
    ONE_REPORT_EACH,
    SHARPEST,
    Estimand,
    Method,
    Sampling,
)
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.domains.queries import Linear, Subset, make_linear, make_range

Resolve = Callable[[Any, Domain], Any]
"""Turns a value into that of the options; raises QueryError if it does not fit the domain."""

QUERIES_LIMIT: Final = 100
"""The most ranges, quantiles and linear queries, of each kind, in one request."""
TOP_LIMIT: Final = 1_000

Time = Annotated[str, Field(max_length=40)] | int
_Many = Field(max_length=QUERIES_LIMIT)


def as_it_is(value: Any, _: Domain) -> Any:
    """Return the value unchanged."""
    return value


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


Unit = Annotated[float, AfterValidator(_open_unit), WithJsonSchema(dict(UNIT.schema))]
"""A number above 0 and below 1, in JSON and TOML."""


def _setting(name: str) -> Any:
    return Field(default=None, description=HELPS[name])


def _top(top: int | str, _: Domain) -> int | None:
    return None if isinstance(top, str) else top


class EstimateRequest(RequestModel):
    """What is asked about a span; missing fields are as the collection publishes them."""

    start: Time | None = Field(default=None, description="First moment of whole panes; with end")
    end: Time | None = Field(default=None, description="First moment after it")
    attribute: Annotated[str, Field(max_length=64)] | None = _setting("attribute")
    top: Annotated[int, Field(ge=0)] | Literal["all"] | None = _setting("top")
    ranges: Annotated[
        Annotated[list[Annotated[str, Field(max_length=1000)] | BoxRequest], _Many] | None,
        entries_like("0..9", {"name": "night", "bounds": [[0, 5]]}),
    ] = _setting("ranges")
    quantiles: Annotated[Annotated[list[Unit], _Many] | None, entries_like(0.25, 0.5)] = _setting(
        "quantiles"
    )
    linear: Annotated[
        Annotated[list[LinearRequest], _Many] | None,
        entries_like({"name": "fare", "weights": [2.5, 4]}),
    ] = _setting("linear")
    areas: bool | None = _setting("areas")
    estimand: Estimand | None = _setting("estimand")
    method: Method | None = _setting("method")
    simultaneous: bool | None = _setting("simultaneous")
    confidence: Unit | None = _setting("confidence")
    project: Projection | None = _setting("project")


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
KEYS: Final[Mapping[str, Resolve]] = {
    **dict.fromkeys(("estimand", "method", "confidence", "sharpest", "project", "top"), as_it_is),
    "ranges": each_named(make_range),
    "quantiles": check_quantiles,
    "linear": each_named(make_linear),
}
"""The options that can be configured (`ldpstream.agents.config.tables`)."""
RESOLVERS: Final[Mapping[str, Resolve]] = {
    **dict.fromkeys(HELPS, as_it_is),
    "top": _top,
    "ranges": read_ranges,
    "quantiles": check_quantiles,
    "linear": read_linear,
    "areas": check_areas,
}
"""How each setting's value becomes that of the options."""
