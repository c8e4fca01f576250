"""The HTTP handlers of a gateway (docs/wire.md, "Uploads over HTTP")."""

import json
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache, partial
from typing import Final

from aiohttp import HttpVersion11, web
from aiokafka.errors import KafkaError
from prometheus_client import Counter, Gauge, Histogram

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.gateway import ANY_ORIGIN
from ldpstream.agents.edge.gateway_topics import NewestRounds
from ldpstream.agents.edge.upload_check import UploadRefusedError
from ldpstream.agents.edge.uploads import FULL, Accepted, Uploads
from ldpstream.agents.engine.metrics import ProcessMetrics
from ldpstream.agents.web.connection_limits import DirectHandler
from ldpstream.agents.web.listener import SentResponse
from ldpstream.agents.web.request_bodies import BodyRefusedError, NoRoomError, TooLargeError
from ldpstream.agents.web.requests import (
    Access,
    AnswerError,
    answer_metrics,
)

RESULTS = (
    "accepted",
    "repeated",
    "undecodable",
    "time",
    "precision",
    "partition",
    "range",
    "several",
    "alone",
    "fingerprint",
    "key",
    "unauthorized",
    "too_large",
    "media_type",
    "full",
    "unavailable",
)
"""The outcomes of an upload to an existing collection."""
_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
MEDIA_TYPE: Final = "application/vnd.ldpstream.frame"
_UPLOADS: Final = "/v1/collections/{name}/reports"
_KEY: Final = re.compile(r"[0-9a-f]{32}")
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TITLES: Final = {
    400: "Not an upload",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Too few",
    413: "Too large",
    415: "Unsupported media type",
    429: "The queue is full",
    503: "Try again later",
}
_RETRIED: Final = frozenset({429, 503})
_RETRY_SECONDS: Final = 2
"""The value of `Retry-After` of these."""
_REFUSAL: Final[ContextVar[Exception | None]] = ContextVar("refusal", default=None)
"""Why the direct handler refused the request that is being answered."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GatewayMetrics(ProcessMetrics):
    """The metrics of a gateway."""

    def __init__(self, collections: Collection[str]) -> None:
        super().__init__()
        self._uploads = Counter(
            "ldpstream_gateway_uploads",
            "Uploads answered: accepted, repeated, to repeat (full, unavailable), or why refused",
            ["collection", "result"],
            registry=self.registry,
        )
        self._reports = Counter(
            "ldpstream_gateway_reports",
            "Reports that the broker has, each once",
            ["collection"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "ldpstream_gateway_upload_seconds",
            "From an upload's headers to its answer",
            ["collection"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.queue, self.queue_bytes, self.stored_keys, self.connections = (
            Gauge(f"ldpstream_gateway_{name}", text, registry=self.registry)
            for name, text in (
                ("queue_uploads", "Uploads waiting for the broker"),
                ("queue_bytes", "Bytes of the uploads waiting for the broker"),
                ("remembered_uploads", "Accepted uploads whose keys are known"),
                ("open_connections", "Open connections"),
            )
        )
        for name in collections:
            self._reports.labels(name)
        self._answered = {
            (name, result): (self._uploads.labels(name, result), self._seconds.labels(name))
            for name in collections
            for result in RESULTS
        }

    def answered(self, collection: str, result: str, *, seconds: float) -> None:
        """Count an answered upload."""
        uploads, histogram = self._answered[collection, result]
        uploads.inc()
        histogram.observe(seconds)

    def accepted(self, collection: str, reports: int) -> None:
        """Count reports that the broker has."""
        self._reports.labels(collection).inc(reports)


@dataclass(kw_only=True)
class GatewayServices:
    """The objects that the handlers use."""

    collections: Mapping[str, CollectionConfig]
    uploads: Uploads
    metrics: GatewayMetrics
    origins: Collection[str]
    upload_bytes: int
    upload_access: Access = field(default_factory=Access)
    metrics_access: Access | None = field(default_factory=Access)
    """Access to /metrics, and to the reasons of /readyz; None if nobody may read them here."""
    connections: Callable[[], int] = lambda: 0
    rounds: NewestRounds | None = None
    """The rounds of unknown words; None where there is no broker to ask."""
    problems: list[str] = field(default_factory=list)
    """Why it is not ready; empty if it is."""
    closing: bool = False
    """Whether uploads are refused because the process is about to end."""


SERVICES: Final = web.AppKey("services", GatewayServices)


def build_gateway(services: GatewayServices) -> web.Application:
    """Build the application; it may be mounted under a prefix of another one."""
    app = web.Application(middlewares=[_cors, _problems])
    app[SERVICES] = services
    app.on_response_prepare.append(_add_headers)
    app.router.add_post(_UPLOADS, _upload)
    app.router.add_route("OPTIONS", _UPLOADS, _preflight)
    app.router.add_get("/v1/collections/{name}/spec", _spec)
    app.router.add_get("/healthz", _health)
    app.router.add_get("/readyz", _readiness)
    app.router.add_get("/metrics", _metrics)
    return app


async def _upload(request: web.Request) -> web.Response:
    refusal = _REFUSAL.get()
    if refusal is not None:
        raise refusal
    answer = await _answer(request, request.app[SERVICES], _collection(request).name)
    return _json({"accepted": answer.reports})


def direct_uploads(services: GatewayServices) -> Mapping[str, DirectHandler]:
    """Return handlers of uploads by path, which take a fraction of the application's time.

    They leave to the application what is rare: refusals, and requests of HTTP's finer points.
    """
    return {
        _UPLOADS.format(name=name): partial(_upload_directly, services, name)
        for name in services.collections
    }


async def _upload_directly(
    services: GatewayServices, name: str, request: web.BaseRequest
) -> web.StreamResponse | None:
    if not request.keep_alive or request.version != HttpVersion11 or "Expect" in request.headers:
        return None
    try:
        services.upload_access.check_name(request)
        answer = await _answer(request, services, name)
    except (UploadRefusedError, AnswerError) as error:
        _REFUSAL.set(error)
        return None
    allowed = _allowed(services.origins, request) or ""
    vary = ANY_ORIGIN not in services.origins
    return _acknowledgement(answer.reports, allowed, int(time.time()), vary=vary)


@lru_cache(maxsize=64)
def _acknowledgement(reports: int, allowed: str, seconds: int, *, vary: bool) -> SentResponse:
    """Return the answer to an accepted upload, as the application would write it."""
    body = json.dumps({"accepted": reports})
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        **(_cors_headers(allowed) if allowed else {}),
        "Content-Length": str(len(body)),
        "Date": formatdate(seconds, usegmt=True),
        **_HEADERS,
        **({"Vary": "Origin"} if vary else {}),
    }
    lines = ("HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers.items()))
    return SentResponse(("\r\n".join(lines) + f"\r\n\r\n{body}").encode())


async def _answer(request: web.BaseRequest, services: GatewayServices, name: str) -> Accepted:
    """Return when an upload is accepted, and count the outcome."""
    began, result = time.perf_counter(), "unavailable"
    try:
        answer = await _accept(request, services, name)
        result = "repeated" if answer.again else "accepted"
    except UploadRefusedError as error:
        result = error.result
        raise
    finally:
        services.metrics.answered(name, result, seconds=time.perf_counter() - began)
    return answer


async def _accept(request: web.BaseRequest, services: GatewayServices, name: str) -> Accepted:
    if services.closing:
        raise UploadRefusedError(503, "unavailable", "this gateway is shutting down")
    if not services.upload_access.allows(request):
        detail = "expected the header Authorization: Bearer, and the right token"
        raise UploadRefusedError(401, "unauthorized", detail)
    types = request.headers.getall("Content-Type", [])
    if [media_type.strip().lower() for media_type in types] != [MEDIA_TYPE]:
        raise UploadRefusedError(415, "media_type", f"expected Content-Type: {MEDIA_TYPE}")
    if "Content-Encoding" in request.headers:
        raise UploadRefusedError(415, "media_type", "expected no Content-Encoding")
    keys = request.headers.getall("Idempotency-Key", [])
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        detail = "expected one Idempotency-Key of 32 hexadecimal digits, lower case"
        raise UploadRefusedError(400, "key", detail)
    key = bytes.fromhex(keys[0])
    return await services.uploads.submit(name, key, await _body(request, services))


async def _body(request: web.BaseRequest, services: GatewayServices) -> bytes:
    try:
        return await services.uploads.bodies.read(request, limit_bytes=services.upload_bytes)
    except TooLargeError as error:
        detail = f"expected at most {services.upload_bytes} bytes"
        raise UploadRefusedError(413, "too_large", detail) from error
    except NoRoomError as error:
        raise UploadRefusedError(429, "full", FULL) from error
    except BodyRefusedError as error:
        raise UploadRefusedError(503, "unavailable", "expected the whole body") from error


async def _preflight(request: web.Request) -> web.Response:
    """Answer a browser's question about what pages of this origin may send."""
    if _allowed(request.app[SERVICES].origins, request) is None:
        raise UploadRefusedError(403, "origin", "expected an origin among gateway.origins")
    headers = "Content-Type, Idempotency-Key"
    if request.app[SERVICES].upload_access.token is not None:
        headers += ", Authorization"
    return web.Response(
        status=204,
        headers={
            "Access-Control-Allow-Methods": "POST",
            "Access-Control-Allow-Headers": headers,
            "Access-Control-Max-Age": "7200",
        },
    )


async def _spec(request: web.Request) -> web.Response:
    collection, rounds = _collection(request), request.app[SERVICES].rounds
    document = collection.spec.device_document()
    if rounds is not None:
        try:
            document |= await rounds.of(collection)
        except KafkaError as error:
            detail = "the broker does not answer: ask again"
            raise UploadRefusedError(503, "unavailable", detail) from error
    return _json(document)


async def _health(_: web.Request) -> web.Response:
    return _json({"status": "ok"})


async def _readiness(request: web.Request) -> web.Response:
    services = request.app[SERVICES]
    reasons = ["this gateway is shutting down"] if services.closing else services.problems
    access = services.metrics_access
    # Probes need only the status; the reasons name topics.
    explain = access is not None and access.allows(request)
    answer = {"ready": not reasons, "reasons": [*reasons] if explain else []}
    return web.json_response(answer, status=503 if reasons else 200)


async def _metrics(request: web.Request) -> web.Response:
    services = request.app[SERVICES]
    if services.metrics_access is None:
        detail = "expected worker.token or worker.open_to_everybody in the configuration"
        raise UploadRefusedError(403, "metrics", detail)
    services.metrics_access.check(request)
    metrics, uploads = services.metrics, services.uploads
    metrics.queue.set(uploads.waiting)
    metrics.queue_bytes.set(uploads.waiting_bytes)
    metrics.stored_keys.set(uploads.stored_keys)
    metrics.connections.set(services.connections())
    return answer_metrics(request, metrics)


def _collection(request: web.Request) -> CollectionConfig:
    collection = request.app[SERVICES].collections.get(request.match_info["name"])
    if collection is None:
        raise UploadRefusedError(404, "collection", "expected the name of a collection")
    return collection


def _allowed(origins: Collection[str], request: web.BaseRequest) -> str | None:
    """Return the value of Access-Control-Allow-Origin for this origin; None for no header."""
    origin = request.headers.get("Origin")
    if origin is None:
        return None
    if ANY_ORIGIN in origins:
        return ANY_ORIGIN
    return origin if origin in origins else None


def _cors_headers(allowed: str) -> Mapping[str, str]:
    return {
        "Access-Control-Allow-Origin": allowed,
        "Access-Control-Expose-Headers": "Retry-After",
    }


@web.middleware
async def _cors(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    origins = request.app[SERVICES].origins
    allowed = _allowed(origins, request) if request.path.startswith("/v1/") else None
    if allowed is not None:
        response.headers.update(_cors_headers(allowed))
    return response


@web.middleware
async def _problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        request.app[SERVICES].upload_access.check_name(request)
        return await handler(request)
    except UploadRefusedError as error:
        return _problem(error.status, error.detail)
    except AnswerError as error:
        return _problem(error.status, error.text)
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        return _problem(error.status, f"expected one of {allowed}", headers={"Allow": allowed})
    except web.HTTPNotFound as error:
        return _problem(error.status, f"unknown path: reports go to {_UPLOADS}")
    except web.HTTPException as error:
        return _problem(error.status, error.reason)


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    if ANY_ORIGIN not in request.app[SERVICES].origins:
        response.headers.setdefault("Vary", "Origin")


def _json(content: object) -> web.Response:
    return web.Response(text=json.dumps(content), content_type="application/json")


def _problem(status: int, detail: str, *, headers: Mapping[str, str] | None = None) -> web.Response:
    title = _TITLES.get(status, detail)
    problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    response = web.Response(
        text=json.dumps(problem),
        status=status,
        headers=headers,
        content_type="application/problem+json",
    )
    if status in _RETRIED:
        response.headers["Retry-After"] = str(_RETRY_SECONDS)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
