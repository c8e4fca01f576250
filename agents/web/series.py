"""Answers series: many windows and a few numbers of them in one request.

1. Windows with reports are put into groups of equal length, which begin at multiples of it, so that
   the same groups come again as time goes on.
2. A point that is final and shown never changes: closed panes keep their counts, and parts their
   reports (`ldpstream.agents.state.view`). It is computed once and kept.
3. All others are taken from the state, as for an estimate, and computed in one turn.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
from aiohttp import web
from multidict import MultiMapping
from pydantic_core import from_json, to_json

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.changes import ChangeOptions
from ldpstream.agents.document.estimates import Entry
from ldpstream.agents.document.series import SeriesQuery, series_fields
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.state.listing import WindowInfo
from ldpstream.agents.web.changes import ChangeJob
from ldpstream.agents.web.computation import (
    QUEUES,
    ComputeQueues,
    Job,
    answer_bytes,
    check_cost,
)
from ldpstream.agents.web.declaration import POINTS_DEFAULT, POINTS_LIMIT, SERIES_TOP_LIMIT
from ldpstream.agents.web.description import describe_status, describe_window
from ldpstream.agents.web.estimates import (
    CELLS_LIMIT,
    QUANTILE_VALUES_LIMIT,
    VALUES_LIMIT,
    check_size,
    compressed,
    is_final,
    kept_windows,
    one_axis,
    take_span,
)
from ldpstream.agents.web.requests import (
    PIPELINE,
    SHARDS,
    AnswerError,
    read_flag,
    read_number,
    read_time,
    readable_collection,
)
from ldpstream.agents.web.worker_process import Work
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.times import parse_time
from ldpstream.mechanisms.domains.attributes import Pair
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.domains.queries import Subset, make_set

_TRIED: Final = 16
"""The most points in which the largest values are looked for."""
_QUANTILES: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Those of one ordered dimension where none are published, as on the live page."""
_QUANTILES_VALUES: Final = 4096
_CHANGES_LISTED: Final = 200
"""Values of the largest domain whose changes are listed with the status."""


@dataclass(frozen=True, kw_only=True)
class SeriesJob:
    """The points of a series that are not known yet, with their totals."""

    query: SeriesQuery
    jobs: Sequence[Job]
    final: bool = False
    """Its points are kept one by one."""

    def tag(self, config: CollectionConfig) -> str:
        """Return nothing: the tag of a series is that of its text, with the known points."""
        del config
        return ""

    def body(self, config: CollectionConfig) -> bytes:
        """Return the points, in order."""
        points = [
            self.query.point(config, job.totals, window=job.window, final=job.final)
            for job in self.jobs
        ]
        return to_json(points, inf_nan_mode="null")


async def series(request: web.Request) -> web.Response:
    """Answer a few numbers of one collection over many windows."""
    collection = readable_collection(request)
    fields = await compute_series(request.app[QUEUES], request.query, collection)
    return compressed(request, to_json(fields))


async def series_list(request: web.Request) -> web.Response:
    """Answer the same of all collections that this worker runs, or of those that are named."""
    collections = request.app[PIPELINE].collections
    everywhere = request.app[SHARDS].collections if SHARDS in request.app else list(collections)
    names = list(dict.fromkeys(request.query.getall("collection", list(everywhere))))
    listed, errors = list[Mapping[str, Any]](), dict[str, AnswerError]()
    for name in names:
        if name not in everywhere:
            expected = ", ".join(everywhere)
            raise AnswerError(400, f"collection: expected one of {expected}, got {name[:40]!r}")
        if name not in collections:
            continue
        try:
            collection = readable_collection(request, name)
            listed.append(await compute_series(request.app[QUEUES], request.query, collection))
        except AnswerError as error:
            errors[name] = error
    # What no collection can be asked is wrong in itself.
    if errors and not listed and all(error.status == 400 for error in errors.values()):
        raise next(iter(errors.values()))
    elsewhere = [name for name in names if name not in collections]
    problems = {name: error.text for name, error in errors.items()}
    fields = {"series": listed, "elsewhere": elsewhere, "problems": problems}
    return compressed(request, to_json(fields))


async def compute_series(
    queues: ComputeQueues, words: MultiMapping[str], collection: Engine
) -> Mapping[str, Any]:
    """Return a series for these parameters; points that are known are not computed again."""
    config, finals = collection.config, queues.finals
    whole, top = _read(words, config)
    query = whole
    if read_flag(words, "headline"):
        query, top = _headline(query, top, config)
    most = _most_points(query, top, config)
    last = read_number(words, "last", POINTS_LIMIT, POINTS_LIMIT)
    # Of the newest windows there are as many as can be computed, one a point.
    last = min(last, most) if "points" not in words else last
    default = last if "last" in words else min(POINTS_DEFAULT, most)
    number = read_number(words, "points", default, POINTS_LIMIT)
    _check_points(query, top, number, most, config)
    published_bytes = await queues.published_bytes(config)
    # The totals of all points are in memory together.
    totals_bytes = 8 * config.spec.mechanism.statistic_size * number
    cost_bytes = totals_bytes + answer_bytes(config.spec, replace(query.options, top=top))
    check_cost(cost_bytes, published_bytes, query.options)
    async with queues.turn(cost_bytes, published_bytes) as compute:
        windows, groups = _groups(words, collection, number, last)
        if top:
            query = await _with_largest(collection, query, top, [span for span, _ in groups])
        keys = _keys(collection, query, groups)
        known = [finals.answer(key, lambda: None) for key in keys]
        makes = [
            take_span(collection, span, query.options)
            for (span, _), point in zip(groups, known, strict=True)
            if point is None
        ]
        answer = await compute(
            config, lambda: SeriesJob(query=query, jobs=[make() for make in makes]), frozenset()
        )
    computed: Iterator[Entry] = iter(from_json(answer.body or b"[]"))
    points = []
    for key, body in zip(keys, known, strict=True):
        point = next(computed) if body is None else from_json(body)
        if body is None and point["final"] and not point["withheld"]:
            finals.answer(key, partial(to_json, point))
        points.append(point)
    fields = series_fields(config, query, points, windows=windows)
    if not read_flag(words, "status"):
        return fields
    return {**fields, **await _status(queues, collection, whole, points)}


async def _status(
    queues: ComputeQueues, collection: Engine, query: SeriesQuery, points: Sequence[Entry]
) -> Mapping[str, Any]:
    """Return what an overview says beside the numbers."""
    windows = kept_windows(collection, last=1)
    newest = [info for info in windows if info.final][-1:]
    oldest = [info for info in windows if not info.final][:1]
    try:
        change = await _change(queues, collection, query, points)
    except AnswerError:  # As of spans that expire meanwhile: there are numbers all the same.
        change = None
    try:
        standing = await _standing(queues, collection, query, newest)
    except AnswerError:
        standing = None
    return {
        "status": describe_status(collection),
        "windows": [
            describe_window(collection.context.window, info) for info in (*newest, *oldest)
        ],
        "change": change,
        "standing": standing,
    }


async def _standing(
    queues: ComputeQueues,
    collection: Engine,
    query: SeriesQuery,
    newest: Sequence[WindowInfo],
) -> Any:
    """Return which areas of ordered values stand out in a final window, if there are no queries."""
    about = collection.config.attributes.get(query.options.attribute or "", collection.config)
    domain = about.spec.domain.estimated
    queries = query.count > len(query.values)
    if not newest or queries or not domain.ordered or domain.size > VALUES_LIMIT:
        return None
    options = replace(query.options, top=0, areas=True)
    spans = [(info.start_ms, info.end_ms) for info in newest]
    document = await _computed(queues, collection, options, spans, lambda job: job)
    if document["withheld"]:
        return None
    entries = document["areas"]["entries"]
    named = [area for area in entries if area["inside"] is not None and area["share"] is not None]
    largest = max(named, key=itemgetter("share"), default=None)
    return {"count": len(named), "largest": largest}


async def _change(
    queues: ComputeQueues, collection: Engine, query: SeriesQuery, points: Sequence[Entry]
) -> Any:
    """Return the change from the final point before it to the newest; None if there are no two."""
    spans = (
        (parse_time(point["start"]), parse_time(point["end"]))
        for point in reversed(points)
        if point["final"] and not point["withheld"]
    )
    newest = next(spans, None)
    before = next((span for span in spans if newest and span[1] <= newest[0]), None)
    if newest is None or before is None:
        return None
    config = collection.config
    about = config.attributes.get(query.options.attribute or "", config)
    every = about.spec.domain.estimated.size <= _CHANGES_LISTED
    options = replace(query.options, top=None if every else 0, estimand="population")

    def change(then: Job, now: Job) -> ChangeJob:
        return ChangeJob(before=then, after=now, options=ChangeOptions(estimate=options))

    return await _computed(queues, collection, options, (before, newest), change)


async def _computed(
    queues: ComputeQueues,
    collection: Engine,
    options: EstimateOptions,
    spans: Sequence[tuple[int, int]],
    join: Callable[..., Work],
) -> Any:
    """Return what a job says that is made of those of spans, in one turn."""
    config = collection.config
    published_bytes = await queues.published_bytes(config)
    cost_bytes = len(spans) * answer_bytes(config.spec, options)
    check_cost(cost_bytes, published_bytes, options)
    async with queues.turn(cost_bytes, published_bytes) as compute:
        makes = [take_span(collection, span, options) for span in spans]
        answer = await compute(config, lambda: join(*(make() for make in makes)), frozenset())
    return from_json(answer.body or b"null")


def _read(query: MultiMapping[str], config: CollectionConfig) -> tuple[SeriesQuery, int]:
    """Return what each point says, and how many of the largest values."""
    words = {word: query.getall(word) for word in query}
    if config.attributes and "attribute" not in words:
        words["attribute"] = list(config.attributes)[:1]
    published = read_flag(query, "published")
    try:
        options = read_options(config.options, config.spec, words)
        about = config.attributes.get(options.attribute or "", config)
        domain, top = about.spec.domain.estimated, 1
        if "top" in query:
            top = _few(options.top)
        elif about.spec.mechanism.unanswered(None) is not None:
            top = 0
        labels = words.get("value", ())
        # Beside others of their kind, values are bounded over the whole domain.
        values = tuple(_index(label, domain) for label in labels) if published else ()
        named = [] if published else [_value_set(label, domain) for label in labels]
        queries: dict[str, Any] = {
            name: getattr(options, name) if published or word in query else ()
            for word, name in (("range", "ranges"), ("quantile", "quantiles"), ("linear", "linear"))
        }
        queries["ranges"] = (*named, *queries["ranges"])
        if published and not queries["quantiles"] and _is_line(domain):
            queries["quantiles"] = _QUANTILES
        # What is published has the same bounds here as where others of its kind stand beside it.
        together: dict[str, Any] = {"areas": False, "project": "none", "simultaneous": published}
        options = replace(options, top=0, **queries, **together)
        options = one_axis(options, domain, explicit="quantile" in query)
        check_size(options, about.options, domain)
    except QueryError as error:
        raise AnswerError(400, str(error)) from error
    return SeriesQuery(options=options, values=values, named=len(named)), min(top, domain.size)


def _headline(query: SeriesQuery, top: int, config: CollectionConfig) -> tuple[SeriesQuery, int]:
    """Return the query with lines of one kind: quantiles, else ranges, values or means.

    The largest of ordered values is that with the most noise, so it is none.
    """
    options = query.options
    about = config.attributes.get(options.attribute or "", config)
    top = 0 if about.spec.domain.estimated.ordered else top
    counts = {
        "quantiles": len(options.quantiles),
        "ranges": len(options.ranges),
        "top": top + len(query.values),
        "linear": len(options.linear),
    }
    first = next((kind for kind, count in counts.items() if count), "")
    left_out: dict[str, Any] = {kind: () for kind in counts if kind not in ("top", first)}
    options = replace(options, **left_out)
    if first == "top":
        return replace(query, options=options), top
    return replace(query, options=options, values=()), 0


def _is_line(domain: Domain) -> bool:
    return domain.ordered and len(domain.shape) == 1 and domain.size <= _QUANTILES_VALUES


def _value_set(label: str, domain: Domain) -> Subset:
    try:
        return make_set(label, [label], domain)
    except QueryError as error:
        raise QueryError("value", error.expected) from error


def _index(label: str, domain: Domain) -> int:
    """Return the value with a label, of a pair in JSON: `["f",3]`."""
    if isinstance(domain, Pair):
        labels = [to_json(each).decode() for each in domain.labels(np.arange(domain.size))]
        if label not in labels:
            raise QueryError("value", f"two labels in JSON, such as {labels[0]}")
        return labels.index(label)
    return int(_value_set(label, domain).values(domain.shape)[0])


def _few(top: int | None) -> int:
    if top is None or top > SERIES_TOP_LIMIT:
        raise QueryError("top", f"at most {SERIES_TOP_LIMIT} values")
    return top


def _size(query: SeriesQuery, config: CollectionConfig) -> int:
    about = config.attributes.get(query.options.attribute or "", config)
    return about.spec.domain.estimated.size


def _most_points(query: SeriesQuery, top: int, config: CollectionConfig) -> int:
    """Return how many points one answer may compute; one is always possible."""
    options, size, lines = query.options, _size(query, config), max(1, top + query.count)
    limits = [CELLS_LIMIT // (size * lines)]
    if options.quantiles:
        limits.append(QUANTILE_VALUES_LIMIT**2 // size**2)
    return max(1, min(limits))


def _check_points(
    query: SeriesQuery, top: int, number: int, most: int, config: CollectionConfig
) -> None:
    """Refuse more points than one answer may compute."""
    if number > most:
        lines, size = max(1, top + query.count), _size(query, config)
        raise AnswerError(
            400,
            f"points: expected at most {most} with {lines} numbers each over {size} values, "
            f"got {number}",
        )


def _groups(
    query: MultiMapping[str], collection: Engine, number: int, last: int
) -> tuple[int, list[tuple[tuple[int, int], int]]]:
    """Return how many windows a point has, and the span of each with the reports in its windows."""
    from_ms, to_ms = read_time(query, "start"), read_time(query, "end")
    whole = from_ms is None and to_ms is None
    listed = [
        info
        for info in kept_windows(collection, last=last if whole and "last" in query else None)
        if info.n
        and (from_ms is None or info.start_ms >= from_ms)
        and (to_ms is None or info.end_ms <= to_ms)
    ]
    if "last" in query:
        listed = listed[-last:]
    if not listed:
        return 1, []
    first, last = listed[0].number, listed[-1].number
    size = -(-(last + 1 - first) // number)
    # Groups begin at multiples of their size, which may take one more.
    size += last // size - first // size + 1 > number
    if size == 1:
        return 1, [((info.start_ms, info.end_ms), info.n) for info in listed]
    window, groups = collection.context.window, []
    for place, infos in groupby(listed, lambda info: info.number // size):
        start, end = max(place * size, first), (place + 1) * size
        start_ms = window.start(window.first_pane(start))
        end_ms = window.span(last)[1] if end > last else window.start(window.first_pane(end))
        groups.append(((start_ms, end_ms), sum(info.n for info in infos)))
    return size, groups


async def _with_largest(
    collection: Engine, query: SeriesQuery, top: int, spans: Sequence[tuple[int, int]]
) -> SeriesQuery:
    """Return the query with the largest values of the newest point that shows any, finals first.

    So the values stay the same while a window is open.
    """
    newest = list(reversed(spans))[:_TRIED]
    for span in sorted(newest, key=lambda span: not is_final(collection, span[1])):
        make = take_span(collection, span, query.options)
        job = await asyncio.to_thread(make)
        chosen = await asyncio.to_thread(query.largest, collection.config, job.totals, top)
        if chosen is not query:
            return chosen
    return query


def _keys(
    collection: Engine, query: SeriesQuery, groups: Sequence[tuple[tuple[int, int], int]]
) -> list[str]:
    """Return the keys of points; epoch and n tell states apart if the collection is counted again.

    Whoever loads a partition's state draws a random epoch (`ldpstream.agents.state.records`).
    """
    config, head = collection.config, collection.replicas[0].head
    epoch = None if head is None else head.epoch
    settings = config.name, config.spec.fingerprint, config.window.identity, query, epoch
    shared = hashlib.blake2b(repr(settings).encode(), digest_size=16).hexdigest()
    return [f"{shared} {start_ms} {end_ms} {n}" for (start_ms, end_ms), n in groups]
