"""What handlers look up: the application's objects, and the collection and panes of a request."""

import asyncio
from typing import Final

from aiohttp import web

from ldpstream.agents.http.access import Access
from ldpstream.agents.http.certificates import Certificates
from ldpstream.agents.http.compute_queue import ComputeQueues
from ldpstream.agents.http.feed import Feeds
from ldpstream.agents.http.parameters import FINGERPRINT, AnswerError
from ldpstream.agents.http.receiving import Bodies
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.served.served import ServedCollection, ServedPipeline
from ldpstream.agents.served.shards import Shards
from ldpstream.agents.state.listing import WindowInfo, windows
from ldpstream.agents.state.view import BehindError, first_kept
from ldpstream.mechanisms.base.times import format_time

PIPELINE: Final = web.AppKey("pipeline", ServedPipeline)
METRICS: Final = web.AppKey("metrics", Metrics)
QUEUES: Final = web.AppKey("queues", ComputeQueues)
DESCRIBING: Final = web.AppKey("describing", asyncio.Lock)
CERTIFICATES: Final = web.AppKey("certificates", Certificates)
ACCESS: Final = web.AppKey("access", Access)
SHARDS: Final = web.AppKey("shards", Shards)
"""Set only if there are other shards."""
BODIES: Final = web.AppKey("bodies", Bodies)
FEEDS: Final = web.AppKey("feeds", Feeds)


def named_collection(request: web.Request) -> ServedCollection:
    """Return the collection in the path, under the spec of the parameter `fingerprint` if given.

    Raises:
        AnswerError: 404, where it does not exist; 400, where it has no such spec.
    """
    known = request.app[PIPELINE].collections
    name = request.match_info["name"]
    if name not in known:
        names = request.app[SHARDS].collections if SHARDS in request.app else known
        raise AnswerError(404, f"no such collection; expected one of {', '.join(names)}")
    served = known[name]
    asked = request.query.get(FINGERPRINT.name)
    if asked is None:
        return served
    specs = {one.config.spec.fingerprint.hex(): one for one in (served, *served.accepted)}
    if asked not in specs:
        raise AnswerError(
            400, f"fingerprint: expected one of {', '.join(specs)}, got {asked[:40]!r}"
        )
    return specs[asked]


def readable_collection(request: web.Request) -> ServedCollection:
    """Return the collection in the path, with its state read to the end.

    Raises:
        AnswerError: 404, where it does not exist; 503, where its state cannot be read.
    """
    served = named_collection(request)
    if any(replica.head is None for replica in served.replicas) or not served.replicas:
        raise AnswerError(503, f"{served.config.name}: its state is still being read; see /readyz")
    for replica in served.replicas:
        if replica.broken is not None:
            raise AnswerError(
                503, f"{served.config.name}: its state cannot be used: {replica.broken}"
            )
    return served


def kept_windows(served: ServedCollection) -> list[WindowInfo]:
    """Return the windows with reports of which no part has expired, in order.

    Raises:
        AnswerError: 503, where a replica is behind another one.
    """
    kept_ms = first_kept(served.context, served.replicas) * served.context.window.pane_ms
    try:
        found = windows(served.context, served.replicas)
    except BehindError as error:
        raise being_read(served) from error
    return [info for info in found if info.start_ms >= kept_ms]


def being_read(served: ServedCollection) -> AnswerError:
    """Return the error for a state whose partitions have not been read equally far."""
    return AnswerError(503, f"{served.config.name}: its state is being read; try again")


def check_span(
    served: ServedCollection, start_ms: int | None, end_ms: int | None
) -> tuple[int, int]:
    """Return the span if it consists of whole panes that have not expired.

    Raises:
        AnswerError: 400, naming the parameter and what was expected; 410, where a part of the span
            has expired.
    """
    if start_ms is None or end_ms is None:
        missing = "start" if start_ms is None else "end"
        raise AnswerError(400, f"{missing}: expected start and end, or neither")
    window = served.context.window
    for name, time_ms in (("start", start_ms), ("end", end_ms)):
        if not window.earliest_ms <= time_ms <= window.latest_ms:
            raise AnswerError(400, f"{name}: expected a time within the years 1 to 9999")
        if time_ms % window.pane_ms:
            below_ms = time_ms - time_ms % window.pane_ms
            raise AnswerError(
                400,
                f"{name}: expected the edge of a pane of {window.pane_ms} ms, such as "
                f"{format_time(below_ms)}, got {format_time(time_ms)}",
            )
    if start_ms >= end_ms:
        raise AnswerError(400, f"end: expected a time after start, got {format_time(end_ms)}")
    kept_ms = first_kept(served.context, served.replicas) * window.pane_ms
    if start_ms < kept_ms:
        raise AnswerError(
            410,
            f"start: expected {format_time(kept_ms)} or later, because older reports have expired, "
            f"got {format_time(start_ms)}",
        )
    return start_ms, end_ms


def is_final(served: ServedCollection, end_ms: int) -> bool:
    """Return whether all windows up to the edge of a pane are final."""
    head, window = served.replicas[0].head, served.context.window
    return head is not None and end_ms // window.pane_ms <= window.closing(head.final)
