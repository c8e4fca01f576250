"""Answers an estimate of any span, from the request to the response.

1. `estimate` or `estimate_posted` reads what is asked, and refuses what is too large or too slow.
2. `_answer` predicts the memory that this takes, and waits for a turn: cheap answers do not wait
   for costly ones.
3. When its turn comes, it takes the span from the state, with all reports that are counted by then.
4. A thread adds them up, and hashes everything that the answer depends on: the tag. So all workers
   give the same one, and a reader that has the answer gets a 304 without any estimation.
5. Otherwise the document is built, in the thread or, if it is costly, in a process.

Who may ask has been checked before (`ldpstream.agents.web.requests`). Costs, turns, and steps 4
and 5 are in `ldpstream.agents.web.computation`.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from aiohttp import ETag, web
from multidict import MultiMapping
from pydantic import ValidationError

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.errors import request_problem
from ldpstream.agents.config.query.capabilities import read_options, request_options
from ldpstream.agents.config.query.options import (
    QUERIES_LIMIT,
    REQUEST_KEYS,
    EstimateOptions,
    EstimateRequest,
)
from ldpstream.agents.config.query.settings import WORDS
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.state.listing import WindowInfo, windows
from ldpstream.agents.state.replica import BehindError
from ldpstream.agents.state.view import add_up, first_kept
from ldpstream.agents.state.view import answer as snapshot_of
from ldpstream.agents.state.windows import NEVER
from ldpstream.agents.web.computation import QUEUES, EncodedAnswer, Job, answer_bytes, check_cost
from ldpstream.agents.web.declaration import CONTENT_TYPES, Format
from ldpstream.agents.web.request_bodies import BODIES
from ldpstream.agents.web.requests import (
    BODY_BYTES,
    METRICS,
    AnswerError,
    accepts_gzip,
    read_time,
    readable_collection,
    requested_format,
)
from ldpstream.mechanisms.base.checks import without_repeats
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.domains.parse import Domain

VALUES_LIMIT: Final = 100_000
"""Values in one list."""
CELLS_LIMIT: Final = 20_000_000
"""Number of ranges and linear queries times values of the domain; one query is always allowed."""
QUANTILE_VALUES_LIMIT: Final = 10_000
"""The largest domain for quantiles, except those that are published anyway.

Each quantile's bounds weigh all prefixes against all values: the work grows with the square.
"""
_CHECK_AGAIN: Final = "private, no-cache"
"""Any answer may change: late reports are counted even after a final, and another spec, other
windows or `ldpstream reset` put another final at the same URL. Revalidation is cheap."""


async def estimate(request: web.Request) -> web.Response:
    """Answer the estimate document of a span of whole panes, by default the newest window."""
    collection = readable_collection(request)
    options = _address_options(request.query, collection.config)
    return await _answer(request, collection, request.query, options)


async def estimate_posted(request: web.Request) -> web.Response:
    """Answer the same for a request in a JSON body."""
    collection = readable_collection(request)
    if request.content_type != "application/json":
        raise AnswerError(415, "Content-Type: expected application/json")
    body = read_body(await request.app[BODIES].read(request, limit_bytes=BODY_BYTES))
    options = _body_options(body, collection.config)
    times = {
        name: str(time) for name in ("start", "end") if (time := getattr(body, name)) is not None
    }
    return await _answer(request, collection, times, options)


def _address_options(query: MultiMapping[str], config: CollectionConfig) -> EstimateOptions:
    """Return the collection's options, replaced where the URL asks for something else."""
    try:
        options = read_options(config.options, config.spec, address_words(query))
        about = config.attributes.get(options.attribute or "", config)
        check_size(options, about.options, about.spec.domain.estimated)
    except QueryError as error:
        raise AnswerError(400, str(error)) from error
    return options


def address_words(query: MultiMapping[str]) -> Mapping[str, list[str]]:
    """Return the texts of a URL's parameters."""
    words = {word: query.getall(word) for word in query}
    for word, texts in words.items():
        if len(texts) > QUERIES_LIMIT:
            what = f"at most {QUERIES_LIMIT} of them, got {len(texts)}"
            raise AnswerError(400, f"{word}: expected {what}")
    return words


def read_body(raw: bytes) -> EstimateRequest:
    """Return the request in a body.

    Raises:
        AnswerError: 400, naming the first invalid key and what was expected.
    """
    try:
        body = EstimateRequest.model_validate_json(raw)
        json.loads(raw, object_pairs_hook=without_repeats)
    except ValidationError as error:
        raise AnswerError(400, request_problem(error, REQUEST_KEYS)) from error
    except ValueError:
        raise AnswerError(400, "body: expected each key once") from None
    return body


def _body_options(body: EstimateRequest, config: CollectionConfig) -> EstimateOptions:
    """Return the collection's options, replaced where a body asks for something else."""
    about = config.attributes.get(body.attribute or "", config)
    domain = about.spec.domain.estimated
    try:
        # Weights by label expand to the whole domain: check their number before that.
        _check_work(len(body.ranges or ()), len(body.linear or ()), about.options, domain)
        options = request_options(config.options, config.spec, body)
        check_size(options, about.options, domain)
    except QueryError as error:
        raise AnswerError(400, f"{WORDS[error.name].name}: expected {error.expected}") from error
    return options


def one_axis(options: EstimateOptions, domain: Domain, *, explicit: bool) -> EstimateOptions:
    """Return the options without published quantiles of several axes, which only estimates have."""
    if not options.quantiles or len(domain.shape) == 1:
        return options
    if explicit:
        raise QueryError("quantile", "a domain of one ordered dimension")
    return replace(options, quantiles=())


def check_size(options: EstimateOptions, published: EstimateOptions, domain: Domain) -> None:
    """Refuse a document that would be too large, or take too much to compute.

    `published` are the options of the collection's own documents.
    """
    size = domain.size
    listed = size if options.top is None else min(options.top, size)
    if listed > VALUES_LIMIT:
        raise QueryError("top", f"at most {VALUES_LIMIT} of the domain's {size} values")
    if size > QUANTILE_VALUES_LIMIT and not {*options.quantiles} <= {*published.quantiles}:
        raise QueryError(
            "quantile", f"a domain of at most {QUANTILE_VALUES_LIMIT} values, got {size}"
        )
    _check_work(len(options.ranges), len(options.linear), published, domain)


def _check_work(ranges: int, linear: int, published: EstimateOptions, domain: Domain) -> None:
    """Refuse more ranges and linear queries than memory allows.

    As many as are `published` are always allowed.
    """
    often = len(published.ranges) + len(published.linear)
    most = max(1, often, CELLS_LIMIT // domain.size)
    if ranges + linear > most:
        raise QueryError(
            "range" if ranges else "linear",
            f"at most {most} ranges and linear queries together over {domain.size} values, "
            f"got {ranges + linear}",
        )


async def _answer(
    request: web.Request,
    collection: Engine,
    times: Mapping[str, str],
    options: EstimateOptions,
) -> web.Response:
    start_ms, end_ms = read_time(times, "start"), read_time(times, "end")
    config, form = collection.config, requested_format(request)
    # 2. Wait for a turn.
    queues = request.app[QUEUES]
    published_bytes = await queues.published_bytes(config)
    cost_bytes = answer_bytes(config.spec, options)
    check_cost(cost_bytes, published_bytes, options)
    async with queues.turn(cost_bytes, published_bytes) as compute:
        # 3. Take the span from the state.
        if start_ms is None and end_ms is None:
            start_ms, end_ms = newest_window(collection)
        span = check_span(collection, start_ms, end_ms)
        make = take_span(collection, span, options, form)

        # 4. and 5. Add up, compute the tag, and build the document unless the reader has it.
        begun = time.monotonic()
        answer = await compute(config, make, known_tags(request))
    if answer.body is not None:
        request.app[METRICS].answer_seconds.labels(config.name).observe(time.monotonic() - begun)
    return tagged(request, answer, form)


def take_span(
    collection: Engine,
    span: tuple[int, int],
    options: EstimateOptions,
    form: Format = "json",
) -> Callable[[], Job]:
    """Take what a span holds at this moment, and return what adds it up, in any thread."""
    final = is_final(collection, span[1])
    try:
        snapshot = snapshot_of(collection.context, collection.replicas, *span, final=final)
    except BehindError as error:
        raise _being_read(collection) from error

    def make() -> Job:
        return Job(
            totals=add_up(collection.context, snapshot),
            window=span,
            final=final,
            options=options,
            form=form,
            partial=collection.partial,
        )

    return make


def newest_window(collection: Engine) -> tuple[int, int]:
    """Return the span of the newest window with reports."""
    listed = kept_windows(collection, last=1)
    if not listed:
        raise AnswerError(404, f"{collection.config.name}: no window has reports yet")
    return listed[-1].start_ms, listed[-1].end_ms


def kept_windows(collection: Engine, *, last: int | None = None) -> list[WindowInfo]:
    """Return the windows with reports of which no part has expired, in order.

    With `last`, at least so many of the newest that have counted reports, and one that is final,
    if there are: all windows of a week take a while to list.
    """
    window = collection.context.window
    panes = [] if last is None else sorted({p for r in collection.replicas for p in r.all_panes()})
    # Each window has at most so many panes. Where none of these is final, more are listed.
    most = 0 if last is None else (last + 1) * window.size_panes
    while 0 < most < len(panes):
        first_pane = window.first_pane(window.windows(panes[-most]).start)
        kept = _windows_from(collection, first_pane)
        if sum(info.n > 0 for info in kept) >= (last or 0) and any(info.final for info in kept):
            return kept
        most *= 8
    return _windows_from(collection, NEVER)


def _windows_from(collection: Engine, first_pane: int) -> list[WindowInfo]:
    """Return the windows with reports that begin at a pane or later, if no part has expired."""
    context, replicas = collection.context, collection.replicas
    kept_ms = context.window.start(first_kept(context, replicas))
    try:
        listed = windows(context, replicas, first_pane=first_pane)
    except BehindError as error:
        raise _being_read(collection) from error
    return [
        info
        for info in listed
        if info.start_ms >= kept_ms and context.window.first_pane(info.number) >= first_pane
    ]


def check_span(
    collection: Engine,
    start_ms: int | None,
    end_ms: int | None,
    *,
    names: tuple[str, str] = ("start", "end"),
) -> tuple[int, int]:
    """Return the span if it consists of whole panes that have not expired.

    `names` are those of the parameters.

    Raises:
        AnswerError: 400, naming the parameter and what was expected; 410, where a part of the span
            has expired.
    """
    if start_ms is None or end_ms is None:
        missing = names[start_ms is not None]
        raise AnswerError(400, f"{missing}: expected {names[0]} and {names[1]}, or neither")
    window = collection.context.window
    for name, time_ms in zip(names, (start_ms, end_ms), strict=True):
        if not window.earliest_ms <= time_ms <= window.latest_ms:
            raise AnswerError(400, f"{name}: expected a time within the years 1 to 9999")
        if window.edge(time_ms) is None:
            below = window.format_time(window.start(window.pane(time_ms)))
            raise AnswerError(
                400,
                f"{name}: expected the edge of a pane of {window.pane_ms} ms, such as {below}, "
                f"got {window.format_time(time_ms)}",
            )
    if start_ms >= end_ms:
        raise AnswerError(
            400,
            f"{names[1]}: expected a time after {names[0]}, got {window.format_time(end_ms)}",
        )
    kept_ms = window.start(first_kept(collection.context, collection.replicas))
    if start_ms < kept_ms:
        raise AnswerError(
            410,
            f"{names[0]}: expected {window.format_time(kept_ms)} or later, because older reports "
            f"have expired, got {window.format_time(start_ms)}",
        )
    return start_ms, end_ms


def is_final(collection: Engine, end_ms: int) -> bool:
    """Return whether all windows up to the edge of a pane are final."""
    head, window = collection.replicas[0].head, collection.context.window
    return head is not None and window.pane(end_ms) <= window.closing(head.final)


def _being_read(collection: Engine) -> AnswerError:
    """Return the error for a state whose partitions have not been read equally far."""
    return AnswerError(503, f"{collection.config.name}: its state is being read; try again")


def known_tags(request: web.Request) -> frozenset[str]:
    """Return the tags that the reader has, from If-None-Match; a star stands for any."""
    if request.method == "POST":
        return frozenset()
    return frozenset([tag.value for tag in request.if_none_match or ()])


def tagged(request: web.Request, answer: EncodedAnswer, form: Format) -> web.Response:
    """Return the response with an answer and its tag: 304 without a body if the reader has it."""
    unchanged = answer.body is None
    response = web.Response(
        status=304 if unchanged else 200,
        body=answer.body,
        headers={"Cache-Control": _CHECK_AGAIN},
    )
    if not unchanged:
        response.content_type = CONTENT_TYPES[form]
        response.charset = "utf-8" if form == "csv" else None
    if request.method != "POST":
        response.etag = ETag(answer.tag)
    return response


def compressed(request: web.Request, body: bytes) -> web.Response:
    """Return JSON with a tag of its text, compressed where the reader takes it."""
    tag = hashlib.blake2b(body, digest_size=16).hexdigest()
    known = known_tags(request) & {tag, "*"}
    response = tagged(request, EncodedAnswer(tag, None if known else body), "json")
    response.headers["Vary"] = "Accept-Encoding"
    if not known and accepts_gzip(request):
        response.enable_compression(web.ContentCoding.gzip)
    return response
