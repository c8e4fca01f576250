"""The OpenAPI description of the API, from its operations and the models of their answers."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ldpstream import __version__
from ldpstream.agents.document.answers import Problem
from ldpstream.agents.web.declaration import Operation
from ldpstream.agents.web.operations import OPERATIONS
from ldpstream.agents.web.requests import BODY_BYTES

_OPENAPI_VERSION: Final = "3.1.0"
_REFERENCE: Final = "#/components/schemas/{model}"
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_PATH_PARAMETERS: Final = {
    "name": "Name of a collection",
    "start": "Start of the window: RFC 3339, or epoch milliseconds",
}
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
    models = {one.answer.__name__: one.answer for one in OPERATIONS if one.answer is not None}
    models[Problem.__name__] = Problem
    models |= {one.body.__name__: one.body for one in OPERATIONS if one.body is not None}
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
    for one in operation.parameters:
        repeated = {"type": "array", "items": one.schema}
        schema = repeated if one.repeated else one.schema
        placed.append((one.name, "query", one.description, schema))
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
