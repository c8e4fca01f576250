"""The OpenAPI description of the API, out of its operations and the models of their answers."""

import re
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ldpstream import __version__
from ldpstream.agents.http.answers import Problem
from ldpstream.agents.http.operations import OPERATIONS, Operation

OPENAPI_VERSION: Final = "3.1.0"
_REFERENCE: Final = "#/components/schemas/{model}"
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_ERRORS: Final = {
    400: "A parameter is wrong: the text names it and what was expected",
    404: "There is no such collection, or no window yet",
    503: "The state has not been read to its end yet",
}


def describe_api() -> dict[str, Any]:
    """Return the description, OpenAPI 3.1, with paths relative to where it is served."""
    models = {one.answer.__name__: one.answer for one in OPERATIONS if one.answer is not None}
    models[Problem.__name__] = Problem
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
        "paths": {operation.path: {"get": _describe(operation)} for operation in OPERATIONS},
        "components": {"schemas": schemas["$defs"]},
    }


def _describe(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": _response("The answer", operation.answer)}
    if operation.unready:
        responses["503"] = _response("Not ready", operation.answer)
    for status in operation.errors:
        responses[str(status)] = _response(_ERRORS[status], Problem)
    return {
        "operationId": operation.handler.__name__,
        "summary": operation.summary,
        "parameters": _path_parameters(operation) + _query_parameters(operation),
        "responses": responses,
    }


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "Name of a collection",
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


def _response(description: str, model: type[BaseModel] | None) -> dict[str, Any]:
    if model is None:
        content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    else:
        reference = _REFERENCE.format(model=model.__name__)
        content = {"application/json": {"schema": {"$ref": reference}}}
    return {"description": description, "content": content}
