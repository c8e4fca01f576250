"""Queries about the values of a domain: ranges, linear queries, areas and quantiles.

They are read here, from texts and bodies, and checked to fit the domain.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from ldpstream.agents.config.errors import refused
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.numbers import read_number, trimmed
from ldpstream.mechanisms.domains.atoms import Atoms
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.domains.queries import (
    Linear,
    Subset,
    ValueSet,
    make_linear,
    make_range,
    make_set,
)

_MAX_VALUES_WITH_AREAS: Final = 100_000
_NAMES: Final = "a domain with an order; of labels the name of a block or of a set in publish.sets"
_NAMED: Final = re.compile(r"(?:([A-Za-z0-9._-]{1,40}):)?(.*)", re.DOTALL)

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are refused, so that none is misspelt and ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _NamedQuery(RequestModel):
    name: str = Field(min_length=1, max_length=100)


class BoxRequest(_NamedQuery):
    """A named range, or a named set of values."""

    bounds: list[Annotated[list[_Finite], Field(min_length=2, max_length=2)]] | None = Field(
        default=None,
        min_length=1,
        description="[low, high], both included, or edges of bins; one pair per dimension",
    )
    values: list[str | int] | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        description="In place of bounds: the labels of a set",
    )

    @field_validator("values")
    @classmethod
    def _check_one(
        cls, values: list[str | int] | None, info: ValidationInfo
    ) -> list[str | int] | None:
        if (values is None) == (info.data.get("bounds") is None) and "bounds" in info.data:
            raise refused("either bounds or values", values)
        return values


class LinearRequest(_NamedQuery):
    """A function of the value, whose mean is estimated."""

    weights: list[_Finite] | dict[str, _Finite] = Field(
        description="One weight per value in the domain's order (the last dimension fastest), or "
        "by label, where missing ones weigh 0"
    )


def read_ranges(queries: Sequence[str | BoxRequest | Subset], domain: Domain) -> tuple[Subset, ...]:
    """Return the ranges and sets that are asked for, as texts or in a body.

    Names of blocks and of published queries have been replaced by what they name
    (`ldpstream.agents.config.query.capabilities`).
    """
    return tuple(_read_range(query, domain) for query in queries)


def _read_range(query: str | BoxRequest | Subset, domain: Domain) -> Subset:
    if isinstance(query, str):
        return parse_range(query, domain)
    if isinstance(query, Subset):
        return query
    if query.values is not None:
        return make_set(query.name, query.values, domain)
    return make_range(query.name, query.bounds or [], domain)


def name_block(name: str, blocks: Blocks) -> ValueSet | None:
    """Return the values of the block of this name; None if no block has it."""
    if blocks.names is None or name not in blocks.names:
        return None
    return ValueSet(name, np.flatnonzero(blocks.of_value == blocks.names.index(name)))


def parse_range(text: str, domain: Domain) -> Subset:
    """Parse `LO..HI[,LO..HI]`; the range is named by this text."""
    if not domain.written.ordered:
        raise QueryError("range", f"{_NAMES}, got {text[:40]!r}")
    pairs = [text_of_axis.split("..") for text_of_axis in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise QueryError("range", f"LO..HI, one per dimension, separated by commas, got {text!r}")
    try:
        ends = [tuple(read_number(trimmed(end)) for end in pair) for pair in pairs]
    except ValueError:
        raise QueryError("range", f"LO..HI with numbers, got {text!r}") from None
    return make_range(text, ends, domain)


def read_linear(queries: Sequence[str | LinearRequest], domain: Domain) -> tuple[Linear, ...]:
    """Return the linear queries that are asked for, as texts or in a body."""
    return tuple(
        parse_linear(query, domain, position)
        if isinstance(query, str)
        else make_linear(query.name, query.weights, domain)
        for position, query in enumerate(queries, start=1)
    )


def parse_linear(text: str, domain: Domain, position: int) -> Linear:
    """Parse `[NAME:]W,W,...`, with one weight per value of the domain, or `[NAME:]LABEL=W,...`.

    Labels that are not named weigh 0. Without a name it is called `linear-1`, and so on, by its
    position from 1.
    """
    match = _NAMED.fullmatch(text)
    assert match is not None, "the pattern takes every text"
    entries = [entry.rpartition("=") for entry in match[2].split(",")]
    try:
        numbers = [read_number(trimmed(number)) for *_, number in entries]
    except ValueError:
        numbers = []
    labels = [trimmed(label) for label, equals, _ in entries if equals]
    if not numbers or len(labels) not in (0, len(numbers)):
        what = "[NAME:]W,W,... with a number for each value, or [NAME:]LABEL=W,..."
        raise QueryError("linear", what)
    if len(set(labels)) < len(labels):
        raise QueryError("linear", "each label once")
    weights = dict(zip(labels, numbers, strict=True)) if labels else numbers
    return make_linear(match[1] or f"linear-{position}", weights, domain)


def check_areas(areas: bool, domain: Domain) -> bool:
    """Return whether areas are asked for."""
    most = _MAX_VALUES_WITH_AREAS
    if areas and domain.size > most:
        raise QueryError("areas", f"a domain of at most {most} values, got {domain.size}")
    return areas


def check_quantiles(quantiles: Sequence[float], domain: Domain) -> tuple[float, ...]:
    """Return the quantiles: of an ordered dimension, or along each axis of several."""
    if quantiles and not domain.ordered:
        merged = domain.unions if isinstance(domain, Atoms) else None
        raise QueryError("quantile", merged or "an ordered domain")
    if len(set(quantiles)) < len(quantiles):
        raise QueryError("quantile", "each number once")
    return tuple(quantiles)
