"""Parameters of requests: their descriptions, and readers whose errors name them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from aiohttp import web
from multidict import MultiMapping

from ldpstream.agents.query.options import SETTINGS
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.times import parse_time

Format = Literal["json", "csv"]
CONTENT_TYPES: Final[dict[Format, str]] = {"json": "application/json", "csv": "text/csv"}
_WINDOWS_DEFAULT: Final = 100
WINDOWS_LIMIT: Final = 10_000
_DIGITS: Final = 9
_TIME: Final = "RFC 3339 with Z or an offset (in a URL, + is %2B), or epoch milliseconds"


class AnswerError(Exception):
    """A request is refused: the HTTP status, and a text for `{"error": ...}`."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(frozen=True)
class Parameter:
    """One query parameter; `schema` is its JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Json] = field(default_factory=lambda: {"type": "string"})
    repeated: bool = False


@dataclass(frozen=True)
class Page:
    """At most `number` windows: the oldest after `after_ms` if `forward`, else the newest."""

    number: int
    forward: bool
    after_ms: int | None


FORMAT: Final = Parameter(
    "format",
    "Overrides the header Accept, which may ask for text/csv",
    {"type": "string", "enum": ["json", "csv"]},
)
FINGERPRINT: Final = Parameter(
    "fingerprint",
    "Fingerprint of an earlier spec that the collection accepts; by default its own",
)
STATUS: Final = (FINGERPRINT,)
WINDOWS: Final = (
    Parameter(
        "last",
        f"The most windows, the newest of the span; {_WINDOWS_DEFAULT} by default",
        {"type": "integer", "minimum": 1, "maximum": WINDOWS_LIMIT, "default": _WINDOWS_DEFAULT},
    ),
    Parameter("from", f"Only windows that start at this time or later: {_TIME}"),
    Parameter("to", f"Only windows that end at this time or earlier: {_TIME}"),
    Parameter("all", f"As last={WINDOWS_LIMIT}", {"type": "boolean", "default": False}),
    Parameter(
        "limit",
        "The most windows, the oldest of the span: for reading forward, page by page",
        {"type": "integer", "minimum": 1, "maximum": WINDOWS_LIMIT},
    ),
    Parameter("after", f"Only windows that start after this time, to read forward: {_TIME}"),
    FORMAT,
    FINGERPRINT,
)
EVENTS: Final = (
    Parameter(
        "after",
        "Start with all finals of windows that start after this time; by default, only what comes "
        f"from now on. The header Last-Event-ID means the same, and overrides it: {_TIME}",
    ),
    FINGERPRINT,
)
ESTIMATE: Final = (
    Parameter("start", f"First moment of a span of whole panes: {_TIME}; with end"),
    Parameter("end", "First moment after the span; without start and end, the newest window"),
    *(Parameter(one.word, one.description, one.text.schema, bool(one.each)) for one in SETTINGS),
    FORMAT,
    FINGERPRINT,
)


def check_names(query: MultiMapping[str], parameters: Sequence[Parameter]) -> None:
    """Refuse unknown parameters, and those given twice that cannot be repeated.

    Raises:
        AnswerError: 400, naming the parameter.
    """
    names = {parameter.name: parameter for parameter in parameters}
    for name in dict.fromkeys(query.keys()):
        if name not in names:
            expected = f"one of {', '.join(names)}" if names else "no parameters"
            raise AnswerError(400, f"{name[:40]}: unknown parameter; expected {expected}")
        if len(query.getall(name)) > 1 and not names[name].repeated:
            raise AnswerError(400, f"{name}: expected once, got {len(query.getall(name))} times")


def wanted_format(request: web.Request) -> Format:
    """Return the format that the parameter `format` names, or else the one Accept prefers.

    Raises:
        AnswerError: 400, for an unknown format.
    """
    text = request.query.get("format")
    if text is None:
        # CSV if it is named and preferred to JSON; a wildcard means JSON.
        liked = {"text/csv": 0.0, "application/json": 0.0}
        for part in request.headers.get("Accept", "").split(","):
            kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
            if kind in liked:
                given = (_quality(one) for one in parameters if one.startswith("q="))
                liked[kind] = max(given, default=1.0)
        return "csv" if liked["text/csv"] > liked["application/json"] else "json"
    if text == "json":
        return "json"
    if text == "csv":
        return "csv"
    raise AnswerError(400, f"format: expected json or csv, got {text[:40]!r}")


def _quality(parameter: str) -> float:
    try:
        return min(max(float(parameter.removeprefix("q=")), 0.0), 1.0)
    except ValueError:
        return 0.0


def read_time(given: Mapping[str, str], name: str) -> int | None:
    """Return a time in epoch milliseconds, None where it is not given.

    Raises:
        AnswerError: 400, for an invalid time.
    """
    text = given.get(name)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        raise AnswerError(400, f"{name}: expected a time, {_TIME}, got {text[:40]!r}") from None


def _read_flag(query: MultiMapping[str], name: str) -> bool:
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise AnswerError(400, f"{name}: expected true or false, got {text[:40]!r}")
    return text == "true"


def read_page(query: MultiMapping[str]) -> Page:
    """Return which windows of a span are asked for.

    Raises:
        AnswerError: 400, for an invalid number, or contradicting parameters.
    """
    given = [name for name in ("last", "all", "limit", "after") if name in query]
    forward = "limit" in query or "after" in query
    if forward and ("last" in query or "all" in query):
        raise AnswerError(400, f"{given[0]}: expected last or all, or limit and after, not both")
    after_ms = read_time(query, "after")
    if forward:
        return Page(_read_number(query, "limit"), True, after_ms)
    if _read_flag(query, "all"):
        if "last" in query:
            raise AnswerError(400, "last: expected last or all=true, got both")
        return Page(WINDOWS_LIMIT, False, None)
    return Page(_read_number(query, "last"), False, None)


def _read_number(query: MultiMapping[str], name: str) -> int:
    text = query.get(name)
    if text is None:
        return _WINDOWS_DEFAULT
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
    if not 1 <= number <= WINDOWS_LIMIT:
        raise AnswerError(
            400, f"{name}: expected a whole number in 1..{WINDOWS_LIMIT}, got {text[:40]!r}"
        )
    return number
