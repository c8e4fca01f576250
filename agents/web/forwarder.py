"""Forwards requests about collections of other shards to a worker that runs them.

Requests, with the reader's token, and answers are passed on unchanged. A request is forwarded only
once: a worker refuses (421) one from another worker about a collection that it does not run.
"""

from collections.abc import AsyncIterator
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from ldpstream.agents.broker.shards import Shards
from ldpstream.agents.web.addresses import FORWARDED_FOR
from ldpstream.agents.web.declaration import Handler
from ldpstream.agents.web.request_bodies import BODIES
from ldpstream.agents.web.requests import BODY_BYTES, SHARDS, AnswerError

FORWARDED: Final = "Ldpstream-Forwarded"
"""Header of a forwarded request: the shard of the worker that forwards it."""
_CONNECT_SECONDS: Final = 2.0
_SILENCE_SECONDS: Final = 600.0
"""How long a worker may be silent: a costly answer takes long."""
_CONNECTIONS: Final = 100
"""To one worker: half of what it allows from one address."""
_UNUSED_SECONDS: Final = 5.0
"""Shorter than workers keep idle connections."""
_PASSED: Final = (
    "Accept",
    "Accept-Encoding",
    "Authorization",
    "Content-Type",
    "If-None-Match",
    "Last-Event-ID",
)
_OF_THE_CONNECTION: Final = frozenset({"connection", "keep-alive", "transfer-encoding"})


def add_forwarding(app: web.Application, shards: Shards) -> None:
    """Make an application forward requests; it keeps connections to other workers while it runs."""
    app[SHARDS] = shards
    app[FORWARDING] = Forwarding(shards)
    # Inside `answer_request`, which checks who asks before, and answers errors after.
    app.middlewares.append(_forward)
    app.cleanup_ctx.append(_connections)
    app.on_shutdown.append(_end_answers)


class Forwarding:
    """Forwards requests; `session` exists while the application runs."""

    session: aiohttp.ClientSession

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    async def answer(self, request: web.Request, name: str) -> web.StreamResponse:
        """Pass on the answer of a worker of the collection's shard."""
        if FORWARDED in request.headers:
            raise AnswerError(
                421, f"{name}: forwarded to shard {self._shards.shard}, which does not run it"
            )
        body = None
        if request.body_exists:
            body = await request.app[BODIES].read(request, limit_bytes=BODY_BYTES)
        # The session is closed while the worker ends.
        addresses = () if self.session.closed else self._shards.addresses(name)
        for address in addresses:
            try:
                response = await self._ask(request, address, body)
            except (aiohttp.ClientError, TimeoutError):
                continue
            async with response:
                # 421: that worker has changed its shard meanwhile.
                if response.status != 421:
                    return await _pass_on(request, response)
        raise AnswerError(503, self._shards.remote_collections()[name].problem)

    async def _ask(
        self, request: web.Request, address: str, body: bytes | None
    ) -> aiohttp.ClientResponse:
        headers = {key: request.headers[key] for key in _PASSED if key in request.headers}
        headers[FORWARDED] = str(self._shards.shard)
        before = request.headers.getall(FORWARDED_FOR, [])
        headers[FORWARDED_FOR] = ", ".join([*before, request.remote or "unknown"])
        # Only the address decides which worker answers, whatever the request's target looks like.
        target = request.rel_url
        url = URL(address).with_path(target.raw_path, encoded=True)
        return await self.session.request(
            request.method,
            URL(f"{url}?{target.raw_query_string}", encoded=True)
            if target.raw_query_string
            else url,
            data=body,
            headers=headers,
            allow_redirects=False,
        )


FORWARDING: Final = web.AppKey("forwarding", Forwarding)


@web.middleware
async def _forward(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Forward a request about a collection of another shard; answer any other here."""
    name = request.match_info.get("name", "")
    if request.app[SHARDS].elsewhere(name):
        return await request.app[FORWARDING].answer(request, name)
    return await handler(request)


async def _connections(app: web.Application) -> AsyncIterator[None]:
    connector = aiohttp.TCPConnector(
        limit=0, limit_per_host=_CONNECTIONS, keepalive_timeout=_UNUSED_SECONDS
    )
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS
    )
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        skip_auto_headers=("Accept-Encoding", "Content-Type", "User-Agent"),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        app[FORWARDING].session = session
        yield


async def _end_answers(app: web.Application) -> None:
    """End pending answers: streams of events never end by themselves."""
    await app[FORWARDING].session.close()


async def _pass_on(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason)
    for key, value in answer.headers.items():
        if key.lower() not in _OF_THE_CONNECTION:
            response.headers.add(key, value)
    try:
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
    except (aiohttp.ClientError, TimeoutError, ConnectionResetError):
        # One side ended it early: the reader must not take the answer for complete.
        if request.transport is not None:
            request.transport.abort()
    return response
