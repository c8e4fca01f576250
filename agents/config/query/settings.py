"""How what may be asked is written as text: in URLs and on command lines.

A request's body has the same keys, in JSON (`ldpstream.agents.config.query.options`).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, WithJsonSchema

from ldpstream.agents.config.errors import refused
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.numbers import read_number, read_whole
from ldpstream.mechanisms.domains.parse import Domain

Resolve = Callable[[Any, Domain], Any]
"""Turns a value into that of the options; raises QueryError if it does not fit the domain."""


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
        resolved = []
        for name, written in table.items():
            try:
                resolved.append(make(name, written, domain))
            except QueryError as error:
                raise QueryError(error.name, error.expected, entry=name) from error
        return tuple(resolved)

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


FLAG: Final = Setting(
    schema={"type": "boolean"},
    read=lambda text: bool(("false", "true").index(text)),
    expected="true or false",
)
UNIT: Final = Setting(
    schema={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    read=_read_unit,
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
