"""The operations of the API: one table, from which both the routes and `/openapi.json` are made."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from pydantic import BaseModel

from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.http import api
from ldpstream.agents.http.answers import (
    Collection,
    CollectionList,
    CollectionStatus,
    Health,
    Readiness,
    WindowList,
)
from ldpstream.agents.http.parameters import ESTIMATE, WINDOWS, Parameter

Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One path that can be read.

    `answer` is the model of a JSON answer, None for plain text. `errors` are the statuses that
    answer with a `Problem`; `unready` says that 503 answers with `answer` too.
    """

    path: str
    summary: str
    handler: Handler
    answer: type[BaseModel] | None
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[int, ...] = (400,)
    unready: bool = False


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
        errors=(400, 404),
    ),
    Operation(
        path="/api/collections/{name}/windows",
        summary="Windows with reports, oldest first",
        handler=api.window_list,
        answer=WindowList,
        parameters=WINDOWS,
        errors=(400, 404, 503),
    ),
    Operation(
        path="/api/collections/{name}/estimate",
        summary="Estimates with bounds over a span of whole panes",
        handler=api.estimate,
        answer=EstimateDocument,
        parameters=ESTIMATE,
        errors=(400, 404, 503),
    ),
    Operation(
        path="/api/collections/{name}/status",
        summary="Partitions, lag, watermarks and counters",
        handler=api.status,
        answer=CollectionStatus,
        errors=(400, 404),
    ),
    Operation(
        path="/healthz", summary="Whether the process serves", handler=api.health, answer=Health
    ),
    Operation(
        path="/readyz",
        summary="Whether every collection can be asked, and why not",
        handler=api.readiness,
        answer=Readiness,
        unready=True,
    ),
    Operation(
        path="/metrics", summary="Prometheus metrics", handler=api.metrics, answer=None, errors=()
    ),
)
