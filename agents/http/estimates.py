"""Estimates of any span, and stored finals: computed off the event loop, with ETags.

An answer's ETag is a hash of everything that the answer depends on. So all workers give the same
one, and a reader that has the answer gets a 304 without any estimation.
"""

import hashlib
import time
from collections.abc import Mapping
from typing import Final

from aiohttp import ETag, web

from ldpstream.agents.document import EstimateDocument, EstimateOptions
from ldpstream.agents.document.flat import document_csv
from ldpstream.agents.http.job import Answer, Job, answer_bytes
from ldpstream.agents.http.lookup import (
    BODIES,
    METRICS,
    QUEUES,
    being_read,
    check_span,
    is_final,
    kept_windows,
    readable_collection,
)
from ldpstream.agents.http.parameters import (
    CONTENT_TYPES,
    AnswerError,
    Format,
    read_time,
    wanted_format,
)
from ldpstream.agents.http.question import (
    BODY_BYTES,
    address_options,
    body_options,
    check_cost,
    read_body,
)
from ldpstream.agents.served.served import ServedCollection
from ldpstream.agents.state.encoding import decode_final
from ldpstream.agents.state.view import BehindError, add_up
from ldpstream.agents.state.view import answer as snapshot_of
from ldpstream.agents.state.windows import Name

_CHECK_AGAIN: Final = "private, no-cache"
"""Any answer may change: late reports are counted even after a final, and another spec, other
windows or `ldpstream reset` put another final at the same URL. Revalidation is cheap."""


async def estimate(request: web.Request) -> web.Response:
    """Answer the estimate document of a span of whole panes, by default the newest window."""
    served = readable_collection(request)
    options = address_options(request.query, served.config)
    return await _answer(request, served, request.query, options)


async def estimate_posted(request: web.Request) -> web.Response:
    """Answer the same for a request in a JSON body."""
    served = readable_collection(request)
    if request.content_type != "application/json":
        raise AnswerError(415, "Content-Type: expected application/json")
    asked = read_body(await request.app[BODIES].read(request, limit_bytes=BODY_BYTES))
    options = body_options(asked, served.config)
    times = {"start": asked.start, "end": asked.end}
    given = {name: str(time) for name, time in times.items() if time is not None}
    return await _answer(request, served, given, options)


async def stored_final(request: web.Request) -> web.Response:
    """Answer the final document of a window, as it was stored and published."""
    served = readable_collection(request)
    form = wanted_format(request)
    start_ms, window = read_time(request.match_info, "start"), served.context.window
    replica, name = served.replicas[0], Name("final", (start_ms or 0) // window.hop_ms)
    if start_ms is None or start_ms % window.hop_ms or name not in replica.cells:
        raise AnswerError(404, "start: expected the start of a final window that is still kept")
    body = decode_final(replica.value(name))
    tag = hashlib.blake2b(form.encode() + body, digest_size=16).hexdigest()
    if _known(request) & {tag, "*"}:
        return _tagged(request, Answer(tag, None), form)
    if form == "csv":
        body = document_csv(EstimateDocument.model_validate_json(body))
    return _tagged(request, Answer(tag, body), form)


async def _answer(
    request: web.Request,
    served: ServedCollection,
    times: Mapping[str, str],
    options: EstimateOptions,
) -> web.Response:
    start_ms, end_ms = read_time(times, "start"), read_time(times, "end")
    config, form = served.config, wanted_format(request)
    # 1. The cost decides in which queue the request waits for its turn.
    queues = request.app[QUEUES]
    published_bytes = await queues.published_bytes(config)
    cost_bytes = answer_bytes(config.spec, options)
    check_cost(cost_bytes, published_bytes, options)
    async with queues.turn(cost_bytes, published_bytes) as compute:
        # 2. Read the state only now, so that reports counted meanwhile are in the answer.
        if start_ms is None and end_ms is None:
            known = kept_windows(served)
            if not known:
                raise AnswerError(404, f"{config.name}: no window has reports yet")
            start_ms, end_ms = known[-1].start_ms, known[-1].end_ms
        span = check_span(served, start_ms, end_ms)
        final = is_final(served, span[1])
        try:
            taken = snapshot_of(served.context, served.replicas, *span, final=final)
        except BehindError as error:
            raise being_read(served) from error

        def make() -> Job:
            return Job(
                totals=add_up(served.context, taken),
                window=span,
                final=final,
                options=options,
                form=form,
                partial=served.partial,
            )

        # 3. Add up, compute the tag, and estimate unless the reader has the answer.
        begun = time.monotonic()
        answer = await compute(config, make, _known(request))
    if answer.body is not None:
        request.app[METRICS].computed(config.name, seconds=time.monotonic() - begun)
    return _tagged(request, answer, form)


def _known(request: web.Request) -> frozenset[str]:
    """Return the tags that the reader has, from If-None-Match; a star stands for any."""
    if request.method == "POST":
        return frozenset()
    return frozenset([one.value for one in request.if_none_match or ()])


def _tagged(request: web.Request, answer: Answer, form: Format) -> web.Response:
    has = answer.body is None
    response = web.Response(
        status=304 if has else 200,
        body=answer.body,
        headers={"Cache-Control": _CHECK_AGAIN, "Vary": "Accept"},
    )
    if not has:
        response.content_type = CONTENT_TYPES[form]
        response.charset = "utf-8" if form == "csv" else None
    if request.method != "POST":
        response.etag = ETag(answer.tag)
    return response
