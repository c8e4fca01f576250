"""The OpenAPI description of the API, out of its operations and the models of their answers."""

import re
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ldpstream import __version__
from ldpstream.agents.document.answers import Problem
from ldpstream.agents.http.limits import BODY_BYTES
from ldpstream.agents.http.operations import OPERATIONS, Operation

OPENAPI_VERSION: Final = "3.1.0"
_REFERENCE: Final = "#/components/schemas/{model}"
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_PATH_PARAMETERS: Final = {
    "name": "Name of a collection",
    "start": "Start of the window: RFC 3339, or epoch milliseconds",
}
_ERRORS: Final = {
    400: "A parameter is wrong: the text names it and what was expected. In plain text: no HTTP",
    401: "A token is set, and the right one was not shown",
    403: "A browser asked on behalf of a page of another site",
    404: "There is no such collection, or no window yet",
    410: "The span, or a part of it, has expired",
    413: f"A body of more than {BODY_BYTES} bytes",
    415: "A body that does not say that it is application/json",
    421: "Asked by a name that may be another site's; only on loopback without a token. Or "
    "forwarded by another worker, of a collection that this one does not run",
    503: "The state has not been read to its end yet, too many requests wait, or no worker of "
    "the collection's shard answers",
}


def describe_api() -> dict[str, Any]:
    """Return the description, OpenAPI 3.1, with paths relative to where it is served."""
    models = {one.answer.__name__: one.answer for one in OPERATIONS if one.answer is not None}
    models[Problem.__name__] = Problem
    models |= {one.body.__name__: one.body for one in OPERATIONS if one.body is not None}
    # Of the document a withheld one leaves fields out: what readers must accept, "validation".
    _, schemas = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template=_REFERENCE
    )
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "ldpstream",
            "version": __version__,
            "description": "Estimates with bounds out of reports under local differential "
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
        responses["304"] = {"description": "As the reader has it, by the ETag in If-None-Match"}
    if operation.unready:
        responses["503"] = _response("Not ready", operation.answer)
    for status in sorted(operation.refusals):
        responses[str(status)] = _response(_ERRORS[status], Problem)
    # What is no HTTP, or longer than 8 KiB, is refused before there is a request.
    responses["400"]["content"]["text/plain"] = {"schema": {"type": "string"}}
    described: dict[str, Any] = {
        "operationId": operation.handler.__name__,
        "summary": operation.summary,
        # Where the worker has no token, none is needed.
        "security": [] if operation.public else [{}, {"token": []}],
        "parameters": _path_parameters(operation) + _query_parameters(operation),
        "responses": responses,
    }
    if operation.body is not None:
        reference = _REFERENCE.format(model=operation.body.__name__)
        content = {"application/json": {"schema": {"$ref": reference}}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_PARAMETERS[name],
            "schema": {"type": "string"},
        }
        for name in _IN_PATH.findall(operation.path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": parameter.name,
            "in": "query",
            "required": False,
            "description": parameter.description,
            "schema": {"type": "array", "items": parameter.schema}
            if parameter.repeated
            else parameter.schema,
        }
        for parameter in operation.parameters
    ]


def _response(
    description: str, model: type[BaseModel] | None, text: str = "text/plain"
) -> dict[str, Any]:
    if model is None:
        content: dict[str, Any] = {text: {"schema": {"type": "string"}}}
    else:
        reference = _REFERENCE.format(model=model.__name__)
        content = {"application/json": {"schema": {"$ref": reference}}}
    return {"description": description, "content": content}
