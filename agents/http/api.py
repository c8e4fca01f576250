"""The handlers of the API, except those of estimates, finals and events."""

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from aiohttp import web
from pydantic import BaseModel

from ldpstream.agents.document.answers import (
    Collection,
    CollectionList,
    DeviceDocument,
    Health,
    WindowList,
    WindowState,
)
from ldpstream.agents.document.flat import Cell, to_csv
from ldpstream.agents.http import describe
from ldpstream.agents.http.lookup import (
    ACCESS,
    CERTIFICATES,
    DESCRIBING,
    METRICS,
    PIPELINE,
    SHARDS,
    kept_windows,
    named_collection,
    readable_collection,
)
from ldpstream.agents.http.parameters import CONTENT_TYPES, read_page, read_time, wanted_format
from ldpstream.agents.http.probes import answer_metrics
from ldpstream.agents.served.served import Described
from ldpstream.agents.served.shards import Elsewhere
from ldpstream.agents.state.listing import WindowInfo

_WINDOW_COLUMNS: Final = ("start", "end", "n", "late", "final", "published")


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


async def window_list(request: web.Request) -> web.Response:
    """Answer the windows with reports, oldest first, with a link to the next page.

    Pages go forward from the oldest window, or backward from the newest.
    """
    served = readable_collection(request)
    form = wanted_format(request)
    page = read_page(request.query)
    from_ms, to_ms = read_time(request.query, "from"), read_time(request.query, "to")
    chosen = [
        info
        for info in kept_windows(served)
        if _within(info, from_ms, to_ms)
        and (page.after_ms is None or info.start_ms > page.after_ms)
    ]
    shown = chosen[: page.number] if page.forward else chosen[-page.number :]
    answer = WindowList(
        collection=served.config.name,
        windows=[describe.describe_window(info) for info in shown],
        more=len(chosen) > len(shown),
    )
    headers = {"Vary": "Accept"}
    if answer.more:
        # Windows have distinct ends, so "to" leaves exactly those before the first shown one.
        after, to = ("after", shown[-1].start_ms), ("to", shown[0].end_ms - 1)
        link = _link(request, "next", after) if page.forward else _link(request, "prev", to)
        headers["Link"] = link
    if form == "csv":
        body = to_csv((_window_row(one) for one in answer.windows), _WINDOW_COLUMNS)
        return web.Response(
            body=body, headers=headers, content_type=CONTENT_TYPES[form], charset="utf-8"
        )
    return web.Response(
        text=answer.model_dump_json(), headers=headers, content_type=CONTENT_TYPES[form]
    )


def _within(info: WindowInfo, from_ms: int | None, to_ms: int | None) -> bool:
    return (from_ms is None or info.start_ms >= from_ms) and (to_ms is None or info.end_ms <= to_ms)


def _link(request: web.Request, relation: str, moved: tuple[str, int]) -> str:
    """Return a link relative to the request, so that it holds wherever the app is mounted."""
    kept = [(name, text) for name, text in request.query.items() if name != moved[0]]
    return f'<?{urlencode([*kept, (moved[0], str(moved[1]))])}>; rel="{relation}"'


def _window_row(one: WindowState) -> list[Cell]:
    return [one.window.start, one.window.end, one.n, one.late, one.final, one.published]


async def _described(request: web.Request, served: Described) -> Collection:
    """Return a collection; what its policy means takes seconds the first time if it is large."""
    if "privacy" not in vars(served.config):
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
