"""Query options as keywords: the fields of `EstimateRequest`."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.errors import unknown_key
from ldpstream.agents.query.offered import request_options
from ldpstream.agents.query.options import EstimateOptions, EstimateRequest


def asked_request(asked: EstimateRequest | None, options: Mapping[str, Any]) -> EstimateRequest:
    """Return a request with some fields replaced by keywords.

    Raises:
        ValueError: naming the keyword that is wrong, and what was expected.
    """
    given = {} if asked is None else asked.model_dump(exclude_unset=True)
    for name in options:
        if name not in EstimateRequest.model_fields:
            raise ValueError(f"{name}: {unknown_key(name, list(EstimateRequest.model_fields))}")
    try:
        # Validated as from JSON, so tuples become lists.
        return EstimateRequest.model_validate({**given, **_plain(options)})
    except ValidationError as error:
        detail = error.errors(include_url=False, include_context=False, include_input=False)[0]
        # What follows the field is pydantic's path through its types.
        where = detail["loc"][0]
        raise ValueError(f"{where}: {detail['msg'][:1].lower()}{detail['msg'][1:]}") from None


def asked_options(
    collection: CollectionConfig, asked: EstimateRequest | None, options: Mapping[str, Any]
) -> EstimateOptions:
    """Return a collection's options, replaced where something else is asked for.

    Raises:
        ValueError: naming the option that is impossible, or does not fit the collection.
    """
    request = asked_request(asked, options)
    if request.start is not None or request.end is not None:
        raise ValueError("start: expected none, because all reports are estimated together")
    return request_options(collection.options, collection.spec, request)


def _plain(value: Any) -> Any:
    """Return tuples and arrays as lists."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
