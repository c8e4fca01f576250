"""Handles one upload: check it, frame it with others, produce, store its key, and accept it."""

import asyncio
import functools
import hashlib
import logging
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Self

from aiokafka.errors import KafkaError

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.config import CollectionConfig, GatewayConfig
from ldpstream.agents.edge.gateway import Gateway
from ldpstream.agents.edge.sender import Sender
from ldpstream.agents.edge.shuffle import Shuffler
from ldpstream.agents.edge.upload_check import UploadRefusedError, check_upload
from ldpstream.agents.edge.upload_keys import Upload, UploadKeys
from ldpstream.agents.web.request_bodies import Bodies
from ldpstream.mechanisms.wire.spec import CollectionSpec

FRAME_BYTES: Final = 500_000
_FRAME_REPORTS: Final = 1 << 20
_DIGEST_BYTES: Final = 16

FULL: Final = "too many uploads wait for the broker"
_NO_ANSWER: Final = "the broker does not acknowledge: repeat the same bytes with the same key"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Accepted:
    """The answer: the number of reports, and whether they had been accepted before."""

    reports: int
    again: bool


@dataclass(eq=False)
class _Frame:
    """Uploads that the broker and the disk acknowledge together.

    `task` waits for both. Each request waits for a future of its own in `waiters`, so that it can
    end without the others.
    """

    task: "asyncio.Task[None]"
    uploads: list[Upload] = field(default_factory=list)
    reports: Counter[str] = field(default_factory=Counter)
    """The number of reports of each collection."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    size: int = 0
    """The bytes of the uploads' bodies."""

    def wake(self, task: "asyncio.Task[None]") -> None:
        """Wake the requests that still wait."""
        if not task.cancelled():
            # Retrieve the outcome: nobody may be waiting for it any more.
            task.exception()
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


class Uploads:
    """Everything between a body and its acknowledgement; an asynchronous context manager.

    - `sender` is a started sender of any collection; all share its connection.
    - Uploads not accepted yet are held in memory, at most `config.queue` and `config.queue_bytes`;
      `bodies` that are arriving share the rest.
    - `reach` says whether a topic exists; `accepted` is called with the collection and number of
      reports of each accepted upload.
    """

    def __init__(
        self,
        collections: Mapping[str, CollectionConfig],
        sender: Sender,
        keys: UploadKeys,
        *,
        config: GatewayConfig,
        reach: Callable[[str], bool] = lambda _: True,
        accepted: Callable[[str, int], None] = lambda _name, _reports: None,
    ) -> None:
        self._collections: dict[str, Sequence[CollectionConfig]] = {
            name: (collection, *collection.accept) for name, collection in collections.items()
        }
        self._keys = keys
        self._config = config
        self._reach = reach
        self._accepted = accepted
        self._batchers = {
            (collection.spec.fingerprint, partition): _make_batcher(
                collection, sender.sharing(collection.spec), config
            )
            for several in self._collections.values()
            for collection in several
            for partition in _partitions(collection.spec)
        }
        self._running: dict[bytes, tuple[Upload, _Frame]] = {}
        self._frames: dict[asyncio.Future[None], _Frame] = {}
        """The frames by the futures of their acknowledgement by the broker."""
        self._deadlines: deque[tuple[float, asyncio.Future[None]]] = deque()
        """When requests stop waiting, in this order, since all have the same patience."""
        self._expiry: asyncio.TimerHandle | None = None
        self._bytes = 0
        self.bodies = Bodies(self.room_bytes)
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="remembered")
        self._unwritten: list[tuple[Sequence[Upload], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._failing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.drain()
        for frame in list(self._frames.values()):
            frame.task.cancel()
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._expiry is not None:
            self._expiry.cancel()
        self._disk.shutdown()

    @property
    def waiting(self) -> int:
        """The number of uploads not accepted yet."""
        return len(self._running)

    @property
    def waiting_bytes(self) -> int:
        """The sum of their bodies."""
        return self._bytes

    @property
    def stored_keys(self) -> int:
        """The number of stored keys."""
        return self._keys.count

    async def drain(self) -> None:
        """Wait for uploads in flight, but not for a broker that stays away."""
        for batcher in self._batchers.values():
            batcher.flush()
        if tasks := [frame.task for frame in self._frames.values()]:
            await asyncio.wait(tasks, timeout=self._config.patience_ms / 1000)

    async def submit(self, collection: str, key: bytes, body: bytes) -> Accepted:
        """Return when the broker has all reports of an upload, however often it is submitted.

        Raises:
            UploadRefusedError: 400, 409, 410, 429 or 503. After a 503 it may still be accepted:
                repeat the same bytes with the same key, which waits for the outcome.
        """
        digest = hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
        accepted = self._find(key)
        if accepted is not None:
            _check_digest(accepted.digest, digest)
            return Accepted(accepted.reports, again=True)
        running = self._running.get(key)
        again = running is not None
        if running is None:
            running = self._begin(collection, key, digest, body)
        # Free the body: its reports are in a frame, which may wait for long.
        del body
        upload, frame = running
        _check_digest(upload.digest, digest)
        await self._patiently(frame)
        if not frame.task.done() or frame.task.cancelled():
            raise UploadRefusedError(503, "unavailable", _NO_ANSWER)
        try:
            frame.task.result()
        except KafkaError as error:
            raise UploadRefusedError(503, "unavailable", _NO_ANSWER) from error
        return Accepted(upload.reports, again=again)

    async def _patiently(self, frame: _Frame) -> None:
        """Return when a frame is acknowledged, has failed, or the request's patience is over.

        One timer serves all requests: one for each would cost as much as the waiting itself.
        """
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        frame.waiters.append(waiter)
        while self._deadlines and self._deadlines[0][1].done():
            self._deadlines.popleft()
        self._deadlines.append((loop.time() + self._config.patience_ms / 1000, waiter))
        if self._expiry is None:
            self._expiry = loop.call_at(self._deadlines[0][0], self._expire)
        await waiter

    def _expire(self) -> None:
        """Wake the requests whose patience is over."""
        loop, deadlines = asyncio.get_running_loop(), self._deadlines
        while deadlines and (deadlines[0][0] <= loop.time() or deadlines[0][1].done()):
            _, waiter = deadlines.popleft()
            if not waiter.done():
                waiter.set_result(None)
        self._expiry = loop.call_at(deadlines[0][0], self._expire) if deadlines else None

    def _find(self, key: bytes) -> Upload | None:
        try:
            return self._keys.find(key)
        except sqlite3.Error as error:
            log.error("keys of uploads cannot be read: %s", error)  # noqa: TRY400 (a traceback says no more)
            detail = "the gateway cannot look up accepted uploads: repeat later"
            raise UploadRefusedError(503, "unavailable", detail) from error

    def room_bytes(self) -> int:
        """Return how many more bytes may be held, including arriving bodies."""
        return self._config.queue_bytes - self._bytes

    def _begin(
        self, collection: str, key: bytes, digest: bytes, body: bytes
    ) -> tuple[Upload, _Frame]:
        """Check an upload and put it into a frame.

        Decoded reports take many times the body's memory, so only the frame keeps them.
        """
        if len(self._running) >= self._config.queue:
            raise UploadRefusedError(429, "full", FULL)
        if len(body) > self.room_bytes():
            raise UploadRefusedError(429, "full", FULL)
        valid = check_upload(self._collections[collection], body)
        if not self._reach(valid.config.topics.source):
            raise UploadRefusedError(
                503, "unavailable", "the collection's topic does not exist as configured"
            )
        batcher = self._batchers[valid.config.spec.fingerprint, valid.partition]
        sent = batcher.put(valid.reports, times_ms=valid.times_ms, tokens=valid.tokens)
        frame = self._frames.get(sent)
        if frame is None:
            frame = self._frames[sent] = _Frame(asyncio.create_task(self._accept(sent)))
            frame.task.add_done_callback(frame.wake)
        upload = Upload(key, digest, len(valid.times_ms))
        frame.uploads.append(upload)
        frame.reports[valid.config.name] += upload.reports
        frame.size += len(body)
        self._bytes += len(body)
        running = self._running[key] = upload, frame
        return running

    async def _accept(self, sent: asyncio.Future[None]) -> None:
        """Store the keys of a frame's uploads once the broker has it."""
        try:
            await asyncio.wait([sent])
            sent.result()
            frame = self._frames[sent]
            for name, reports in frame.reports.items():
                self._accepted(name, reports)
            await self._remember(frame.uploads)
        finally:
            frame = self._frames.pop(sent)
            for upload in frame.uploads:
                del self._running[upload.key]
            self._bytes -= frame.size

    async def _remember(self, uploads: Sequence[Upload]) -> None:
        """Return when their keys are on disk; concurrent frames share one sync."""
        written = asyncio.get_running_loop().create_future()
        self._unwritten.append((uploads, written))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        await written

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._unwritten:
            batch, self._unwritten = self._unwritten, []
            uploads = [upload for uploads, _ in batch for upload in uploads]
            add = functools.partial(self._keys.add, uploads, now_ms=now_ms())
            try:
                await loop.run_in_executor(self._disk, add)
                self._failing = False
            except sqlite3.Error as error:
                # The broker has them, so they are accepted anyway.
                if not self._failing:
                    message = "keys of uploads cannot be stored, repeats may count twice: %s"
                    log.error(message, error)  # noqa: TRY400 (a traceback says no more)
                self._failing = True
            for _, written in batch:
                if not written.done():
                    written.set_result(None)


def _make_batcher(
    collection: CollectionConfig, sender: Sender, config: GatewayConfig
) -> Gateway | Shuffler:
    if config.shuffle > 1:
        return Shuffler(collection, sender, least=config.shuffle)
    return Gateway(
        sender,
        max_reports=_FRAME_REPORTS,
        max_bytes=FRAME_BYTES,
        linger_seconds=config.linger_ms / 1000,
        max_waiting=_FRAME_REPORTS,
    )


def _partitions(spec: CollectionSpec) -> Iterable[int | None]:
    """Return the partitions that need frames of their own: all of them with `one_report`."""
    return (None,) if spec.one_report is None else range(spec.one_report.partitions)


def _check_digest(stored: bytes, digest: bytes) -> None:
    if stored != digest:
        raise UploadRefusedError(409, "key", "expected the same bytes as before with this key")
