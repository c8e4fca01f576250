"""How a setting of a query is declared: as text, in a configuration file, and in options.

URLs and command lines are text, request bodies JSON, configurations TOML. A `Setting` says how text
and JSON become a value of the options, a `ConfigKey` how TOML does.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

from ldpstream.agents.config.query.errors import QueryError, refused
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.numbers import read_number, read_whole
from ldpstream.mechanisms.domains.parse import Domain

Resolve = Callable[[Any, Domain], Any]
"""Turns a value into that of the options; raises QueryError if it does not fit the domain."""


def as_it_is(value: Any, _: Domain) -> Any:
    """Return the value unchanged."""
    return value


@dataclass(frozen=True, kw_only=True)
class Text:
    """How one value is written in a URL or on a command line.

    `schema` is the JSON Schema of the text, `form` its shape in help texts. `read` returns the
    value as in JSON, and raises ValueError for a text that is not as `expected`.
    """

    schema: Mapping[str, Json]
    read: Callable[[str], Any]
    expected: str = "a text"
    form: str | None = None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One thing that may be asked; `name` is its key in a body and its field in the options.

    With `each` it may be repeated: `each` is the parameter's name, with one text per value. In a
    body it is a list, of entries like those of `example`.
    """

    text: Text
    help: str
    each: str | None = None
    example: Sequence[Any] = ()
    resolve: Resolve = as_it_is
    name: str = ""

    @property
    def word(self) -> str:
        """The parameter of a URL, and with two dashes the option of a command."""
        return self.each or self.name

    @property
    def description(self) -> str:
        """The parameter's help, after its form if the schema does not say it."""
        spelled = self.text.form is not None and self.text.schema == {"type": "string"}
        return f"{self.text.form}: {self.help}" if spelled else self.help

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of the key in a body; a wrong list is refused with what to write."""
        schema = handler(source)
        if self.each is None:
            return schema
        return no_info_before_validator_function(self._check_list, schema)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of the key in a body, with its description."""
        return {**handler(core), "description": self.help}

    def _check_list(self, given: Any) -> Any:
        example = json.dumps(self.example)
        if given is not None and not isinstance(given, list):
            raise refused(f"a list, such as {example}", given)
        # A model is an entry that has been checked already, and any whole number a number.
        types = (*map(type, self.example), BaseModel)
        for entry in given or ():
            if not (isinstance(entry, types) or (isinstance(entry, int) and float in types)):
                raise refused(f"entries as in {example}", entry)
        return given


@dataclass(frozen=True, kw_only=True)
class ConfigKey:
    """How an option is configured: in a collection's table, or in its `publish`.

    `type` is the type in TOML, by default the option's own. `default` is the option's own, too.
    `help` is for options that cannot be asked for, which no `Setting` describes; `example` is a
    value in TOML, for options that are empty by default.
    """

    table: Literal["collection", "publish"]
    type: Any = None
    resolve: Resolve = as_it_is
    default: Any = None
    help: str = ""
    example: Any = None


def choice(names: Any) -> Text:
    """Return the text form of a `Literal`."""
    known = get_args(names)
    return Text(
        schema={"type": "string", "enum": list(known)},
        read=lambda text: known[known.index(text)],
        expected=f"one of {', '.join(known)}",
    )


def spelled(form: str) -> Text:
    """Return a text of this form that is parsed later, when the domain is known."""
    return Text(schema={"type": "string"}, read=str, form=form)


def each_named(make: Callable[[str, Any, Domain], Any]) -> Resolve:
    """Return the resolver of a table of named queries; `make` resolves one of them."""

    def resolve(table: Mapping[str, Any], domain: Domain) -> tuple[Any, ...]:
        found = []
        for name, written in table.items():
            try:
                found.append(make(name, written, domain))
            except QueryError as error:
                raise QueryError(error.name, error.expected, entry=name) from error
        return tuple(found)

    return resolve


def _read_unit(text: str) -> float:
    return _open_unit(read_number(text))


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


FLAG: Final = Text(
    schema={"type": "boolean"},
    read=lambda text: bool(("false", "true").index(text)),
    expected="true or false",
)
UNIT: Final = Text(
    schema={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    read=_read_unit,
    expected="a number above 0 and below 1",
    form="P",
)
TOP: Final = Text(
    schema={"type": "string", "pattern": "^(all|[0-9]+)$"},
    read=_read_top,
    expected='a whole number or "all"',
    form="N|all",
)
Unit = Annotated[float, AfterValidator(_open_unit), WithJsonSchema(dict(UNIT.schema))]
"""A number above 0 and below 1, in JSON and TOML."""
