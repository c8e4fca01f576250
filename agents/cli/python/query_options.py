"""Query options as keywords: the fields of `EstimateRequest`."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.errors import request_problem
from ldpstream.agents.config.query.capabilities import request_options
from ldpstream.agents.config.query.options import REQUEST_KEYS, EstimateOptions, EstimateRequest


def build_request(request: EstimateRequest | None, options: Mapping[str, Any]) -> EstimateRequest:
    """Return a request with some fields replaced by keywords."""
    fields = {} if request is None else request.model_dump(exclude_unset=True)
    try:
        # Validated as from JSON, so tuples become lists.
        return EstimateRequest.model_validate({**fields, **_plain(options)})
    except ValidationError as error:
        raise ValueError(request_problem(error, REQUEST_KEYS)) from None


def build_options(
    collection: CollectionConfig, request: EstimateRequest | None, options: Mapping[str, Any]
) -> EstimateOptions:
    """Return a collection's options, replaced where something else is asked for."""
    chosen = build_request(request, options)
    if chosen.start is not None or chosen.end is not None:
        raise ValueError("start: expected none, because all reports are estimated together")
    return request_options(collection.options, collection.spec, chosen)


def _plain(value: Any) -> Any:
    """Return tuples and arrays as lists."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value
