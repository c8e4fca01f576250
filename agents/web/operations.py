"""The operations of the API: one table, from which routes and `/openapi.json` are made."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ldpstream import __version__
from ldpstream.agents.config.query.options import EstimateRequest
from ldpstream.agents.document.answers import (
    Collection,
    CollectionCertificate,
    CollectionList,
    CollectionStatus,
    DeviceDocument,
    Health,
    Problem,
    Readiness,
    WindowList,
)
from ldpstream.agents.document.model import ChangeDocument, EstimateDocument
from ldpstream.agents.document.series import Series, SeriesList
from ldpstream.agents.web import api
from ldpstream.agents.web.changes import change
from ldpstream.agents.web.declaration import (
    CHANGE,
    ESTIMATE,
    EVENTS,
    FINGERPRINT,
    FORMAT,
    METRICS,
    SERIES,
    SERIES_LIST,
    STATUS,
    WINDOWS,
    Operation,
)
from ldpstream.agents.web.estimates import estimate, estimate_posted
from ldpstream.agents.web.events import events
from ldpstream.agents.web.requests import BODY_BYTES
from ldpstream.agents.web.series import series, series_list

OPERATIONS: Final = (
    Operation(
        path="/api/collections",
        summary="All collections",
        handler=api.collections,
        answer=CollectionList,
        tagged=True,
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
        path="/api/collections/{name}/geojson",
        summary="The shapes of its blocks, a GeoJSON FeatureCollection, where one is configured",
        handler=api.geojson,
        answer=None,
        text="application/json",
    ),
    Operation(
        path="/api/collections/{name}/windows",
        summary="Windows with reports, oldest first",
        handler=api.window_list,
        answer=WindowList,
        parameters=WINDOWS,
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
        path="/api/collections/{name}/series",
        summary="A few numbers over many windows",
        handler=series,
        answer=Series,
        parameters=SERIES,
        tagged=True,
    ),
    Operation(
        path="/api/series",
        summary="The same of all collections of this worker, or of some",
        handler=series_list,
        answer=SeriesList,
        parameters=SERIES_LIST,
        errors=(503,),
        tagged=True,
    ),
    Operation(
        path="/api/collections/{name}/change",
        summary="What changed in the population from one span to another; all bounds hold at once",
        handler=change,
        answer=ChangeDocument,
        parameters=CHANGE,
        errors=(410,),
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


_OPENAPI_VERSION: Final = "3.1.0"
_REFERENCE: Final = "#/components/schemas/{model}"
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_PATH_PARAMETERS: Final = {"name": "Name of a collection"}
_ERRORS: Final = {
    400: "An invalid parameter: the text names it and what was expected. Plain text if not HTTP",
    401: "A token is required, and it is missing or wrong",
    403: "A browser sent it on behalf of a page of another site",
    404: "There is no such collection, or no window yet",
    410: "The span, or a part of it, has expired",
    413: f"A body of more than {BODY_BYTES} bytes",
    415: "A body whose Content-Type is not application/json",
    421: "A host name that may be another site's (only on loopback without a token), or a request "
    "forwarded by another worker about a collection that this one does not run",
    503: "The state is still being read, too many requests are waiting, the computation takes too "
    "long, or no worker of the collection's shard answers",
}


@cache
def describe_api() -> Mapping[str, Any]:
    """Return the description, OpenAPI 3.1, with paths relative to where it is served.

    All applications of a process have the same one: making it takes longer than any other step of
    building an application.
    """
    models = {
        operation.answer.__name__: operation.answer
        for operation in OPERATIONS
        if operation.answer is not None
    }
    models[Problem.__name__] = Problem
    models |= {
        operation.body.__name__: operation.body
        for operation in OPERATIONS
        if operation.body is not None
    }
    # "validation": readers must accept that withheld documents leave fields out.
    _, schemas = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template=_REFERENCE
    )
    return {
        "openapi": _OPENAPI_VERSION,
        "info": {
            "title": "ldpstream",
            "version": __version__,
            "description": "Estimates with bounds, from reports under local differential "
            "privacy. Read-only. Any worker answers for all partitions.",
        },
        "servers": [{"url": "."}],
        "paths": _paths(),
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _describe(operation)
    return paths


def _describe(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": _response("The answer", operation.answer, operation.text)}
    if operation.csv:
        responses["200"]["content"]["text/csv"] = {"schema": {"type": "string"}}
    if operation.tagged:
        responses["304"] = {"description": "Unchanged since the ETag in If-None-Match"}
    if operation.unready:
        responses["503"] = _response("Not ready", operation.answer)
    for status in sorted(operation.refusals):
        responses[str(status)] = _response(_ERRORS[status], Problem)
    # Bytes that are not HTTP, or headers above 8 KiB, are refused before there is a request.
    responses["400"]["content"]["text/plain"] = {"schema": {"type": "string"}}
    described: dict[str, Any] = {
        "operationId": operation.handler.__name__,
        "summary": operation.summary,
        # `{}`: a worker without a token needs none.
        "security": [] if operation.public else [{}, {"token": []}],
        "parameters": _parameters(operation),
        "responses": responses,
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    placed: list[tuple[str, str, str, Mapping[str, Any]]] = [
        (name, "path", _PATH_PARAMETERS[name], {"type": "string"})
        for name in _IN_PATH.findall(operation.path)
    ]
    for parameter in operation.parameters:
        repeated = {"type": "array", "items": parameter.schema}
        schema = repeated if parameter.repeated else parameter.schema
        placed.append((parameter.name, "query", parameter.description, schema))
    return [
        {
            "name": name,
            "in": place,
            "required": place == "path",
            "description": description,
            "schema": schema,
        }
        for name, place, description, schema in placed
    ]


def _response(
    description: str, model: type[BaseModel] | None, text: str = "text/plain"
) -> dict[str, Any]:
    content = {text: {"schema": {"type": "string"}}} if model is None else _content(model)
    return {"description": description, "content": content}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}}
