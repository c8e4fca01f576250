"""The short answers of the API; each handler only reads the pipeline."""

import asyncio
from collections.abc import Mapping

from aiohttp import web
from pydantic import BaseModel

from ldpstream.agents.document.answers import Collection, CollectionList, DeviceDocument, Health
from ldpstream.agents.http import describe
from ldpstream.agents.http.lookup import (
    ACCESS,
    CERTIFICATES,
    DESCRIBING,
    METRICS,
    PIPELINE,
    SHARDS,
    named_collection,
)
from ldpstream.agents.http.probes import answer_metrics
from ldpstream.agents.served.served import Described
from ldpstream.agents.served.shards import Elsewhere


async def health(request: web.Request) -> web.Response:
    """Answer that the process serves: 503 where only a restart helps."""
    failed = request.app[PIPELINE].failed
    return _json(Health(status="failed" if failed else "ok"), status=503 if failed else 200)


async def readiness(request: web.Request) -> web.Response:
    """Answer whether every collection of this worker can be queried: if not, 503 with reasons."""
    answer = describe.describe_readiness(request.app[PIPELINE], _others(request))
    if not request.app[ACCESS].allows(request):
        # Probes only need the status; the reasons name collections.
        answer = answer.model_copy(update={"reasons": []})
    return _json(answer, status=200 if answer.ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """Answer the metrics, in the format that the Accept header asks for."""
    return answer_metrics(request, request.app[METRICS])


async def collections(request: web.Request) -> web.Response:
    """Answer all collections, in the order of the configuration."""
    found: dict[str, Described] = {**request.app[PIPELINE].collections, **_others(request)}
    names = request.app[SHARDS].collections if SHARDS in request.app else found
    listed = [await _described(request, found[name]) for name in names]
    return _json(CollectionList(collections=listed))


async def collection(request: web.Request) -> web.Response:
    """Answer one collection."""
    return _json(await _described(request, named_collection(request)))


async def certificate(request: web.Request) -> web.Response:
    """Answer what is proved of a collection's policy."""
    config = named_collection(request).config
    body = await request.app[CERTIFICATES].certificate(config)
    return web.Response(body=body, content_type="application/json")


async def device_spec(request: web.Request) -> web.Response:
    """Answer what devices need, without the tables that the mechanism does not have."""
    spec = named_collection(request).config.spec
    document = DeviceDocument.model_validate(spec.device_document())
    return web.Response(
        text=document.model_dump_json(exclude_none=True), content_type="application/json"
    )


async def status(request: web.Request) -> web.Response:
    """Answer a collection's progress."""
    return _json(describe.describe_status(named_collection(request)))


async def _described(request: web.Request, served: Described) -> Collection:
    """Return a collection; what its policy means takes seconds the first time if it is large."""
    async with request.app[DESCRIBING]:
        await asyncio.to_thread(getattr, served.config, "privacy")
    return describe.describe_collection(served)


def _others(request: web.Request) -> Mapping[str, Elsewhere]:
    """Return the collections of other shards, as configured: all workers share a configuration."""
    return request.app[SHARDS].others() if SHARDS in request.app else {}


def _json(answer: BaseModel, *, status: int = 200) -> web.Response:
    return web.Response(
        text=answer.model_dump_json(), status=status, content_type="application/json"
    )
