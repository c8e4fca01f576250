"""The operations of the API: one table, from which the routes and `/openapi.json` follow."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from pydantic import BaseModel

from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.document.answers import (
    Collection,
    CollectionCertificate,
    CollectionList,
    CollectionStatus,
    DeviceDocument,
    Health,
    Readiness,
    WindowList,
)
from ldpstream.agents.http import api
from ldpstream.agents.http.estimates import estimate, estimate_posted, stored_final
from ldpstream.agents.http.events import events
from ldpstream.agents.http.parameters import (
    ESTIMATE,
    EVENTS,
    FINGERPRINT,
    FORMAT,
    STATUS,
    WINDOWS,
    Parameter,
)
from ldpstream.agents.query.options import EstimateRequest

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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
        found = {400, 421, *self.errors}
        if not self.public:
            found |= {401, 403}
        if "{name}" in self.path:
            # 503: no worker of the collection's shard answers.
            found |= {404, 503}
        return frozenset(found)


OPERATIONS: Final = (
    Operation(
        path="/api/collections",
        summary="All collections",
        handler=api.collections,
        answer=CollectionList,
    ),
    Operation(
        path="/api/collections/{name}",
        summary="One collection",
        handler=api.collection,
        answer=Collection,
    ),
    Operation(
        path="/api/collections/{name}/spec",
        summary="What devices need to privatize and frame",
        handler=api.device_spec,
        answer=DeviceDocument,
    ),
    Operation(
        path="/api/collections/{name}/certificate",
        summary="What is proved of the policy, as `ldpstream certify` prints it; 503 where that "
        "takes too long here",
        handler=api.certificate,
        answer=CollectionCertificate,
        parameters=(FINGERPRINT,),
    ),
    Operation(
        path="/api/collections/{name}/windows",
        summary="Windows with reports, oldest first",
        handler=api.window_list,
        answer=WindowList,
        parameters=WINDOWS,
        csv=True,
    ),
    Operation(
        path="/api/collections/{name}/estimate",
        summary="Estimates with bounds over a span of whole panes",
        handler=estimate,
        answer=EstimateDocument,
        parameters=ESTIMATE,
        errors=(410,),
        csv=True,
        tagged=True,
    ),
    Operation(
        path="/api/collections/{name}/estimate",
        summary="The same with a JSON body, for many or long queries",
        handler=estimate_posted,
        answer=EstimateDocument,
        parameters=(FORMAT, FINGERPRINT),
        errors=(410, 413, 415),
        csv=True,
        body=EstimateRequest,
    ),
    Operation(
        path="/api/collections/{name}/finals/{start}",
        summary="The stored final document of a window",
        handler=stored_final,
        answer=EstimateDocument,
        parameters=(FORMAT, FINGERPRINT),
        csv=True,
        tagged=True,
    ),
    Operation(
        path="/api/collections/{name}/events",
        summary="Server-sent events: `final` in order, with ids, and `provisional`; each carries "
        "an estimate document",
        handler=events,
        answer=None,
        parameters=EVENTS,
        endless=True,
        text="text/event-stream",
    ),
    Operation(
        path="/api/collections/{name}/status",
        summary="Partitions, lag, watermarks and counters",
        handler=api.status,
        answer=CollectionStatus,
        parameters=STATUS,
    ),
    Operation(
        path="/healthz",
        summary="Whether the process serves; 503 where only a restart helps; needs no token",
        handler=api.health,
        answer=Health,
        unready=True,
        public=True,
    ),
    Operation(
        path="/readyz",
        summary="Whether every collection of this worker can be queried; the reasons why not, and "
        "shards without a worker, are shown only with a token",
        handler=api.readiness,
        answer=Readiness,
        unready=True,
        public=True,
    ),
    Operation(path="/metrics", summary="Prometheus metrics", handler=api.metrics, answer=None),
)
