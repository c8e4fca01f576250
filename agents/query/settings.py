"""What declares a setting of a query: its texts, its key in a file, and what options hold of it.

Addresses and command lines are made of texts, bodies of JSON, configurations of TOML. A `Setting`
says how the first two become a value of the options, a `Key` how the third does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema

from ldpstream.agents.query.errors import QueryError, refused
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.domains.parse import Domain

Resolve = Callable[[Any, Domain], Any]
"""What options hold of a value over a domain; raises QueryError where it does not fit it."""

_DIGITS: Final = 18  # of a whole number: no list is longer, and reading more takes long
_SHOWN: Final = 40  # characters of a text in a refusal


def as_it_is(value: Any, _: Domain) -> Any:
    """Return a value that needs no domain."""
    return value


@dataclass(frozen=True, kw_only=True)
class Text:
    """How one value is written in an address or on a command line.

    `schema` is the JSON Schema of the text, `form` its shape in help texts. `read` returns the
    value as JSON has it, and raises ValueError for a text that is not what is `expected`.
    """

    schema: Mapping[str, Json]
    read: Callable[[str], Any]
    expected: str = "a text"
    form: str | None = None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One thing that may be asked; `name` is its key in a body and its field in the options.

    With `each` any number may be asked, each in a text of its own under that word.
    """

    text: Text
    help: str
    each: str | None = None
    resolve: Resolve = as_it_is
    name: str = ""

    @property
    def word(self) -> str:
        """The parameter of an address, and with two dashes the option of a command."""
        return self.each or self.name

    @property
    def description(self) -> str:
        """What the parameter is, with the form of a text that has no other schema."""
        spelled = self.text.form is not None and self.text.schema == {"type": "string"}
        return f"{self.text.form}: {self.help}" if spelled else self.help

    def read(self, texts: Sequence[str]) -> Any:
        """Return the value that one or more texts write, as a body would hold it.

        Raises:
            QueryError: for a text that is not as expected.
        """
        values = []
        for text in texts:
            try:
                values.append(self.text.read(text))
            except ValueError:
                got = f"{self.text.expected}, got {text[:_SHOWN]}"
                raise QueryError(self.word, got) from None
        return values if self.each else values[-1]

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of the key in a body, described."""
        return {**handler(core), "description": self.help}


@dataclass(frozen=True, kw_only=True)
class Key:
    """Where an option is configured: in a collection's table, or in its `publish`.

    `type` is what TOML gives, by default the option's own type. What is not configured holds the
    option's own `default`. `help` is for what cannot be asked, which no `Setting` describes;
    `example` a value as TOML gives it, for what is nothing by default.
    """

    table: Literal["collection", "publish"]
    type: Any = None
    resolve: Resolve = as_it_is
    default: Any = None
    help: str = ""
    example: Any = None


def choice(names: Any) -> Text:
    """Return how one of the names of a `Literal` is written."""
    known = get_args(names)
    return Text(
        schema={"type": "string", "enum": list(known)},
        read=lambda text: known[known.index(text)],
        expected=f"one of {', '.join(known)}",
    )


def spelled(form: str) -> Text:
    """Return how a text of this form is written, which is read with the domain at hand."""
    return Text(schema={"type": "string"}, read=str, form=form)


def each_named(make: Callable[[str, Any, Domain], Any]) -> Resolve:
    """Return how a table of queries by name is resolved, where `make` resolves one of them."""

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
    return _open_unit(float(text))


def _open_unit(number: float) -> float:
    if not 0.0 < number < 1.0:
        raise refused(UNIT.expected, number)
    return number


def _read_top(text: str) -> int | str:
    if text == "all":
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise ValueError(text)
    return int(text)


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
"""The same number in JSON and TOML."""
