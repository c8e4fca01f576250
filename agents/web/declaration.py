"""How operations and their parameters are declared: routes, checks and OpenAPI follow from it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from aiohttp import web
from pydantic import BaseModel

from ldpstream.agents.config.query.settings import SETTINGS
from ldpstream.mechanisms.base.canonical import Json

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Format = Literal["json", "csv"]
CONTENT_TYPES: Final[dict[Format, str]] = {"json": "application/json", "csv": "text/csv"}
WINDOWS_DEFAULT: Final = 100
WINDOWS_LIMIT: Final = 10_000
POINTS_DEFAULT: Final = 100
POINTS_LIMIT: Final = 500
SERIES_TOP_LIMIT: Final = 100
TIME_FORM: Final = "RFC 3339 with Z or an offset (in a URL, + is %2B), or epoch milliseconds"


@dataclass(frozen=True)
class Parameter:
    """One query parameter; `schema` is its JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Json] = field(default_factory=lambda: {"type": "string"})
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation.

    `answer` is the model of a JSON answer, None for text of type `text`. `errors` are statuses that
    answer with a `Problem`, in addition to those that follow from its path and `public`. `unready`:
    503 answers with `answer`, too; `endless`: the answer is a stream; `public`: it needs no token;
    `csv`: it can answer CSV; `tagged`: it has an ETag. With a `body`, a JSON model, it is a POST.
    """

    path: str
    summary: str
    handler: Handler
    answer: type[BaseModel] | None
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[int, ...] = ()
    unready: bool = False
    endless: bool = False
    public: bool = False
    text: str = "text/plain"
    csv: bool = False
    tagged: bool = False
    body: type[BaseModel] | None = None

    @property
    def method(self) -> str:
        """The HTTP method, as OpenAPI writes it."""
        return "get" if self.body is None else "post"

    @property
    def refusals(self) -> frozenset[int]:
        """All statuses that answer with a `Problem`."""
        statuses = {400, 421, *self.errors}
        if not self.public:
            statuses |= {401, 403}
        if "{name}" in self.path:
            # 503: no worker of the collection's shard answers.
            statuses |= {404, 503}
        return frozenset(statuses)


FORMAT: Final = Parameter(
    "format",
    "A table with a row for each entry, or the document",
    {"type": "string", "enum": ["json", "csv"], "default": "json"},
)
FINGERPRINT: Final = Parameter(
    "fingerprint",
    "Fingerprint of an earlier spec that the collection accepts; by default its own",
)
STATUS: Final = (FINGERPRINT,)
METRICS: Final = (
    Parameter("name[]", "Only the metrics of this name; may be repeated", repeated=True),
)
WINDOWS: Final = (
    Parameter(
        "last",
        f"The most windows, the newest of the span; {WINDOWS_DEFAULT} by default",
        {"type": "integer", "minimum": 1, "maximum": WINDOWS_LIMIT, "default": WINDOWS_DEFAULT},
    ),
    Parameter("from", f"Only windows that start at this time or later: {TIME_FORM}"),
    Parameter("to", f"Only windows that end at this time or earlier: {TIME_FORM}"),
    Parameter("all", f"As last={WINDOWS_LIMIT}", {"type": "boolean", "default": False}),
    Parameter(
        "limit",
        "The most windows, the oldest of the span: for reading forward, page by page",
        {"type": "integer", "minimum": 1, "maximum": WINDOWS_LIMIT},
    ),
    Parameter("after", f"Only windows that start after this time, to read forward: {TIME_FORM}"),
    FINGERPRINT,
)
EVENTS: Final = (
    Parameter(
        "after",
        "Start with all finals of windows that start after this time; by default, only what comes "
        f"from now on. The header Last-Event-ID means the same, and overrides it: {TIME_FORM}",
    ),
    FINGERPRINT,
)
_SPAN: Final = (
    Parameter("start", f"First moment of a span of whole panes: {TIME_FORM}; with end"),
    Parameter("end", "First moment after the span; without start and end, the newest window"),
)


def _settings(*names: str) -> tuple[Parameter, ...]:
    """Return the parameters of what may be asked about a span, by default of all."""
    return tuple(
        Parameter(setting.word, setting.description, setting.schema, setting.repeated)
        for setting in SETTINGS
        if not names or setting.name in names
    )


ESTIMATE: Final = (*_SPAN, *_settings(), FORMAT, FINGERPRINT)
CHANGE: Final = (
    *_SPAN,
    Parameter("before_start", "The same of the span to compare with; with before_end"),
    Parameter(
        "before_end",
        "First moment after it; without before_start and before_end, as many panes before start",
    ),
    *_settings("attribute", "top", "ranges", "quantiles", "linear", "method", "confidence"),
    Parameter(
        "blocks",
        "The shares of all disclosed blocks, too",
        {"type": "boolean", "default": False},
    ),
    Parameter(
        "devices",
        "That each report of both spans comes from another device, which the configuration need "
        "not guarantee: bounds are narrower",
        {"type": "string", "enum": ["different"]},
    ),
    FORMAT,
    FINGERPRINT,
)
_POINTS: Final = (
    Parameter("start", f"Only windows that start at this time or later: {TIME_FORM}"),
    Parameter("end", f"Only windows that end at this time or earlier: {TIME_FORM}"),
    Parameter(
        "points",
        f"The most points; more windows are added up in groups. {POINTS_DEFAULT} by default, or "
        "as many as can be computed",
        {"type": "integer", "minimum": 1, "maximum": POINTS_LIMIT, "default": POINTS_DEFAULT},
    ),
    Parameter(
        "top",
        "The N largest values of the newest final point that shows any, 1 by default",
        {"type": "integer", "minimum": 0, "maximum": SERIES_TOP_LIMIT, "default": 1},
    ),
    Parameter(
        "published",
        "The published ranges, quantiles and linear queries, too",
        {"type": "boolean", "default": False},
    ),
    Parameter(
        "headline",
        "Only lines of the first kind there is: quantiles, ranges, the largest values, means",
        {"type": "boolean", "default": False},
    ),
    *_settings("estimand", "method", "confidence"),
    Parameter(
        "last",
        "Only the newest N windows",
        {"type": "integer", "minimum": 1, "maximum": POINTS_LIMIT},
    ),
    Parameter(
        "status",
        "The progress, the newest final window and the oldest open one, and what changed from one "
        "final point to the next, too",
        {"type": "boolean", "default": False},
    ),
)
SERIES: Final = (
    *_POINTS,
    Parameter("value", "A value, by its label; may be repeated", repeated=True),
    *_settings("attribute", "ranges", "quantiles", "linear"),
    FINGERPRINT,
)
SERIES_LIST: Final = (
    *_POINTS,
    Parameter("collection", "Only this one; may be repeated", repeated=True),
)
