"""What every request goes through: who may ask, which parameters, and refusals as JSON.

Those with the token may read; without one, on loopback, only requests under local host names. What
many handlers read of a request is read here: its collection, times, and the format of its answer.
Worker and gateway answer `/metrics` alike.
"""

import hmac
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final

from aiohttp import web
from multidict import MultiMapping

from ldpstream.agents.broker.shards import Shards
from ldpstream.agents.document.answers import Problem
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.metrics import Metrics, ProcessMetrics
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.state.records import RecordError
from ldpstream.agents.web.addresses import Network, is_own_name, is_trusted
from ldpstream.agents.web.declaration import (
    FINGERPRINT,
    TIME_FORM,
    Format,
    Handler,
    Operation,
    Parameter,
)
from ldpstream.agents.web.page import CONTENT_SECURITY_POLICY
from ldpstream.agents.web.request_bodies import BodyRefusedError, NoRoomError, TooLargeError
from ldpstream.mechanisms.base import numbers
from ldpstream.mechanisms.base.times import parse_time

BODY_BYTES: Final = 4 << 20
"""The most bytes of a body."""
_COMPRESSED_ELSEWHERE_BYTES: Final = 16 << 10
"""Longer answers are compressed in another thread than that of the event loop."""
_TOKEN_LENGTH: Final = 16
"""Least length of a token, so that it cannot be guessed."""
_TOKEN: Final = re.compile(r"[!-~]+")
_ZERO_WEIGHT: Final = re.compile(r"q=0(\.0*)?")
_OWN_SITES: Final = frozenset({"same-origin", "none"})
"""`same-site` includes other ports of this machine, and other people's names in the same domain."""
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


log = logging.getLogger(__name__)


class AnswerError(Exception):
    """A request is refused: the HTTP status, and a text for `{"error": ...}`.

    All that reads a request may raise it with status 400, and names the parameter.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


_REFUSED: Final = (
    *(AnswerError, TooLargeError, NoRoomError, BodyRefusedError),
    *(RecordError, web.HTTPException),
)


class TokenError(ValueError):
    """An invalid token; the message says what was expected, and never shows the token."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may read: whoever knows the token, if one is set.

    `local` says that only this machine reaches the address. Then, without a token, host names other
    than IP addresses and `localhost` are refused (DNS rebinding): another site could make its own
    name resolve to this machine, and read through its visitor's browser.

    Raises:
        TokenError: for a token that is too short, or cannot be sent in a header.
    """

    token: bytes | None = None
    local: bool = False
    trusted_proxies: tuple[Network, ...] = ()
    """Proxies route by host name themselves, and may pass on the client's `Host`."""

    def __post_init__(self) -> None:
        if self.token is None:
            return
        if len(self.token) < _TOKEN_LENGTH or not _TOKEN.fullmatch(self.token.decode("latin-1")):
            raise TokenError(
                f"expected at least {_TOKEN_LENGTH} visible ASCII characters, no space"
            )

    def allows(self, request: web.BaseRequest) -> bool:
        """Return whether a request has the token, in constant time."""
        if self.token is None:
            return True
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        shown = credentials.strip().encode("utf-8", "surrogateescape")
        return hmac.compare_digest(shown, self.token) and scheme.lower() == "bearer"

    def check(self, request: web.Request) -> None:
        """Refuse a request under a foreign host name, from another site, or without the token.

        Raises:
            AnswerError: 421 as `check_name`, 403, or 401.
        """
        self.check_name(request)
        # A browser that asks for a page of another site would not show it the answer, but computing
        # one has a price. Without this header it is an old browser, or something else.
        if request.headers.get("Sec-Fetch-Site", "none").lower() not in _OWN_SITES:
            raise AnswerError(
                403, "Sec-Fetch-Site: expected same-origin or none, got another site's"
            )
        if not self.allows(request):
            raise AnswerError(401, "expected the header Authorization: Bearer, and the right token")

    def check_name(self, request: web.BaseRequest) -> None:
        """Refuse a request under a host name that may be somebody else's."""
        if not self.local or self.token is not None:
            return
        has_local_name = is_own_name(request.headers.get("Host", ""))
        if has_local_name or is_trusted(request.remote or "", self.trusted_proxies):
            return
        raise AnswerError(
            421,
            "host: expected localhost or an IP address; other names need a token, or one of "
            "trusted_proxies",
        )


PIPELINE: Final = web.AppKey("pipeline", Pipeline)
METRICS: Final = web.AppKey("metrics", Metrics)
ACCESS: Final = web.AppKey("access", Access)
SHARDS: Final = web.AppKey("shards", Shards)
"""Set only if there are other shards."""
CHECKED: Final = web.AppKey("checked", dict[Handler, Operation])
"""The operations by their handlers, for the checks before each."""


@web.middleware
async def answer_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a request, errors as JSON, and record how long an operation takes."""
    begun = time.monotonic()
    # The page's files and unknown paths are not operations.
    operation = request.app[CHECKED].get(request.match_info.handler)
    answer: web.StreamResponse
    try:
        # 1. Refuse what nobody, or not this client, has a right to ask.
        access = request.app[ACCESS]
        if operation is None or operation.public:
            access.check_name(request)
        else:
            access.check(request)
        if operation is not None:
            check_names(request.query, operation.parameters)
        # 2. Answer here, or forward to a worker that has the collection (`add_forwarding`).
        answer = await handler(request)
    except _REFUSED as error:
        answer = _refusal(error)
    except ConnectionError:
        raise  # The client has gone.
    except Exception:  # a bug in one answer: its client gets a 500, the log a traceback
        # Its path as declared: the client's own text stays out of the log.
        log.exception("a request failed: %s", "" if operation is None else operation.path)
        if operation is not None and operation.endless:
            raise  # Part of the answer may have been sent.
        answer = _problem(500, "internal error: the worker's log has its traceback")
    # 3. Record the time, except of streams of events, which last as long as their reader.
    if operation is not None and not operation.endless:
        name, status = operation.handler.__name__, str(answer.status)
        answered = request.app[METRICS].http_seconds.labels(operation=name, status=status)
        answered.observe(time.monotonic() - begun)
    return answer


def check_names(query: MultiMapping[str], parameters: Sequence[Parameter]) -> None:
    """Refuse unknown parameters, and those given twice that cannot be repeated."""
    names = {parameter.name: parameter for parameter in parameters}
    for name in dict.fromkeys(query.keys()):
        if name not in names:
            expected = f"one of {', '.join(names)}" if names else "no parameters"
            raise AnswerError(400, f"{name[:40]}: unknown parameter; expected {expected}")
        if len(query.getall(name)) > 1 and not names[name].repeated:
            raise AnswerError(400, f"{name}: expected once, got {len(query.getall(name))} times")


def named_collection(request: web.Request, name: str | None = None) -> Engine:
    """Return the collection in the path, or of this name.

    The parameter `fingerprint` may ask for it under another spec.
    """
    collections = request.app[PIPELINE].collections
    name = name or request.match_info["name"]
    if name not in collections:
        names = request.app[SHARDS].collections if SHARDS in request.app else collections
        raise AnswerError(404, f"no such collection; expected one of {', '.join(names)}")
    collection = collections[name]
    fingerprint = request.query.get(FINGERPRINT.name)
    if fingerprint is None:
        return collection
    specs = {
        state.config.spec.fingerprint.hex(): state for state in (collection, *collection.accepted)
    }
    if fingerprint not in specs:
        raise AnswerError(
            400, f"fingerprint: expected one of {', '.join(specs)}, got {fingerprint[:40]!r}"
        )
    return specs[fingerprint]


def readable_collection(request: web.Request, name: str | None = None) -> Engine:
    """Return the collection in the path, or of this name, with its state read to the end."""
    collection = named_collection(request, name)
    if any(replica.head is None for replica in collection.replicas) or not collection.replicas:
        raise AnswerError(
            503, f"{collection.config.name}: its state is still being read; see /readyz"
        )
    for replica in collection.replicas:
        if replica.broken is not None:
            raise AnswerError(
                503, f"{collection.config.name}: its state cannot be used: {replica.broken}"
            )
    return collection


def read_time(texts: Mapping[str, str], name: str) -> int | None:
    """Return a time in epoch milliseconds, None where it is not given."""
    text = texts.get(name)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        what = f"expected a time, {TIME_FORM}, such as 2026-11-30T00:00:00Z, got {text[:40]!r}"
        raise AnswerError(400, f"{name}: {what}") from None


def read_flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a parameter is true, false where it is not given."""
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise AnswerError(400, f"{name}: expected true or false, got {text[:40]!r}")
    return text == "true"


def read_number(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Return a whole number from 1 to `most`, the default where it is not given."""
    text = query.get(name)
    if text is None:
        return default
    try:
        number = numbers.read_whole(text)
    except ValueError:
        number = 0
    if not 1 <= number <= most:
        raise AnswerError(400, f"{name}: expected a whole number in 1..{most}, got {text[:40]!r}")
    return number


def requested_format(request: web.Request) -> Format:
    """Return the format that the parameter `format` names, JSON where it is not given."""
    text = request.query.get("format", "json")
    if text == "json":
        return "json"
    if text == "csv":
        return "csv"
    raise AnswerError(400, f"format: expected json or csv, got {text[:40]!r}")


def _refusal(error: Exception) -> web.Response:
    if isinstance(error, AnswerError):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
        return _problem(error.status, error.text, headers=headers)
    if isinstance(error, TooLargeError):
        return _problem(413, f"expected a body of at most {BODY_BYTES} bytes")
    if isinstance(error, NoRoomError):
        return _problem(503, "too many bodies are arriving: try again later")
    if isinstance(error, BodyRefusedError):
        return _problem(400, "expected the whole body")
    if isinstance(error, web.HTTPNotFound):
        # An unknown path; an unknown collection or window is an AnswerError.
        return _problem(error.status, "unknown path: /openapi.json describes all paths")
    if isinstance(error, web.HTTPException):
        allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return _problem(error.status, error.reason, headers=allowed)
    return _problem(503, f"the state cannot be read: {error}")


def _problem(status: int, text: str, *, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        text=Problem(error=text).model_dump_json(),
        status=status,
        headers=headers,
        content_type="application/json",
    )


def answer_metrics(request: web.Request, metrics: ProcessMetrics) -> web.Response:
    """Answer metrics, in the format and compression that the request's headers ask for.

    Parameters `name[]` limit the answer to these names, as Prometheus' own clients do.
    """
    body, content_type = metrics.exposition(
        accept=request.headers.get("Accept", ""), names=request.query.getall("name[]", [])
    )
    answer = web.Response(
        body=body,
        headers={"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"},
        zlib_executor_size=_COMPRESSED_ELSEWHERE_BYTES,
    )
    if accepts_gzip(request):
        answer.enable_compression(web.ContentCoding.gzip)
    return answer


def accepts_gzip(request: web.Request) -> bool:
    """Return whether the client takes gzip; a weight of 0 refuses it (RFC 9110, 12.5.3).

    aiohttp looks for the name alone.
    """
    codings = request.headers.get("Accept-Encoding", "").lower().replace(" ", "").split(",")
    weights = dict(coding.partition(";")[::2] for coding in codings)
    return _ZERO_WEIGHT.fullmatch(weights.get("gzip", weights.get("*", "q=0"))) is None


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers of every answer, unless a handler has set them.

    The page tells ages by `Date`, which is the time by which the worker decides.
    """
    if PIPELINE in request.app:
        # Not a default: aiohttp has already set the machine's time.
        seconds = request.app[PIPELINE].clock.now_ms() / 1000
        response.headers["Date"] = formatdate(seconds, usegmt=True)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
