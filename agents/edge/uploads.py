"""Handles one upload: check it, frame it with others, produce, store its key, and accept it."""

import asyncio
import functools
import hashlib
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, Self

import numpy as np
from aiokafka.errors import KafkaError

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.config import CollectionConfig, GatewayConfig
from ldpstream.agents.edge.sender import Sender
from ldpstream.agents.edge.shuffle import Shuffler
from ldpstream.agents.edge.upload_batch import PendingUpload, UploadBatch, decode_uploads
from ldpstream.agents.edge.upload_check import UploadHead, UploadRefusedError, check_head
from ldpstream.agents.edge.upload_keys import Upload, UploadKeys
from ldpstream.agents.web.request_bodies import Bodies
from ldpstream.mechanisms.wire.frame import HEAD_BYTES, RUN_BYTES

_DIGEST_BYTES: Final = 16
_MOST_HEADS: Final = 1024

FULL: Final = "too many uploads wait for the broker"
_NO_ANSWER: Final = "the broker does not acknowledge: repeat the same bytes with the same key"

log = logging.getLogger(__name__)


class Accepted(NamedTuple):
    """The answer: the number of reports, and whether they had been accepted before."""

    reports: int
    again: bool


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
            collection.spec.fingerprint: self._make_batcher(collection, sender)
            for several in self._collections.values()
            for collection in several
        }
        self._pending: dict[bytes, PendingUpload] = {}
        self._delivering: set[asyncio.Task[None]] = set()
        self._deadlines: deque[tuple[float, asyncio.Future[None]]] = deque()
        """When requests stop waiting, in this order, since all have the same patience."""
        self._expiry: asyncio.TimerHandle | None = None
        self._heads: dict[tuple[str, int, bytes], UploadHead] = {}
        """Good heads of one run, by collection, length of the body, and their bytes."""
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
        for task in self._delivering:
            task.cancel()
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._expiry is not None:
            self._expiry.cancel()
        self._disk.shutdown()

    @property
    def waiting(self) -> int:
        """The number of uploads not accepted yet."""
        return len(self._pending)

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
        if self._delivering:
            await asyncio.wait(self._delivering, timeout=self._config.patience_ms / 1000)

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
        pending = self._pending.get(key)
        again = pending is not None
        if pending is None:
            pending = self._begin(collection, key, digest, body)
        # Free the body: its reports are in a frame, which may wait for long.
        del body
        _check_digest(pending.upload.digest, digest)
        await self._patiently(pending)
        error = pending.error
        if not pending.done or isinstance(error, (KafkaError, asyncio.CancelledError)):
            raise UploadRefusedError(503, "unavailable", _NO_ANSWER) from error
        if error is not None:
            raise error
        return Accepted(pending.upload.reports, again=again)

    async def _patiently(self, pending: PendingUpload) -> None:
        """Return when an upload is done, or the request's patience is over.

        One timer serves all requests: one for each would cost as much as the waiting itself.
        """
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        pending.waiters.append(waiter)
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

    def _begin(self, collection: str, key: bytes, digest: bytes, body: bytes) -> PendingUpload:
        """Check an upload, and have it framed."""
        if len(self._pending) >= self._config.queue:
            raise UploadRefusedError(429, "full", FULL)
        if len(body) > self.room_bytes():
            raise UploadRefusedError(429, "full", FULL)
        head = self._check_head(collection, body)
        if not self._reach(head.config.topics.source):
            raise UploadRefusedError(
                503, "unavailable", "the collection's topic does not exist as configured"
            )
        upload = Upload(key, digest, sum(head.counts))
        pending = PendingUpload(upload, head, body[head.start :], len(body))
        batcher = self._batchers[head.config.spec.fingerprint]
        if isinstance(batcher, Shuffler):
            self._shuffle(batcher, pending)
        else:
            batcher.put(pending)
        self._pending[key] = pending
        self._bytes += pending.size
        return pending

    def _check_head(self, collection: str, body: bytes) -> UploadHead:
        # Uploads of one minute and one number of reports mostly have the same head.
        beginning = (collection, len(body), body[: HEAD_BYTES + RUN_BYTES])
        head = self._heads.get(beginning)
        if head is None:
            head = check_head(self._collections[collection], body)
            if len(head.counts) == 1:
                if len(self._heads) >= _MOST_HEADS:
                    self._heads.clear()
                self._heads[beginning] = head
        return head

    def _make_batcher(self, collection: CollectionConfig, sender: Sender) -> UploadBatch | Shuffler:
        producer = sender.sharing(collection.spec)
        if self._config.shuffle > 1:
            return Shuffler(collection, producer, least=self._config.shuffle)
        return UploadBatch(
            collection,
            linger_seconds=self._config.linger_ms / 1000,
            refuse=self._conclude,
            send=lambda uploads, frame: self._deliver(
                uploads, asyncio.ensure_future(producer.produce(frame))
            ),
        )

    def _shuffle(self, shuffler: Shuffler, pending: PendingUpload) -> None:
        reports, _, (outcome,) = decode_uploads(pending.head.config, [pending])
        if isinstance(outcome, UploadRefusedError):
            raise outcome
        times_ms = np.repeat(np.array(pending.head.times_ms), pending.head.counts)
        self._deliver([pending], shuffler.put(reports, times_ms=times_ms))

    def _deliver(self, uploads: Sequence[PendingUpload], sent: asyncio.Future[None]) -> None:
        """Accept uploads once the broker has them and the disk their keys."""
        task = asyncio.create_task(self._accept(uploads, sent))
        self._delivering.add(task)
        task.add_done_callback(functools.partial(self._delivered, uploads))

    async def _accept(self, uploads: Sequence[PendingUpload], sent: asyncio.Future[None]) -> None:
        await asyncio.wait([sent])
        sent.result()
        name = uploads[0].head.config.name
        self._accepted(name, sum(pending.upload.reports for pending in uploads))
        await self._remember([pending.upload for pending in uploads])

    def _delivered(self, uploads: Sequence[PendingUpload], task: "asyncio.Task[None]") -> None:
        self._delivering.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        for pending in uploads:
            self._conclude(pending, error)

    def _conclude(self, pending: PendingUpload, error: BaseException | None) -> None:
        del self._pending[pending.upload.key]
        self._bytes -= pending.size
        pending.conclude(error)

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


def _check_digest(stored: bytes, digest: bytes) -> None:
    if stored != digest:
        raise UploadRefusedError(409, "key", "expected the same bytes as before with this key")
