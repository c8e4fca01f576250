"""The operations of the API: one table, from which the routes and `/openapi.json` follow."""

from typing import Final

from ldpstream.agents.config.query.options import EstimateRequest
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
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.web import api
from ldpstream.agents.web.declaration import (
    ESTIMATE,
    EVENTS,
    FINGERPRINT,
    FORMAT,
    METRICS,
    STATUS,
    WINDOWS,
    Operation,
)
from ldpstream.agents.web.estimates import estimate, estimate_posted
from ldpstream.agents.web.events import events

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
        handler=api.stored_final,
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
    Operation(
        path="/metrics",
        summary="Prometheus metrics",
        handler=api.metrics,
        answer=None,
        parameters=METRICS,
    ),
)
