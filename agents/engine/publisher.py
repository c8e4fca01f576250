"""Publish one collection's estimates, in the worker that owns partition 0.

Finals are published once the head that stores them has won, and again until the next head says so:
at least once, always with the same content. In between, windows that are not final and have changed
are published as provisional. Both have different keys, so a compacted topic keeps both.
"""

import asyncio
import logging
import math
import time
from collections.abc import Hashable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from aiokafka.errors import KafkaError

from ldpstream.agents.document.build import write_document
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.flushing import FLUSH_SECONDS, Services
from ldpstream.agents.state.listing import WindowInfo, told_of, windows
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import BehindError
from ldpstream.agents.state.view import Snapshot, add_up, answer
from ldpstream.mechanisms.base.times import format_time

PROVISIONAL_WINDOWS: Final = 8
"""The most provisional windows that one round publishes: the newest."""
_LOOK_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


def estimate_key(fingerprint: bytes, start_ms: int, end_ms: int, *, final: bool) -> bytes:
    """Return the key of a document on the estimates topic.

    It contains the fingerprint, which separates documents of several specs over one span.
    """
    kind = "final" if final else "provisional"
    span = f"{format_time(start_ms)}/{format_time(end_ms)}"
    return f"{fingerprint.hex()}/{span}/{kind}".encode()


def publication_moment(due: float, newest: float, every_seconds: float) -> float:
    """Return when to publish what is due, given when the newest head won; all by one clock.

    Heads win about as regularly as documents are published. If each came shortly after a document,
    it would wait for almost the whole interval, every time: a document waits a little for the next
    head instead, and the ones after it then follow their heads at once.

    >>> publication_moment(10.0, 9.5, 2.0), publication_moment(10.0, 9.9, 2.0)
    (10.25, 10.0)
    """
    if newest >= due - every_seconds / 8:
        return due
    return due + min(every_seconds / 4, FLUSH_SECONDS)


def changed_windows(
    engine: Engine, told: dict[int, Hashable]
) -> Iterator[tuple[WindowInfo, Snapshot]]:
    """Yield the newest open windows of which there is news, each as it is now.

    `told`, by window, is what was said of each; it is brought up to date once the next is wanted.

    Raises:
        BehindError: where the windows cannot be listed now.
    """
    context, replicas = engine.context, engine.replicas
    listed = [window for window in windows(context, replicas) if not window.final and window.n]
    newest = {window.number: window for window in listed[-PROVISIONAL_WINDOWS:]}
    for gone in told.keys() - newest.keys():
        del told[gone]
    for number, window in newest.items():
        progress = told_of(context, replicas, window)
        if told.get(number) != progress:
            span = window.start_ms, window.end_ms
            try:
                snapshot = answer(context, replicas, *span, final=False)
            except BehindError:
                continue
            yield window, snapshot
            told[number] = progress


def write_provisional(engine: Engine, window: WindowInfo, snapshot: Snapshot) -> bytes:
    """Return the document of an open window; call it in a thread, since domains may be large."""
    totals, span = add_up(engine.context, snapshot), (window.start_ms, window.end_ms)
    return write_document(engine.config, totals, window=span, final=False, partial=engine.partial)


class Publisher:
    """Publishes an engine's finals, and provisional documents of what it has counted so far."""

    def __init__(self, engine: Engine, services: Services) -> None:
        self._engine = engine
        self._services = services
        self._published: dict[int, Hashable] = {}

    async def run(self) -> None:
        """Publish until cancelled."""
        every_seconds = self._engine.config.publish_every_seconds
        due, newest, changed = time.monotonic() + every_seconds, -math.inf, False
        while True:
            # Without changes, or if another worker publishes, look only now and then, for retries.
            waits = changed and self._state() is not None
            moment = publication_moment(due, newest, every_seconds)
            wait = max(0.0, moment - time.monotonic()) if waits else _LOOK_SECONDS
            if await self._has_news(min(wait, _LOOK_SECONDS)):
                newest, changed = time.monotonic(), True
            state = self._state()
            if state is None:
                continue
            try:
                await self._publish_finals(state)
                if time.monotonic() >= publication_moment(due, newest, every_seconds):
                    # Without changes it stays due: the next head's documents are sent at once.
                    due = time.monotonic() + every_seconds if changed else due
                    changed = False
                    await self._publish_provisional()
            except KafkaError as error:
                # The next round publishes the same documents.
                log.debug("publishing of %s failed: %r", self._engine.config.name, error)

    def _state(self) -> Partition | None:
        """Return the state of partition 0; None where another worker owns it, or it has stopped."""
        return None if self._engine.stopped else self._engine.first

    async def _has_news(self, seconds: float) -> bool:
        """Wait at most this long for a winning head; return whether there is one."""
        # `wait_for` may lose a cancellation at the same time, and the worker would not end.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._engine.news.wait()
        news = self._engine.news.is_set()
        self._engine.news.clear()
        return news

    async def _publish_finals(self, state: Partition) -> None:
        finals = state.publications()
        if not finals:
            return
        spans = [(final.window_start_ms, final.window_end_ms) for final in finals]
        contents = [final.content for final in finals]
        await asyncio.gather(*map(partial(self._send, final=True), spans, contents))
        self._engine.complaints.clear(self._complaint_key(final=True))
        # If the state has been dropped meanwhile, marking it does no harm.
        state.mark_published()
        if not self._engine.context.accepted:
            now_ms, name = self._services.clock.now_ms(), self._engine.config.name
            ages = self._services.metrics.final_age_seconds.labels(name)
            for _, end_ms in spans:
                ages.observe((now_ms - end_ms) / 1000)
        self._export(spans[-1], contents[-1])

    async def _publish_provisional(self) -> None:
        sent = False
        with suppress(BehindError):
            for window, snapshot in changed_windows(self._engine, self._published):
                span = window.start_ms, window.end_ms
                content = await asyncio.to_thread(write_provisional, self._engine, window, snapshot)
                await self._send(span, content, final=False)
                self._export(span, content)
                sent = True
        if sent:
            self._engine.complaints.clear(self._complaint_key(final=False))

    async def _send(self, span: tuple[int, int], content: bytes, *, final: bool) -> None:
        config = self._engine.config
        key = estimate_key(config.spec.fingerprint, *span, final=final)
        topic = config.topics.estimates
        try:
            await self._services.producer.send(topic, None, key, content)
        except KafkaError as error:
            self._engine.complaints.report_error(
                self._complaint_key(final=final), error, f"topic {topic}"
            )
            raise

    def _complaint_key(self, *, final: bool) -> Hashable:
        """Return the key of complaints: a topic may take what is provisional, and no finals."""
        return self._engine.config.topics.estimates, final

    def _export(self, span: tuple[int, int], content: bytes) -> None:
        # The gauges of a collection are those of its own spec.
        if not self._engine.context.accepted:
            self._services.metrics.estimated(self._engine.config.name, span[0], content)
