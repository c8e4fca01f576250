"""Computes answers: what one costs, whose turn it is, its tag and its body.

The cost is a prediction of memory, without a mechanism's tables, which belong to the worker. Tests
keep it above what is measured. One cheap answer at a time is computed in a thread, and one costly
answer in a process.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Final, TypeAlias

import numpy as np
from aiohttp import web
from scipy.version import version as scipy_version

from ldpstream import __version__
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import DocumentKeywords, build_document, write_document
from ldpstream.agents.document.flat import document_csv
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.web.declaration import Format
from ldpstream.agents.web.requests import AnswerError
from ldpstream.agents.web.worker_process import AnswerProcess, Work
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.wire.spec import CollectionSpec

ANSWERS_BYTES: Final = 2 << 30
"""The most memory of one answer, as predicted by `answer_bytes`."""
CHEAP_BYTES: Final = 64 << 20
"""The most memory of a cheap answer, which does not wait for costly ones."""
WAITING_LIMIT: Final = 64
"""The most requests waiting in each queue, cheap and costly."""
_FINALS_BYTES: Final = 32 << 20
"""The most bytes of answers about finals that are kept."""
_IDLE_SECONDS: Final = 60.0
"""How long the process for costly answers stays without work."""
_FIXED_BYTES: Final = 16 << 20
"""Chunks of arrays that are processed at a time."""
_ENTRY_BYTES: Final = 2_400
"""Per listed value: its bounds, its part of the document, and its text."""
_AREA_BYTES: Final = 1_200
"""Per value of a domain with areas: at most two areas, and all that their bounds need."""


def answer_bytes(spec: CollectionSpec, options: EstimateOptions) -> int:
    """Return the most memory that a document with these options takes to build and write.

    Includes the statistic, and does not depend on the reports. Prefixes for quantiles are prepared
    once, and not counted.
    """
    if spec.attributes:
        attributes = [options.attribute] if options.attribute else list(spec.attributes)
        each = [answer_bytes(spec.attributes[name], options.about(name)) for name in attributes]
        return 8 * spec.mechanism.statistic_size + sum(each)
    mechanism, size = spec.mechanism, spec.domain.estimated.size
    statistic, values = 8 * mechanism.statistic_size, 8 * mechanism.size
    # `scratch` includes the decoder's result, which is as long as the statistic. With public
    # weights, values are decoded from one of three sums.
    alone = mechanism.values if isinstance(mechanism, PublicWeights) else mechanism
    decoder = alone.decoder
    decoded = int(decoder.scratch * statistic)
    # The parts are computed one after another, so the largest counts.
    steps = [0 if decoder.groups() is None else 2 * statistic]
    if options.top != 0 or options.project != "none":
        steps.append(max(decoded + values, (4 if options.project == "none" else 7) * values))
    queries = len(options.ranges) + len(options.linear)
    if queries:
        results = values * (queries + (options.project != "none"))
        # A linear query decodes its squares as well.
        steps.append(decoded + 4 * statistic + (11 if options.linear else 6) * values + results)
    if options.areas:
        steps.append(decoded + 4 * statistic + _AREA_BYTES * size)
    listed = size if options.top is None else min(options.top, size)
    return _FIXED_BYTES + statistic + max(steps) + _ENTRY_BYTES * listed


def check_cost(cost_bytes: int, published_bytes: int, options: EstimateOptions) -> None:
    """Refuse a document that would take too much memory, unless a published one takes as much."""
    if cost_bytes <= max(ANSWERS_BYTES, published_bytes):
        return
    queries = [name for name in ("linear", "ranges") if getattr(options, name)]
    fewer = {"linear": "fewer linear queries", "ranges": "fewer ranges"}
    instead = [*(fewer[name] for name in queries), "a smaller top", "project=none"]
    raise AnswerError(
        400,
        f"this answer would take {cost_bytes >> 20} MiB of memory, more than "
        f"{ANSWERS_BYTES >> 20} MiB: ask for {' or '.join(instead)}",
    )


@dataclass(frozen=True)
class EncodedAnswer:
    """An answer's tag and body; the body is None if the reader has it."""

    tag: str
    body: bytes | None


MakeJob: TypeAlias = Callable[[], Work]
"""Adds up the totals of a job, which takes too long for the event loop."""
Compute: TypeAlias = Callable[[CollectionConfig, MakeJob, frozenset[str]], Awaitable[EncodedAnswer]]
"""What a turn allows once: make a job, and its answer unless the reader knows its tag.

It raises AbortedError if the process gives no answer.
"""


class FinalAnswers:
    """Answers about finals, which never change: those asked for last, by what identifies them."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()
        self._size_bytes = 0

    def answer(self, key: str, compute: Callable[[], bytes | None]) -> bytes | None:
        """Return a kept answer, or compute and keep it; None is not kept.

        Those that were asked for least recently are forgotten.
        """
        with self._lock:
            if key in self._bodies:
                self._bodies.move_to_end(key)
                return self._bodies[key]
        body = compute()
        if body is None:
            return None
        with self._lock:
            self._size_bytes += len(body) - len(self._bodies.pop(key, b""))
            self._bodies[key] = body
            while self._size_bytes > _FINALS_BYTES:
                _, forgotten = self._bodies.popitem(last=False)
                self._size_bytes -= len(forgotten)
        return body


@dataclass
class _Queue:
    """One turn at a time, first come, first served."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class ComputeQueues:
    """Two bounded queues, so that costly requests do not make others wait.

    A request is cheap if it costs at most `CHEAP_BYTES`, or no more than the published document.
    """

    def __init__(self) -> None:
        self.finals = FinalAnswers()
        self._cheap, self._costly = _Queue(), _Queue()
        self._process = AnswerProcess()
        self._published: dict[tuple[str, bytes], int] = {}
        self._ending: asyncio.TimerHandle | None = None

    async def published_bytes(self, config: CollectionConfig) -> int:
        """Return the memory that a published document of the collection takes to compute.

        Computed once, in a thread: it needs the mechanism's decoder, which may take seconds to
        build.
        """
        key = config.name, config.spec.fingerprint
        if key not in self._published:
            self._published[key] = await asyncio.to_thread(
                answer_bytes, config.spec, config.options
            )
        return self._published[key]

    @asynccontextmanager
    async def turn(
        self, cost_bytes: int, published_bytes: int, *, limit_seconds: float | None = None
    ) -> AsyncIterator[Compute]:
        """Wait for a turn, and hold it during a block.

        A costly computation that takes longer than `limit_seconds` is aborted.
        """
        cheap = cost_bytes <= max(CHEAP_BYTES, published_bytes)
        queue = self._cheap if cheap else self._costly
        if queue.waiting >= WAITING_LIMIT:
            raise AnswerError(503, f"{WAITING_LIMIT} requests are waiting already: try again later")
        queue.waiting += 1
        try:
            await queue.lock.acquire()
        finally:
            queue.waiting -= 1
        if not cheap and self._ending is not None:
            self._ending.cancel()
        compute_elsewhere = (
            None if cheap else partial(self._process.body, limit_seconds=limit_seconds)
        )
        loop = asyncio.get_running_loop()
        running: asyncio.Future[EncodedAnswer] | None = None

        async def compute(
            config: CollectionConfig, make: MakeJob, known_tags: frozenset[str]
        ) -> EncodedAnswer:
            nonlocal running
            running = loop.run_in_executor(
                None, answered, config, make, known_tags, compute_elsewhere, self.finals
            )
            return await asyncio.shield(running)

        def release(done: "asyncio.Future[EncodedAnswer] | None") -> None:
            if done is not None and not done.cancelled():
                # Once a request is cancelled nobody awaits its error, and asyncio would log it.
                done.exception()
            queue.lock.release()
            if not cheap:
                self._ending = loop.call_later(_IDLE_SECONDS, self._process.end)

        try:
            yield compute
        finally:
            # A cancelled request leaves its thread, which still uses the process.
            if running is None or running.done():
                release(running)
            else:
                running.add_done_callback(release)

    async def close(self) -> None:
        """End the process that computes costly answers."""
        if self._ending is not None:
            self._ending.cancel()
        await asyncio.to_thread(self._process.end)


QUEUES: Final = web.AppKey("queues", ComputeQueues)


def answered(
    config: CollectionConfig,
    make: MakeJob,
    known_tags: frozenset[str],
    compute_elsewhere: Callable[[Work, CollectionConfig], bytes] | None,
    finals: FinalAnswers,
) -> EncodedAnswer:
    """Return the answer to a job, without its body if its tag, or a star, is known.

    The body is computed here, or by `compute_elsewhere`; of a final it is kept.
    """
    job = make()
    tag = job.tag(config)
    if known_tags & {tag, "*"}:
        return EncodedAnswer(tag, None)
    compute = job.body if compute_elsewhere is None else partial(compute_elsewhere, job)
    return EncodedAnswer(
        tag, finals.answer(tag, partial(compute, config)) if job.final else compute(config)
    )


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that an answer about a collection depends on, except its configuration."""

    totals: WindowTotals
    window: tuple[int, int]
    final: bool
    options: EstimateOptions
    form: Format
    partial: bool

    def tag(self, config: CollectionConfig) -> str:
        """Return a hash that identifies this answer, in hexadecimal.

        It covers only what the answer shows: of anything else, readers could confirm a guess.
        """
        totals = self.totals
        settings = (
            (__version__, np.__version__, scipy_version, self.form),
            (config.name, config.names.title, config.spec.fingerprint, self.final),
            (config.minimum, config.minimum_block, config.spread, config.central),
            (self.window, totals.start_ms, totals.end_ms, totals.withheld, self.partial),
            (totals.n, totals.late, totals.rejected, totals.lost),
            self.options,
        )
        digest = hashlib.blake2b(repr(settings).encode(), digest_size=16)
        for sums in (totals, *totals.attributes):
            span = sums.start_ms, sums.end_ms, sums.withheld, sums.n, sums.among, sums.late
            digest.update(repr((span, sums.lost, sums.waiting)).encode())
            if sums.n >= config.minimum and not sums.withheld:
                digest.update(sums.statistic.data)
                digest.update(b"" if sums.merged is None else sums.merged.data)
        return digest.hexdigest()

    def body(self, config: CollectionConfig) -> bytes:
        """Return the document of the span, as JSON or CSV."""
        about: DocumentKeywords = {
            "window": self.window,
            "final": self.final,
            "options": self.options,
            "partial": self.partial,
        }
        if self.form == "csv":
            return document_csv(build_document(config, self.totals, **about))
        return write_document(config, self.totals, **about)
