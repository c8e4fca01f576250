"""The body of a request for an estimate: the same words as the parameters, for larger questions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ldpstream.agents.http.limits import QUERIES_LIMIT
from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.query.linear import LinearError, make_linear
from ldpstream.agents.query.options import (
    EstimateOptions,
    Projection,
    QueryError,
    make_range,
    parse_range,
    read_options,
)
from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.mechanisms.domains.parse import Domain

Finite = Annotated[float, Field(allow_inf_nan=False)]
Unit = Annotated[float, Field(gt=0.0, lt=1.0)]
Time = Annotated[str, Field(max_length=40)] | int


class Asked(BaseModel):
    """Base of what is asked: closed, so that a word that is misspelt is not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class BoxRequest(Asked):
    """A range with a name of its own."""

    name: str = Field(min_length=1, max_length=100)
    bounds: list[Annotated[list[Finite], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, description="[low, high], both included; one pair a dimension"
    )


class LinearRequest(Asked):
    """A function of the value, whose mean is estimated."""

    name: str = Field(min_length=1, max_length=100)
    weights: list[Finite] | dict[str, Finite] = Field(
        description="One weight a value in the domain's own order (the last dimension fastest), or "
        "by label, where those that are left out weigh 0"
    )


class EstimateRequest(Asked):
    """What is asked of a span; what is left out is as the collection publishes it."""

    start: Time | None = Field(default=None, description="First moment of whole panes; with end")
    end: Time | None = Field(default=None, description="First moment after it")
    top: Annotated[int, Field(ge=0)] | Literal["all"] | None = None
    ranges: list[Annotated[str, Field(max_length=1000)] | BoxRequest] | None = Field(
        default=None,
        max_length=QUERIES_LIMIT,
        description="LO..HI[,LO..HI], or a name and bounds",
    )
    quantiles: list[Unit] | None = Field(default=None, max_length=QUERIES_LIMIT)
    linear: list[LinearRequest] | None = Field(default=None, max_length=QUERIES_LIMIT)
    estimand: Estimand | None = None
    method: Method | None = None
    simultaneous: bool | None = None
    confidence: Unit | None = None
    project: Projection | None = None


def read_body(raw: bytes) -> EstimateRequest:
    """Return what a body asks.

    Raises:
        AnswerError: 400, naming the first key that is wrong and what was expected.
    """
    try:
        return EstimateRequest.model_validate_json(raw)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in detail["loc"]) or "body"
        raise AnswerError(400, f"{where}: {_plain(detail['msg'])}") from error


def options_of(
    asked: EstimateRequest, defaults: EstimateOptions, domain: Domain
) -> EstimateOptions:
    """Return the collection's options, and what is asked instead.

    Raises:
        AnswerError: 400, naming the key and what was expected.
    """
    try:
        options = read_options(
            defaults,
            domain,
            estimand=asked.estimand,
            method=asked.method,
            simultaneous=asked.simultaneous,
            confidence=asked.confidence,
            project=asked.project,
            top=asked.top,
            quantiles=asked.quantiles or (),
        )
        if asked.quantiles == []:
            options = replace(options, quantiles=())
        if asked.ranges is not None:
            options = replace(options, ranges=tuple(_ranges(asked.ranges, domain)))
        if asked.linear is not None:
            linear = (make_linear(one.name, one.weights, domain) for one in asked.linear)
            options = replace(options, linear=tuple(linear))
    except LinearError as error:
        raise AnswerError(400, f"linear: expected {error}") from error
    except QueryError as error:
        raise AnswerError(400, str(error)) from error
    return options


def _ranges(asked: Sequence[str | BoxRequest], domain: Domain) -> Any:
    for one in asked:
        if isinstance(one, str):
            yield parse_range(one, domain)
        else:
            yield make_range(one.name, one.bounds, domain)


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:200]
