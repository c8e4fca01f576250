"""Estimates of any span, and the finals that are stored: computed off the loop, and tagged.

An answer's ETag is made of all that the answer is made of, so any worker gives the same one, and
whoever has the answer already is told so without anything being estimated.
"""

import asyncio
import hashlib
from typing import Final

from aiohttp import ETag, web

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.document import EstimateDocument, EstimateOptions
from ldpstream.agents.document.cost import answer_bytes
from ldpstream.agents.http.formats import CONTENT_TYPES, Format, wanted_format
from ldpstream.agents.http.job import Job, written
from ldpstream.agents.http.keys import BODIES, QUEUES
from ldpstream.agents.http.limits import BODY_BYTES, CHEAP_BYTES, check_cost
from ldpstream.agents.http.lookup import (
    being_read,
    check_span,
    is_final,
    kept_windows,
    readable_collection,
)
from ldpstream.agents.http.parameters import AnswerError, parse_moment, read_time
from ldpstream.agents.http.question import address_options, body_options, read_body
from ldpstream.agents.partition.answers import answer
from ldpstream.agents.served.served import ServedCollection
from ldpstream.agents.state.cells import decode_final
from ldpstream.agents.state.gathered import BehindError
from ldpstream.agents.state.records import Name
from ldpstream.agents.state.view import add_up

CHECK_AGAIN: Final = "private, no-cache"
"""No answer is for ever: lates are counted after a final too, and another spec, other windows or
`ldpstream reset` put another final behind the same address. Asking again costs no document."""


async def estimate(request: web.Request) -> web.Response:
    """Answer the estimate document of a span of whole panes, by default the newest window."""
    served = readable_collection(request)
    options = address_options(request.query, served.config)
    start_ms, end_ms = read_time(request.query, "start"), read_time(request.query, "end")
    return await _answer(request, served, start_ms, end_ms, options)


async def estimate_posted(request: web.Request) -> web.Response:
    """Answer the same to what a body of JSON asks."""
    served = readable_collection(request)
    if request.content_type != "application/json":
        raise AnswerError(415, "Content-Type: expected application/json")
    asked = read_body(await request.app[BODIES].read(request, limit_bytes=BODY_BYTES))
    options = body_options(asked, served.config)
    start_ms = None if asked.start is None else parse_moment("start", str(asked.start))
    end_ms = None if asked.end is None else parse_moment("end", str(asked.end))
    return await _answer(request, served, start_ms, end_ms, options)


async def stored_final(request: web.Request) -> web.Response:
    """Answer the final document of a window, as it was stored and published."""
    served = readable_collection(request)
    form = wanted_format(request)
    start_ms = parse_moment("start", request.match_info["start"])
    window = served.context.window
    record = None
    if start_ms % window.hop_ms == 0:
        record = served.replicas[0].cells.get(Name("final", start_ms // window.hop_ms))
    if record is None:
        raise AnswerError(404, "start: expected the start of a final window that is kept")
    body = decode_final(record.value)
    tag = hashlib.blake2b(form.encode() + body, digest_size=16).hexdigest()
    if _has(_known(request), tag):
        return _tagged(request, tag, None, form)
    if form == "csv":
        body = written(EstimateDocument.model_validate_json(body), form)
    return _tagged(request, tag, body, form)


async def _answer(
    request: web.Request,
    served: ServedCollection,
    start_ms: int | None,
    end_ms: int | None,
    options: EstimateOptions,
) -> web.Response:
    config, form = served.config, wanted_format(request)
    cost_bytes, published_bytes = await asyncio.to_thread(_costs, config, options)
    check_cost(cost_bytes, published_bytes, options)
    async with request.app[QUEUES].turn(cost_bytes, published_bytes) as compute:
        # What is counted meanwhile is in the answer: the state is looked at when its turn has come.
        if start_ms is None and end_ms is None:
            known = kept_windows(served)
            if not known:
                raise AnswerError(404, f"{config.name}: no window holds reports yet")
            start_ms, end_ms = known[-1].start_ms, known[-1].end_ms
        span = check_span(served, start_ms, end_ms)
        final = is_final(served, span[1])
        try:
            taken = answer(served.context, served.replicas, *span, final=final)
        except BehindError as error:
            raise being_read(served) from error

        def begin() -> tuple[Job, str]:
            job = Job(
                totals=add_up(served.context, taken),
                window=span,
                final=final,
                options=options,
                form=form,
                partial=served.partial,
            )
            return job, job.tag(config)

        job, tag = await asyncio.to_thread(begin)
        body = None if _has(_known(request), tag) else await compute(config, job)
    return _tagged(request, tag, body, form)


def _costs(config: CollectionConfig, options: EstimateOptions) -> tuple[int, int]:
    """Return what an answer costs and, unless it is cheap anyway, what a published one does."""
    cost_bytes = answer_bytes(config.spec, options)
    cheap = cost_bytes <= CHEAP_BYTES
    return cost_bytes, 0 if cheap else answer_bytes(config.spec, config.options)


def _known(request: web.Request) -> frozenset[str]:
    """Return the tags of the answers that the reader says it has; a star is any."""
    if request.method == "POST":
        return frozenset()
    return frozenset([one.value for one in request.if_none_match or ()])


def _has(known: frozenset[str], tag: str) -> bool:
    return tag in known or "*" in known


def _tagged(request: web.Request, tag: str, body: bytes | None, form: Format) -> web.Response:
    has = body is None
    response = web.Response(
        status=304 if has else 200,
        body=body,
        headers={"Cache-Control": CHECK_AGAIN, "Vary": "Accept"},
    )
    if not has:
        response.content_type = CONTENT_TYPES[form]
        response.charset = "utf-8" if form == "csv" else None
    if request.method != "POST":
        response.etag = ETag(tag)
    return response
